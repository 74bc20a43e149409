"""Public names of `ordinal`; written by tools/estimators.py."""

from . import companions as companions
from . import comparison as comparison
from . import data as data
from . import datasets as datasets
from . import exceptions as exceptions
from . import inference as inference
from . import kernels as kernels
from . import metrics as metrics
from . import model_selection as model_selection
from . import models as models
from . import plot as plot
from . import prediction_sets as prediction_sets
from . import preprocessing as preprocessing
from ._model.model import Model as Model
from ._model.model import load as load
from ._input.intervals import RankIntervals as RankIntervals
from ._numerics.threads import show_config as show_config
from .boosting import fit_boosting as fit_boosting
from .comparison import compare as compare
from .gpor import fit_gpor as fit_gpor
from .linear import fit_pom as fit_pom
from .linear import fit_pom_path as fit_pom_path
from .linear import fit_ratio as fit_ratio
from .mixed import fit_clmm as fit_clmm
from .model_selection import select as select
from .npsvor import fit_npsvor as fit_npsvor
from .npsvor import fit_npsvor_path as fit_npsvor_path
from .prediction_sets import conformal as conformal
from .prediction_sets import cross_conformal as cross_conformal
from .stacking import fit_stacking as fit_stacking
from .svor import fit_svorex as fit_svorex
from .svor import fit_svorim as fit_svorim
from .tlssvor import fit_tlssvor as fit_tlssvor
from .xofm import fit_xofm as fit_xofm

__version__: str
