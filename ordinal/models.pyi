"""Public names of `ordinal.models`; written by tools/estimators.py."""

from ._model.explanation import Explanation as Explanation
from ._model.model import Fit as Fit
from ._watch.convergence import Convergence as Convergence
from ._watch.convergence import Status as Status
from ._watch.monitor import State as State
from .boosting import BoostingModel as BoostingModel
from .gpor import GporModel as GporModel
from .kdlor import KdlorModel as KdlorModel
from .linear import PomModel as PomModel
from .linear import RatioModel as RatioModel
from .logistic import LinearThresholdModel as LinearThresholdModel
from .mixed import ClmmModel as ClmmModel
from .networks import CnnorModel as CnnorModel
from .networks import ElmorModel as ElmorModel
from .networks import NnorModel as NnorModel
from .networks import NnpomModel as NnpomModel
from .npsvor import NpsvorModel as NpsvorModel
from .ofmhs import OfmhsModel as OfmhsModel
from .opbe import OpbeModel as OpbeModel
from .prediction_sets import ConformalModel as ConformalModel
from .stacking import StackingModel as StackingModel
from .svm import SvmModel as SvmModel
from .svm import SvrModel as SvrModel
from .svor import SvorModel as SvorModel
from .tlssvor import TlsSvorModel as TlsSvorModel
from .xofm import XofmModel as XofmModel
