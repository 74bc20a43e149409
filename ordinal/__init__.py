"""Ordinal regression: `fit_*` functions that return a frozen, certified model."""

try:
    from ._solvers import _build_info
except ImportError as error:
    import sys
    from pathlib import Path

    if not any(Path(__file__).parent.glob("_solvers/*.pyx")):
        raise  # an installation that is broken in another way
    _advice = (
        "this is the source tree, which holds no compiled modules; run from another "
        "folder or use the `ordinal` command"
    )
    if sys.argv[:1] == ["-m"]:  # `python -m ordinal`: __main__ never gets to speak
        print(f"ordinal: {_advice}", file=sys.stderr)
        raise SystemExit(2) from None
    raise ImportError(_advice) from error

from typing import TYPE_CHECKING

from ._public import find_public, warn_of_namesake

if TYPE_CHECKING:
    from . import (
        comparison,
        data,
        datasets,
        kernels,
        metrics,
        model_selection,
        plot,
        prediction_sets,
        preprocessing,
    )
    from ._model.explanation import Explanation
    from ._model.model import Model, load
    from ._numerics.threads import show_config
    from ._watch.convergence import (
        CollinearColumnsWarning,
        Convergence,
        ConvergenceWarning,
        DisorderedThresholdsWarning,
        EmptyColumnsWarning,
        OrdinalError,
        Status,
        UnnamedColumnsWarning,
        UnscaledFeaturesWarning,
    )
    from ._watch.monitor import State
    from .comparison import Comparison, compare
    from .gpor import GporModel, fit_gpor
    from .kdlor import KdlorModel, fit_kdlor
    from .linear import PomModel, PomPath, anova, fit_pom, fit_pom_path, lr_test
    from .logistic import LinearThresholdModel, fit_lat, fit_lit
    from .model_selection import Selection, select
    from .networks import (
        CnnorModel,
        ElmorModel,
        NnorModel,
        NnpomModel,
        fit_cnnor,
        fit_elmor,
        fit_nnor,
        fit_nnpom,
    )
    from .npsvor import NpsvorModel, fit_npsvor, fit_npsvor_path
    from .ofmhs import OfmhsModel, fit_ofmhs
    from .opbe import OpbeModel, fit_opbe
    from .prediction_sets import ConformalModel, conformal, cross_conformal
    from .svm import SvmModel, SvrModel, fit_cssvc, fit_svc, fit_svmop, fit_svr
    from .svor import SvorModel, fit_redsvm, fit_shashua_levin, fit_svorex, fit_svorim
    from .tlssvor import TlsSvorModel, fit_tlssvor
    from .xofm import XofmModel, fit_xofm
else:  # type checkers would take every name for one that this knows

    def __getattr__(name):
        """Import what a name stands for when it is first used (see `_public`)."""
        globals()[name] = found = find_public(name)
        return found


__version__: str = _build_info.VERSION
warn_of_namesake(__path__[0])

__all__ = [
    "CnnorModel",
    "CollinearColumnsWarning",
    "Comparison",
    "ConformalModel",
    "Convergence",
    "ConvergenceWarning",
    "DisorderedThresholdsWarning",
    "ElmorModel",
    "EmptyColumnsWarning",
    "Explanation",
    "GporModel",
    "KdlorModel",
    "LinearThresholdModel",
    "Model",
    "NnorModel",
    "NnpomModel",
    "NpsvorModel",
    "OfmhsModel",
    "OpbeModel",
    "OrdinalError",
    "PomModel",
    "PomPath",
    "Selection",
    "State",
    "Status",
    "SvmModel",
    "SvorModel",
    "SvrModel",
    "TlsSvorModel",
    "UnnamedColumnsWarning",
    "UnscaledFeaturesWarning",
    "XofmModel",
    "__version__",
    "anova",
    "compare",
    "comparison",
    "conformal",
    "cross_conformal",
    "data",
    "datasets",
    "fit_cnnor",
    "fit_cssvc",
    "fit_elmor",
    "fit_gpor",
    "fit_kdlor",
    "fit_lat",
    "fit_lit",
    "fit_nnor",
    "fit_nnpom",
    "fit_npsvor",
    "fit_npsvor_path",
    "fit_ofmhs",
    "fit_opbe",
    "fit_pom",
    "fit_pom_path",
    "fit_redsvm",
    "fit_shashua_levin",
    "fit_svc",
    "fit_svmop",
    "fit_svorex",
    "fit_svorim",
    "fit_svr",
    "fit_tlssvor",
    "fit_xofm",
    "kernels",
    "load",
    "lr_test",
    "metrics",
    "model_selection",
    "plot",
    "prediction_sets",
    "preprocessing",
    "select",
    "show_config",
]


def __dir__() -> list[str]:
    return __all__
