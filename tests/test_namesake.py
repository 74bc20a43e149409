"""The other distribution whose package is called `ordinal`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ordinal
from ordinal._model.public import warn_of_namesake


def installed(folder, *names):
    """Make a folder with these distributions; return the path of a package in it."""
    for name in ["ordinal", "numpy", "numpy-2.0.0.dist-info", *names]:
        (folder / name).mkdir()
    return str(folder / "ordinal")


@pytest.mark.parametrize(
    "record", ["ordinal-1.0.3.dist-info", "Ordinal-2.dist-info", "ordinal-1.egg-info"]
)
def test_a_record_of_the_other_distribution_warns_and_no_other_one(record, tmp_path):
    package = installed(
        tmp_path, "ordinal_regression-0.1.0.dist-info", "ordinal_xai-0.2.1.dist-info",
        "ordinal-notes", "ordinalcorr-0.9.0.dist-info", "cardinal-1.0.dist-info",
    )  # fmt: skip
    warn_of_namesake(package)  # a warning would be an error
    (tmp_path / record).mkdir()
    with pytest.warns(UserWarning, match="uninstall both") as caught:
        warn_of_namesake(package)
    assert str(tmp_path) in str(caught[0].message)


def test_a_folder_that_cannot_be_listed_is_no_error(tmp_path):
    warn_of_namesake(str(tmp_path / "archive.zip" / "ordinal"))


@pytest.mark.parametrize("theirs", ["last", "last, and uninstalled"])
def test_the_command_says_that_its_package_was_replaced(theirs, tmp_path):
    """Files that both have are those of the distribution that came last."""
    (tmp_path / "ordinal").mkdir()
    for path in Path(ordinal.__file__).parent.iterdir():
        if path.name != "__init__.py":
            (tmp_path / "ordinal" / path.name).symlink_to(path)
    if theirs == "last":
        (tmp_path / "ordinal" / "__init__.py").write_text("")
    run = "from ordinal._command.main import main; raise SystemExit(main())"
    done = subprocess.run(
        [sys.executable, "-c", run, "--version"], text=True, capture_output=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)}, cwd=tmp_path,
    )  # fmt: skip
    if done.returncode == 0:
        pytest.skip("an editable installation, which is found first")
    assert done.returncode == 2
    assert done.stderr.startswith("ordinal: error: the package beside ")
    assert done.stderr.endswith("install the one that is meant\n")


def test_the_package_looks_beside_itself_when_it_is_imported(tmp_path):
    """Run it in a process of its own; the warning names the line that imports it."""
    package = Path(ordinal.__file__).parent
    (tmp_path / "ordinal").symlink_to(package, target_is_directory=True)
    (tmp_path / "ordinal-1.0.3.dist-info").mkdir()
    (tmp_path / "caller.py").write_text("import ordinal\nprint(ordinal.__file__)\n")
    done = subprocess.run(
        [sys.executable, "caller.py"], cwd=tmp_path, text=True, capture_output=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)}, check=True,
    )  # fmt: skip
    if str(tmp_path) not in done.stdout:
        pytest.skip("an editable installation, which is found first")
    told = done.stderr.splitlines()
    assert "caller.py:1: UserWarning: the distribution 'ordinal' is" in told[0]
