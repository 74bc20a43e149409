"""Values that contradict each other: no file is written of them, and none is read."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from internals import CSR
from scipy.sparse import csr_array
from strategies import raises, sample

import ordinal
from ordinal import model_selection, preprocessing
from ordinal.kernels import LinearARD
from ordinal.model_selection import Grid
from ordinal.preprocessing import Standardizer

X, Y = sample(60, 3)
WORDS = pd.DataFrame({"size": ["s", "m", "l"] * 20, "age": [1.0, 2, 3, 4] * 15})
MADE = {
    "pom": lambda: ordinal.fit_pom(X, Y),
    "words": lambda: ordinal.fit_pom("y ~ age * size", WORDS.assign(y=Y)),
    "nominal": lambda: ordinal.fit_pom(X, Y, nominal=["x1"]),
    "path": lambda: ordinal.fit_pom_path(X, Y, n_lambdas=3),
    "svorim": lambda: ordinal.fit_svorim(X, Y),
    "gpor": lambda: ordinal.fit_gpor(X, Y, optimize=False),
    "svc": lambda: ordinal.companions.fit_svc(X, Y, probability=True),
    "cssvc": lambda: ordinal.companions.fit_cssvc(X, Y, probability=True),
    "opbe": lambda: ordinal.companions.fit_opbe(X, Y),
    "elmor": lambda: ordinal.companions.fit_elmor(X, Y, n_hidden=5),
    "cnnor": lambda: ordinal.companions.fit_cnnor(X, Y, tol=10.0),
    "ofmhs": lambda: ordinal.companions.fit_ofmhs(X, Y),
    "xofm": lambda: ordinal.fit_xofm(X, Y),
    "conformal": lambda: ordinal.conformal(made("pom"), X, Y),
    "selection": lambda: model_selection.select(
        ordinal.fit_pom, X, Y, search=Grid(l2=[0.1, 1.0]), cv=2
    ),
    "table": lambda: preprocessing.TablePreprocessor().fit(WORDS),
}
NONE = np.zeros(0)


@cache
def made(name):
    return MADE[name]()


def variables(model, k=0, **changes):
    changed = [*model.predictor.coding.variables]
    changed[k] = replace(changed[k], **changes)
    return coding(variables=tuple(changed))(model)


def coding(**changes):
    return lambda m: predictor(coding=replace(m.predictor.coding, **changes))(m)


def predictor(**changes):
    return lambda m: {"predictor": replace(m.predictor, **changes)}


# name of the model: the changes of fields, and what the refusal says
CONTRADICTIONS = {
    "pom": [
        (predictor(column_names=("a",)), "column_names must name the 3 col"),
        (predictor(location=np.arange(1, 4)), "location must number columns, 0"),
        (predictor(location=np.zeros(3, int)), "location must number a column on"),
        (predictor(observed=np.arange(3) == 0),
         "alpha must have a parameter for each"),
        (lambda m: {"thresholds": -m.thresholds},
         "thresholds must not fall without nominal effects"),
        (lambda m: {"thresholds": m.thresholds + 1},
         "thresholds must be those that alpha and observed make"),
        (lambda m: {"statistics": replace(m.statistics, uncertainty=np.eye(9))},
         "uncertainty must have 5 rows"),
    ],
    "nominal": [
        (lambda m: {"thresholds": m.thresholds + np.array([0, np.inf])},
         "thresholds must be those that alpha and observed make"),
    ],
    "words": [
        (lambda m: variables(m, 0, reference=1), "reference must number a level"),
        (lambda m: variables(m, 1, source="age + 1"),
         "must be a column, not an expression"),
        (lambda m: variables(m, 0, source=7), "source of 'age' must be a column"),
        (lambda m: variables(m, 0, source="old + 1"), "source of 'age' must be a"),
        (coding(n_features=3), "feature_names must name the columns that are read"),
        # names for so many columns would fill the memory
        (coding(feature_names=None, n_features=10**13),
         "coding must read the n_features columns"),
        (coding(terms=((2,),)), "terms must number variables"),
        (coding(terms=((0, 0),)), "terms must consist of one or more"),
        (coding(terms=((),)), "terms must consist of one or more"),
        (coding(offsets=(1,)), "offsets must be numeric"),
    ],
    "path": [
        (lambda m: {"models": (), "lambdas": NONE}, "a path needs a model"),
        (lambda m: {"lambdas": m.lambdas[::-1].copy()}, "lambdas must not rise"),
        (lambda m: {"models": (*m.models[:2], made("nominal"))},
         "must have the same c"),
    ],
    "svorim": [
        (lambda m: {
             "kernel": LinearARD(np.ones(3)),
             "support": CSR.from_any(csr_array(m.support), "X"), },
         "a LinearARD kernel takes no CSR support"),
    ],
    "gpor": [
        (lambda m: {"thresholds": -m.thresholds}, "thresholds must not fall"),
        (lambda m: {"noise": 0.0}, "GporModel.noise must be positive"),
        (lambda m: {"noise": np.inf}, "GporModel.noise must be finite"),
        (lambda m: {"kernel": LinearARD(np.ones(2))},
         "the kernel must have 3 relevances"),
    ],
    "svc": [
        (lambda m: {"present": m.classes == 0}, "two or more ranks must be present"),
        (lambda m: {"present": m.classes > 0}, "the hyperplanes of 2 ranks"),
    ],
    "cssvc": [(lambda m: {"cost": -np.ones((3, 3))}, "cost must")],
    "opbe": [(lambda m: {"cuts": np.zeros((3, 3))}, "cuts must have two columns")],
    "elmor": [
        (lambda m: {"observed": m.classes > 0}, "one rank more than there are out")
    ],
    "cnnor": [
        (lambda m: {"observed": m.classes > 0}, "one rank more than there are pai")
    ],
    "ofmhs": [
        (lambda m: {"pairs": np.triu(m.pairs) + np.eye(3)}, "pairs must be symmet")
    ],
    "xofm": [
        (lambda m: {
             "node_mass": m.node_mass[:-1], "node_between": m.node_between[:-1], },
         "node_mass must have one entry per node"),
    ],
    "conformal": [
        (lambda m: {"ranks": m.ranks + 3}, "scores must not be empty"),
        (lambda m: {"fold_models": (replace(m.model, classes=m.classes + 1),)},
         "the models of the folds must have the same classes"),
    ],
    "selection": [
        (lambda m: {"best": 2}, "best and one_se must number points, and splits")
    ],
    "table": [
        (lambda m: {"coding": with_variable(m, fill=9.0)}, "fill must number a level"),
        (lambda m: {"coding": with_variable(m, labels=None, full=False,
                                            fill=np.nan, marks_missing=True)},
         "marks_missing is for columns with a value"),
        (lambda m: {"standardizer": Standardizer(np.zeros(9), np.ones(9))},
         "standardizer must be of the columns that"),
    ],
}  # fmt: skip


def with_variable(table, **changes):
    """Return the coding of a table whose variables of words have other fields."""
    own = table.coding.variables
    made = [v if v.labels is None else replace(v, **changes) for v in own]
    return replace(table.coding, variables=tuple(made))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [(name, *case) for name, cases in CONTRADICTIONS.items() for case in cases],
)
def test_they_are_refused(name, change, message, tmp_path):
    model = made(name)
    model.save(tmp_path / "good")
    raises(ValueError, message, replace(model, **change(model)).save, tmp_path / "bad")
    assert [p.name for p in tmp_path.iterdir()] == ["good"]
