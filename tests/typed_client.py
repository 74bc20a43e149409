"""A client as type checkers see it."""

import numpy as np
import pandas as pd

import ordinal
from ordinal.model_selection import Grid, nested, stratified_kfold
from ordinal.preprocessing import TablePreprocessor
from ordinal.sklearn import POM, SVORIM, scorer

X = np.arange(60.0).reshape(30, 2)
y = np.arange(30) // 10
frame = pd.DataFrame(X, columns=["a", "b"])

fits: dict[str, ordinal.models.Fit] = {
    "linear": ordinal.fit_pom,
    "kernel": ordinal.fit_svorim,
    "scores": ordinal.fit_xofm,
}
models: dict[str, ordinal.Model] = {name: fit(X, y) for name, fit in fits.items()}
errors = {
    name: ordinal.metrics.mae(y, model.predict(X)) for name, model in models.items()
}
best: str = min(errors, key=lambda name: errors[name])

svorim = ordinal.fit_svorim(frame, y, C=10.0, probability=True)
thresholds: np.ndarray = svorim.thresholds
raw = ordinal.fit_svorim(frame, y, preprocess=TablePreprocessor())
kept = raw.preprocessor.feature_names

found = ordinal.select("svorim", X, y, search={"C": [1.0, 10.0]}, cv=3)
chosen: ordinal.Model | None = found.model
assert chosen is not None
labels: np.ndarray = chosen.predict(X)
score: float = found.best_score
by_grid = ordinal.select(ordinal.fit_pom, X, y, search=Grid(l2=[0.1, 1.0]))
test = nested(ordinal.fit_pom, X, y, search=Grid(l2=[0.1, 1.0]), outer=2)

compared = ordinal.compare(X, y, methods=["pom", "svorim"], cv=3, progress=False)
names: tuple[str, ...] = compared.methods
table = compared.table()
mean: np.ndarray = table["mae"]
winner: ordinal.Model = compared.best
again: ordinal.Model = compared.refit("pom")
predicted: np.ndarray = winner.predict(X)
html: str = compared._repr_html_()

explained: ordinal.models.Explanation = chosen.explain(X)
importance: np.ndarray = explained.importance
svorim.save("model.npz")
loaded: ordinal.Model = ordinal.load("model.npz")
same: ordinal.models.SvorModel = ordinal.load("model.npz", ordinal.models.SvorModel)
status: ordinal.models.Status = same.convergence.status

estimator = SVORIM(C=10.0, kernel="linear")
C: float = estimator.C
fitted = estimator.fit(X, y).predict(X)
linear = POM(l2=0.1).fit(X, y)
svorim.predict([{"a": 1.0, "b": 2.0}, {"a": 1, "b": 2.0, "name": "x"}])
mae = scorer("mae")(linear, X, y)
sets = ordinal.conformal(loaded, X, y, coverage=0.9).predict_set(X)
for train, _ in stratified_kfold(y, 3):
    ordinal.fit_pom(X[train], y[train], callback=lambda state: state.n_iter > 100)
