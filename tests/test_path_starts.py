"""Points of a path take what they do not name from the arguments of the fit."""

import pytest
from internals import path_of
from numpy.testing import assert_allclose
from strategies import sample

import ordinal


@pytest.mark.parametrize(("fit", "name", "values", "other"), [
    (ordinal.companions.fit_svr, "epsilon", (0.1, 0.4), {"C": 3.0}),
    (ordinal.companions.fit_kdlor, "ridge", (1e-3, 1e-1), {"C": 3.0}),
    (ordinal.companions.fit_ofmhs, "pair_ratio", (1.0, 2.0), {"l1": 0.05}),
    (ordinal.fit_pom, "l2", (0.1, 0.3), {"l1": 0.05}),
    (ordinal.fit_boosting, "n_rounds", (5, 9), {"n_leaves": 4}),
])  # fmt: skip
def test_a_point_has_the_argument_of_the_fit_where_it_names_none(
    fit, name, values, other
):
    X, y = sample(60, 3, noise=1.0)
    own, given = values
    points = [{}, {name: given}]
    models, _ = path_of(fit).fit(X, y, points, None, None, **{name: own}, **other)
    full = [{name: own}, {name: given}]
    for model, point in zip(models, full, strict=True):
        alone = fit(X, y, **point, **other)
        kept, of_alone = (getattr(m, "statistics", m) for m in (model, alone))
        assert getattr(kept, name) == getattr(of_alone, name) == point[name]
        if (C := other.get("C")) is not None:
            assert model.C == C
        assert_allclose(
            model.convergence.primal, alone.convergence.primal, rtol=1e-3, atol=1e-6
        )
