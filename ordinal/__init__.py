"""Ordinal regression: `fit_*` functions that return a frozen, certified model."""

try:
    from ._solvers import _config
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

from . import (
    comparison,
    datasets,
    kernels,
    metrics,
    model_selection,
    plot,
    preprocessing,
)
from ._fit import (
    Convergence,
    ConvergenceWarning,
    DisorderedThresholdsWarning,
    State,
    Status,
)
from ._model import load
from ._threads import show_config
from .gpor import GporModel, fit_gpor
from .npsvor import NpsvorModel, fit_npsvor, fit_npsvor_path
from .svor import SvorModel, fit_redsvm, fit_shashua_levin, fit_svorex, fit_svorim

__version__: str = _config.VERSION

__all__ = [
    "Convergence",
    "ConvergenceWarning",
    "DisorderedThresholdsWarning",
    "GporModel",
    "NpsvorModel",
    "State",
    "Status",
    "SvorModel",
    "__version__",
    "comparison",
    "datasets",
    "fit_gpor",
    "fit_npsvor",
    "fit_npsvor_path",
    "fit_redsvm",
    "fit_shashua_levin",
    "fit_svorex",
    "fit_svorim",
    "kernels",
    "load",
    "metrics",
    "model_selection",
    "plot",
    "preprocessing",
    "show_config",
]
