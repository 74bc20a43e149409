"""Fits of very many rows whose `max_time` is too short (`_basis/in_time.py`)."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from strategies import sample
from test_basis_fits import norms_squared, npsvor_values, svor_value

import ordinal
from ordinal import ConvergenceWarning, Status
from ordinal._basis import in_time
from ordinal._npsvor.job import Job

pytestmark = pytest.mark.filterwarnings(
    "ignore::ordinal.DisorderedThresholdsWarning"  # of Shashua and Levin's method
)
METHODS = [
    ordinal.fit_svorim, ordinal.fit_svorex, ordinal.fit_shashua_levin,
    ordinal.fit_redsvm, ordinal.fit_npsvor, ordinal.fit_svmop,
]  # fmt: skip
each_fit = pytest.mark.parametrize("fit", METHODS, ids=lambda fit: fit.__name__)
ENOUGH = 60.0  # seconds


@pytest.fixture
def rows(monkeypatch):
    """3000 rows are many, and small models of them are worth a comparison."""
    small = {"_MANY": 3000, "_FIRST": 200, "_FIRST_BASIS": 10, "_MOST": 60}
    for name, value in small.items():
        monkeypatch.setattr(in_time, name, value)
    return sample(3000, 5, noise=1.0)


@pytest.fixture
def hopeless(monkeypatch):
    """No fit to all rows is begun."""
    monkeypatch.setattr(in_time, "_HOPE", 0.0)


def values(model, X, y, C):
    """(P) of each problem, by its definition."""
    if isinstance(model, ordinal.NpsvorModel):
        return npsvor_values(model, X, y, C)
    if isinstance(model, ordinal.SvmModel):
        return partition_values(model, X, y, C)
    return np.array([svor_value(model, X, y, model.method)])


def partition_values(model, X, y, C):
    """(P) of ordinal/svm.py of every "rank above k", by its definition."""
    f, norms, values = model.decision_function(X), norms_squared(model), []
    for k in range(4):
        above = y > k
        far = np.where(above, y - k, k + 1 - y).astype(float)
        for side in (above, ~above):
            far[side] /= far[side].mean()
        losses = far * np.maximum(0, 1 - np.where(above, 1, -1) * f[:, k])
        values.append(0.5 * norms[k] + C * losses.sum())
    return np.array(values)


def parts(model):
    return model.convergence.parts or (model.convergence,)


def cost(fit, C):
    return {"C1" if fit is ordinal.fit_npsvor else "C": C}


@pytest.mark.slow
@pytest.mark.parametrize("share", [1e-9, 0.01])
@each_fit
def test_a_fit_that_is_stopped_is_the_better_of_two(fit, share, rows, monkeypatch):
    """Of the same (P), whose value tells which of the two the model is."""
    monkeypatch.setattr(in_time, "_HOPE", np.inf)
    monkeypatch.setattr(in_time, "_TO_ALL", share)
    X, y = rows
    options = {**cost(fit, 100.0), "gamma": 1.0}
    with pytest.warns(ConvergenceWarning, match=f"{fit.__name__}: max_time") as caught:
        model = fit(X, y, **options, max_time=4.0)
    found = model.convergence
    assert found.status is Status.MAX_TIME
    assert found.sample is None
    # scores for which there is no time have the rounding of single precision
    assert_allclose(
        [part.primal for part in parts(model)], values(model, X, y, 100.0), rtol=1e-3
    )
    assert all(part.dual <= part.primal for part in parts(model))
    on_basis = fit(X, y, **options, basis=10).convergence
    assert found.primal < 1.05 * on_basis.primal
    if share < 0.01:  # no time for a step to the whole matrix
        assert found.basis == len(model.support)
        text = str(next(w.message for w in caught if w.category is ConvergenceWarning))
        assert f"fitted on {found.basis} basis rows instead" in text


@pytest.mark.slow
@each_fit
def test_a_model_of_a_sample_is_exact_for_the_sample(fit, rows, hopeless, monkeypatch):
    """Whose rows weigh 1, or as much as all rows; and it says so, in a file, too."""
    monkeypatch.setattr(in_time, "_MOST", 0)
    monkeypatch.setattr(in_time, "_FIRST_BASIS", 1)  # which is the worse model
    drawn, part = [], in_time.parted

    def parted(problem, kernel, train, test, share=None):
        drawn.append((train, share))
        return part(problem, kernel, train, test, share)

    monkeypatch.setattr(in_time, "parted", parted)
    X, y = rows
    message = r"max_time.* violation inf .*, fitted to \d+ rows only"
    with pytest.warns(ConvergenceWarning, match=message):
        model = fit(X, y, **cost(fit, 1.0), gamma=0.3, max_time=ENOUGH)
    found = model.convergence
    assert found.basis is None
    assert found.primal == np.inf
    assert found.dual is None
    same = [
        fit(
            X[train], y[train], **cost(fit, 1.0), gamma=0.3,
            sample_weight=share, classes=np.unique(y),
        )
        for train, share in drawn
        if train.size == found.sample
    ]  # fmt: skip
    scores = [other.decision_function(X[:50]) for other in same]
    assert any(np.array_equal(f, model.decision_function(X[:50])) for f in scores)
    # what weighs as much as all rows has the weight of each, times as many
    shares = {share[0] * train.size for train, share in drawn if share is not None}
    assert_allclose(sorted(shares), len(X))


@pytest.mark.slow
@each_fit
def test_where_probabilities_are_wanted_it_is_a_basis(fit, rows, hopeless):
    """As rows of a sample are no rows that its model was not fitted to."""
    X, y = rows
    with pytest.warns(ConvergenceWarning, match=r"fitted on \d+ basis rows instead"):
        model = fit(X, y, gamma=0.3, max_time=3.0, probability=True)
    found = model.convergence
    assert found.basis == len(model.support)
    assert found.status is Status.MAX_TIME
    assert_allclose([p.primal for p in parts(model)], values(model, X, y, 1.0), 1e-6)
    assert {part.dual for part in parts(model)} == {0.0}
    assert_allclose(model.predict_proba(X[:20]).sum(axis=1), 1.0)


@pytest.mark.slow
@each_fit
def test_what_the_model_is_stays_with_it(fit, rows, hopeless, tmp_path):
    X, y = rows
    with pytest.warns(ConvergenceWarning):
        model = fit(X, y, max_time=0.5)
    model.save(tmp_path / "model")
    assert ordinal.load(tmp_path / "model").convergence == model.convergence
    found = model.convergence
    assert (found.sample is None) != (found.basis is None)
    for part in found.parts:
        assert (part.sample, part.basis) == (found.sample, found.basis)
    text = "rows only" if found.basis is None else "basis rows instead"
    assert text in str(model)


@each_fit
def test_no_time_at_all(fit, rows):
    X, y = rows
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = fit(X, y, max_time=1e-9)
    assert np.isin(model.predict(X[:50]), y).all()


@each_fit
def test_a_callback_ends_it_at_the_first_small_model(fit, rows):
    X, y = rows
    seen = []
    with pytest.warns(ConvergenceWarning, match="the callback returned a true value"):
        model = fit(X, y, max_time=ENOUGH, callback=lambda s: seen.append(s) or True)
    assert model.convergence.status is Status.STOPPED
    assert model.convergence.sample <= 201


@pytest.mark.slow
@each_fit
def test_a_fit_that_needs_less_than_its_time_is_exact(fit, rows):
    X, y = rows
    model, plain = (fit(X, y, max_time=t) for t in (ENOUGH, None))
    assert model.convergence.converged
    assert_array_equal(model.coef, plain.coef)
    assert (model.convergence.sample, model.convergence.basis) == (None, None)


@pytest.mark.slow
@pytest.mark.parametrize("late", [(1, 2), (0, 1, 2)])
def test_points_of_a_path_give_way_one_by_one(late, rows, monkeypatch):
    monkeypatch.setattr(in_time, "_HOPE", np.inf)
    exact, path = Job.fit, [{"C1": C} for C in (0.1, 1.0, 10.0)]

    def fit(self, problem, products=None):
        models, used = exact(self, problem, products)
        if problem.n_samples < 3000:
            return models, used
        for i in late:
            end = models[i].convergence
            parts = [replace(p, status=Status.MAX_TIME, primal=1e9) for p in end.parts]
            models[i] = replace(models[i], convergence=type(end).of_parts(parts))
        return models, used

    monkeypatch.setattr(Job, "fit", fit)
    X, y = rows
    with pytest.warns(ConvergenceWarning, match="basis rows instead"):
        models = ordinal.fit_npsvor_path(X, y, path, gamma=0.3, max_time=ENOUGH)
    for i, (model, point) in enumerate(zip(models, path, strict=True)):
        assert (model.convergence.basis is not None) == (i in late)
        assert model.convergence.converged == (i not in late)
        found = [part.primal for part in model.convergence.parts]
        assert_allclose(found, npsvor_values(model, X, y, point["C1"]), rtol=1e-5)
