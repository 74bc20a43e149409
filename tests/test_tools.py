"""The scripts of benchmarks and reproductions, which pages name, can be started."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parent.parent / "tools"
SCRIPTS = [*TOOLS.glob("bench/[a-z]*.py"), *TOOLS.glob("reproduce/[a-z]*.py")]


@pytest.mark.slow("an interpreter for each script")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_find_the_names_that_they_use(script):
    """Their tables of methods are made before arguments are read."""
    run = subprocess.run(
        [sys.executable, str(script), "--help"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert f"usage: {script.name}" in run.stdout
