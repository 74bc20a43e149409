"""Tests of what `import ordinal` loads, and that deferred imports are not noticed."""

from importlib import import_module
from pathlib import Path

import pytest
from processes import printed
from strategies import raises

import ordinal
from ordinal._model.public import MODULES, NAMES

PACKAGE = Path(ordinal.__file__).parent
FOREIGN = [
    "matplotlib", "PIL", "sklearn", "pandas", "dask", "scipy", "polars", "pyarrow",
]  # fmt: skip
# One asks for it by its name, runs the command, or has a model explain itself.
SEPARATE = (
    "ordinal.sklearn", "ordinal.preprocessing.transformer", "ordinal.__main__",
    "ordinal._command", "ordinal._dask", "ordinal._views",
)  # fmt: skip


def modules() -> set[str]:
    """Return the names of all Python modules of the package."""
    paths = [path.relative_to(PACKAGE.parent) for path in PACKAGE.rglob("*.py")]
    return {".".join(path.with_suffix("").parts) for path in paths}


def loads(script, *words):
    """Return the output of a script that may ask `loaded` for the modules of a kind."""
    return printed(LOADED + script, *words)


LOADED = """
import sys

def loaded(kind="ordinal"):
    return {name for name in sys.modules if (name + ".").startswith(kind + ".")}
"""


def test_the_command_says_what_it_is_without_numpy_and_without_any_method():
    out = loads(
        """
from contextlib import suppress
from ordinal._command.main import main

for words in (["--version"], ["--help"], ["predict", "--help"]):
    with suppress(SystemExit):
        main(words)
    if "predict" not in words:
        assert "numpy" not in sys.modules and len(loaded()) < 15
print(*loaded())
"""
    )
    assert out.startswith("ordinal ")
    assert "usage: ordinal [-h] [--version]" in out
    assert "MODEL.npz" in out
    last = out.splitlines()[-1].split()
    homes = {module for homes in NAMES.values() for module in homes}
    assert not {f"ordinal.{module}" for module in homes if module[0] != "_"} & {*last}


def test_the_top_level_has_what_the_first_hour_needs():
    assert len(dir(ordinal)) <= 45
    modules = {*MODULES}
    assert len({name for name in dir(ordinal) if name.startswith("fit_")}) <= 13
    named = {name for names in NAMES[""].values() for name in names}
    assert {*dir(ordinal)} == named | modules | {"__version__"}
    # all other names of classes, and the other methods, have one home each
    for name in [*dir(ordinal.companions), *dir(ordinal.models)]:
        assert not hasattr(ordinal, name), name


@pytest.mark.parametrize("within", NAMES)
def test_names_are_those_of_the_modules_that_the_table_says(within):
    public = import_module(f"ordinal.{within}".rstrip("."))
    for module, names in NAMES[within].items():
        home = import_module(f"ordinal.{module}")
        assert all(getattr(public, name) is getattr(home, name) for name in names)
        assert {*names} <= {*dir(public)}
        assert module[0] == "_" or getattr(ordinal, module) is home
    with pytest.raises(AttributeError, match=f"'{public.__name__}' has no attribute"):
        _ = public.fit_nothing


@pytest.mark.parametrize(("module", "name", "loaded"), [
    ("ordinal", "fit_pom", "ordinal.linear"),
    ("ordinal.companions", "fit_kdlor", "ordinal.kdlor"),
    ("ordinal.models", "PomModel", "ordinal.linear"),
])  # fmt: skip
def test_an_import_loads_few_modules_and_a_name_one_method(module, name, loaded):
    out = loads(
        f"""
import {module}

assert "{name}" in dir({module}) and not hasattr({module}, "fit_nothing")
print(len(loaded()), "numpy" in sys.modules)
from {module} import {name}

print(*loaded())
"""
    )
    first, second = out.splitlines()
    count, numpy = first.split()
    assert (int(count) < 12, numpy) == (True, "False")
    methods = {f"ordinal.{home}" for homes in NAMES.values() for home in homes}
    assert {m for m in methods if "._" not in m} & {*second.split()} == {loaded}


def test_everything_is_found_in_a_fresh_process():
    """Asking for all methods imports all modules that might register one."""
    out = loads(
        """
import ordinal
from ordinal._model.registry import methods

assert ordinal.linear.fit_pom is ordinal.fit_pom
assert not loaded("ordinal.gpor")
names = [method.name for method in methods()]
assert len(names) == len(set(names)) > 20
print(*loaded(), *(name for name in sys.argv[1:] if name in sys.modules))
""",
        *FOREIGN,
    )
    found = set(out.split())
    reached = {name for name in modules() if not name.startswith(SEPARATE)}
    reached = {name.removesuffix(".__init__") for name in reached}
    assert reached <= found
    assert not found & set(FOREIGN)


def test_fits_of_arrays_and_sources_load_no_back_end_of_dask():
    out = loads(
        """
import numpy as np
import ordinal

class Source:
    def blocks(self):
        yield X, y

X = np.random.default_rng(0).normal(size=(60, 2))
y = np.digitize(X.sum(axis=1), [-1, 1])
for rows in ((X, y), (Source(), None)):
    model = ordinal.fit_svorim(*rows, basis=5)
    ordinal.fit_tlssvor(*rows, basis=5)
    ordinal.fit_pom(*rows, l2=0.1)
    ordinal.conformal(model, *rows)
grid = ordinal.model_selection.Grid(l2=[0.1, 1.0])
ordinal.select(ordinal.fit_pom, X, y, search=grid, cv=2)
assert "ordinal._rows.reading" in loaded()
print(*loaded("ordinal._dask"), *loaded("dask"))
"""
    )
    assert out == "\n"


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Folder with a model file and a pickle, each of a model within others."""
    import pickle

    folder = tmp_path_factory.mktemp("stored")
    X, y = ordinal.datasets.make_gaussians(rng=0)
    how = ordinal.preprocessing.Standardizer
    fit = ordinal.preprocessing.PreprocessedModel.fit
    model = fit(ordinal.companions.fit_kdlor, X[::3], y[::3], preprocess=how)
    model.save(folder / "model.npz")
    (folder / "model.pickle").write_bytes(pickle.dumps(model))
    return folder


@pytest.mark.parametrize("read", [
    "from ordinal import load; model = load('model.npz')",
    "import pickle\nwith open('model.pickle', 'rb') as f: model = pickle.load(f)",
])  # fmt: skip
def test_models_are_read_in_a_fresh_process(read, stored):
    out = printed(
        f"import os, sys\nos.chdir(sys.argv[1])\n{read}\n"
        "print(type(model.model).__module__, model.predict([[10.0, 10.0]]))",
        str(stored),
    )
    assert out == "ordinal.kdlor.fit [1]\n"


@pytest.mark.slow("imports everything in a process")
def test_an_import_that_ctrl_c_cut_short_is_repeated():
    """Before a module, and after a method has registered and the next one has not."""
    printed(
        """
import sys

import ordinal
from ordinal._model import registry

class Interrupted:
    def find_spec(self, name, path, target=None):
        if name == "ordinal.svor.family":
            sys.meta_path.remove(self)
            raise KeyboardInterrupt

def cut_short(*args, register=registry.register, **options):
    register(*args, **options)
    registry.register = register
    raise KeyboardInterrupt

def interrupted():
    try:
        ordinal.fit_svorim
    except KeyboardInterrupt:
        assert "ordinal.svor" not in sys.modules
        return True

sys.meta_path.insert(0, Interrupted())
registry.register = cut_short
assert interrupted() and interrupted() and not interrupted()
fits = [method.fit for method in registry.methods()]
assert len(fits) > 20
for fit in fits:
    known = getattr(ordinal, fit.__name__, None)
    assert fit is (known or getattr(ordinal.companions, fit.__name__))
"""
    )


@pytest.mark.parametrize(("module", "name", "place"), [
    (ordinal, "fit_redsvm", "ordinal.companions.fit_redsvm"),
    (ordinal, "PomModel", "ordinal.models.PomModel"),
    (ordinal.companions, "fit_svorim", "ordinal.fit_svorim"),
    (ordinal, "clm", "ordinal.fit_pom"),
    (ordinal.companions, "fit_clmm2", "ordinal.fit_clmm"),
])  # fmt: skip
def test_a_name_of_another_module_or_of_r_is_answered_by_its_place(module, name, place):
    raises(AttributeError, f"'{name}'; it is {place}$", getattr, module, name)
