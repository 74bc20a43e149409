"""Table of the public names by module, and their import on first use.

`import ordinal` imports only this table: a module is imported when one of its names is
used, and all modules when all methods are asked for. Type checkers find the same names
in the stubs that `tools/estimators.py` writes.
"""

import os
import warnings
from importlib import import_module
from typing import Any

# Names by the public module that has them and the module that defines them. The public
# modules "companions" and "models" import the latter when a name is first used, as
# `ordinal` itself does ("").
NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    "": {
        "_model.model": ("Model", "load"),
        "_input.intervals": ("RankIntervals",),
        "_numerics.threads": ("show_config",),
        "boosting": ("fit_boosting",),
        "comparison": ("compare",),
        "gpor": ("fit_gpor",),
        "linear": ("fit_pom", "fit_pom_path", "fit_ratio"),
        "mixed": ("fit_clmm",),
        "model_selection": ("select",),
        "npsvor": ("fit_npsvor", "fit_npsvor_path"),
        "prediction_sets": ("conformal", "cross_conformal"),
        "stacking": ("fit_stacking",),
        "svor": ("fit_svorex", "fit_svorim"),
        "tlssvor": ("fit_tlssvor",),
        "xofm": ("fit_xofm",),
    },
    "companions": {
        "kdlor": ("fit_kdlor",),
        "logistic": ("fit_lat", "fit_lit"),
        "networks": ("fit_cnnor", "fit_elmor", "fit_nnor", "fit_nnpom"),
        "ofmhs": ("fit_ofmhs",),
        "opbe": ("fit_opbe",),
        "svm": ("fit_cssvc", "fit_svc", "fit_svmop", "fit_svr"),
        "svor": ("fit_redsvm", "fit_shashua_levin"),
    },
    "models": {
        "_model.explanation": ("Explanation",),
        "_model.model": ("Fit",),
        "_watch.convergence": ("Convergence", "Status"),
        "_watch.monitor": ("State",),
        "boosting": ("BoostingModel",),
        "comparison": ("EstimatorModel",),
        "gpor": ("GporModel",),
        "kdlor": ("KdlorModel",),
        "linear": ("PomModel", "RatioModel"),
        "logistic": ("LinearThresholdModel",),
        "mixed": ("ClmmModel",),
        "networks": ("CnnorModel", "ElmorModel", "NnorModel", "NnpomModel"),
        "npsvor": ("NpsvorModel",),
        "ofmhs": ("OfmhsModel",),
        "opbe": ("OpbeModel",),
        "prediction_sets": ("ConformalModel",),
        "stacking": ("StackingModel",),
        "svm": ("SvmModel", "SvrModel"),
        "svor": ("SvorModel",),
        "tlssvor": ("TlsSvorModel",),
        "xofm": ("XofmModel",),
    },
}

# Modules that users know by their names; families of methods are known by their fits.
MODULES = (
    "companions",
    "comparison",
    "data",
    "datasets",
    "exceptions",
    "inference",
    "kernels",
    "metrics",
    "model_selection",
    "models",
    "plot",
    "prediction_sets",
    "preprocessing",
)

# Functions of R, whose package `ordinal` has the same name, and those that fit their
# models.
_OF_R = {
    **dict.fromkeys(("clm", "clm2", "polr"), "fit_pom"),
    **dict.fromkeys(("clmm", "clmm2"), "fit_clmm"),
}

_PACKAGE = __name__.partition(".")[0]
_DEFINING = {*MODULES, *(module for homes in NAMES.values() for module in homes)}


def public_names(within: str = "") -> list[str]:
    """Return the public names of `ordinal` or of one of its modules, in order."""
    names = [name for homes in NAMES[within].values() for name in homes]
    return sorted([*names, *(() if within else MODULES)])


def find_public(name: str, within: str = "") -> Any:
    """Return the object of a public name, or a public module, imported if it is not.

    Raises
    ------
    AttributeError
        There is no such name.
    """
    for module, names in NAMES[within].items():
        if name in names:
            return getattr(import_module(f"{_PACKAGE}.{module}"), name)
    if not within and name in _DEFINING and "." not in name:
        return import_module(f"{_PACKAGE}.{name}")
    owner = f"{_PACKAGE}.{within}".rstrip(".")
    meant = _OF_R.get(name.removeprefix("fit_"), name)
    homes = [home for home in NAMES if meant in public_names(home)]
    remedy = f"; it is {f'{_PACKAGE}.{homes[0]}'.rstrip('.')}.{meant}" if homes else ""
    raise AttributeError(f"module '{owner}' has no attribute '{name}'{remedy}")


def import_all() -> None:
    """Import every module of the table, so that what they register is known."""
    for module in sorted(_DEFINING):
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
