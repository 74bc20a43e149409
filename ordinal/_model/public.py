"""Table of the public names by module, and their import on first use.

`import ordinal` imports only this table: a module is imported when one of its names is
used, and all modules when all methods are asked for. Type checkers find the same names
in `ordinal/__init__.pyi`, which `tools/estimators.py` writes.
"""

import os
import warnings
from importlib import import_module
from typing import Any

# Names of a module with an empty tuple are reached through the module, as in
# `ordinal.metrics.mae`.
NAMES: dict[str, tuple[str, ...]] = {
    "_watch.convergence": (
        "ApproximationWarning",
        "CollinearColumnsWarning",
        "Convergence",
        "ConvergenceWarning",
        "DisorderedThresholdsWarning",
        "EmptyColumnsWarning",
        "Status",
        "UnknownLevelsWarning",
        "UnnamedColumnsWarning",
        "UnscaledFeaturesWarning",
    ),
    "_model.explanation": ("Explanation",),
    "_model.model": ("Fit", "Model", "load"),
    "_watch.monitor": ("State",),
    "_numerics.threads": ("show_config",),
    "boosting": ("BoostingModel", "fit_boosting"),
    "comparison": ("Comparison", "compare"),
    "data": (),
    "datasets": (),
    "gpor": ("GporModel", "fit_gpor"),
    "inference": (),
    "kdlor": ("KdlorModel", "fit_kdlor"),
    "kernels": (),
    "linear": (
        "PomModel",
        "PomPath",
        "RatioModel",
        "fit_pom",
        "fit_pom_path",
        "fit_ratio",
    ),
    "logistic": ("LinearThresholdModel", "fit_lat", "fit_lit"),
    "metrics": (),
    "mixed": ("ClmmModel", "fit_clmm"),
    "model_selection": ("Selection", "select"),
    "networks": (
        "CnnorModel",
        "ElmorModel",
        "NnorModel",
        "NnpomModel",
        "fit_cnnor",
        "fit_elmor",
        "fit_nnor",
        "fit_nnpom",
    ),
    "npsvor": ("NpsvorModel", "fit_npsvor", "fit_npsvor_path"),
    "ofmhs": ("OfmhsModel", "fit_ofmhs"),
    "opbe": ("OpbeModel", "fit_opbe"),
    "plot": (),
    "prediction_sets": ("ConformalModel", "conformal", "cross_conformal"),
    "preprocessing": (),
    "svm": ("SvmModel", "SvrModel", "fit_cssvc", "fit_svc", "fit_svmop", "fit_svr"),
    "svor": (
        "SvorModel",
        "fit_redsvm",
        "fit_shashua_levin",
        "fit_svorex",
        "fit_svorim",
    ),
    "tlssvor": ("TlsSvorModel", "fit_tlssvor"),
    "xofm": ("XofmModel", "fit_xofm"),
}

# Modules that users know by their names; families of methods are known by their fits.
MODULES = (
    "comparison",
    "data",
    "datasets",
    "inference",
    "kernels",
    "metrics",
    "model_selection",
    "plot",
    "prediction_sets",
    "preprocessing",
)

_HOMES = {name: module for module, names in NAMES.items() for name in names}
_PACKAGE = __name__.partition(".")[0]


def public_names() -> list[str]:
    """Return all public names, of modules as well, in order."""
    return sorted([*_HOMES, *MODULES])


def find_public(name: str) -> Any:
    """Return a public module or the object of a public name, imported where it is not.

    Raises
    ------
    AttributeError
        There is no such name.
    """
    if name in _HOMES:
        return getattr(import_module(f"{_PACKAGE}.{_HOMES[name]}"), name)
    if name in NAMES:
        return import_module(f"{_PACKAGE}.{name}")
    raise AttributeError(f"module '{_PACKAGE}' has no attribute '{name}'")


def import_all() -> None:
    """Import every module of the table, so that what they register is known."""
    for module in NAMES:
        import_module(f"{_PACKAGE}.{module}")


_RECORDS = ".dist-info", ".egg-info"  # folders by which installers record packages


def warn_of_namesake(package: str) -> None:
    """Warn the importer of a package if a distribution `ordinal` is installed as well.

    Both are in the same folder, so that files of one have replaced files of the other.
    Only the names in the folder are read, which takes 0.1 ms for 230 entries; importing
    `importlib.metadata` alone would take more than 10 ms.
    """
    folder = os.path.dirname(package)
    try:
        names = os.listdir(folder)
    except OSError:
        return  # an archive, or a folder that cannot be listed
    found = [n for n in names if n.lower().startswith("ordinal-")]
    if any(name.endswith(_RECORDS) for name in found):
        warnings.warn(
            "the distribution 'ordinal' is installed beside 'ordinal-regression' in "
            f"{folder}, and files of one have replaced files of the other: uninstall "
            "both, then install the one that is meant",
            UserWarning,
            stacklevel=3,
        )
