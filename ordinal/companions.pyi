"""Public names of `ordinal.companions`; written by tools/estimators.py."""

from .kdlor import fit_kdlor as fit_kdlor
from .logistic import fit_lat as fit_lat
from .logistic import fit_lit as fit_lit
from .networks import fit_cnnor as fit_cnnor
from .networks import fit_elmor as fit_elmor
from .networks import fit_nnor as fit_nnor
from .networks import fit_nnpom as fit_nnpom
from .ofmhs import fit_ofmhs as fit_ofmhs
from .opbe import fit_opbe as fit_opbe
from .svm import fit_cssvc as fit_cssvc
from .svm import fit_svc as fit_svc
from .svm import fit_svmop as fit_svmop
from .svm import fit_svr as fit_svr
from .svor import fit_redsvm as fit_redsvm
from .svor import fit_shashua_levin as fit_shashua_levin
