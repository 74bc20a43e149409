"""Compiled loops refuse arrays whose shapes contradict each other: they would read and
write beyond their ends. Every array of a good call is made shorter in turn, along each
of its axes."""

import numpy as np
import pytest
from numpy import int32, zeros
from strategies import raises

from ordinal._solvers import (
    _cumulative,
    _factorization,
    _gp_products,
    _group_steps,
    _kernel_values,
    _ordinal_probit,
    _pair_descent,
)
from ordinal._solvers._active_set import ActiveSet
from ordinal._solvers._pair_smo import Smo

ones, square = np.ones, np.eye(3)
gap = np.array([np.inf, 1.0, np.inf])
ranks = np.array([0, 1, 2], int32)
# one feature of two pieces, and their 5 nodes
first, kind = np.array([0, 3], int32), ones(1, np.int8)
node, share = zeros((2, 1), int32), zeros((2, 1))
CALLS = {
    "rbf": (_kernel_values.rbf, zeros((2, 3)), zeros(2), zeros(3), 1.0, zeros((2, 3))),
    "row_terms": (
        _cumulative.row_terms, 0, ones(3), zeros(3), ones(3), zeros((6, 3)), 1,
    ),
    "loss": (
        _ordinal_probit.loss, zeros(3), ones(3), ranks, zeros(2), gap, zeros((3, 3)), 1,
    ),
    "derivatives": (
        _ordinal_probit.derivatives, zeros(3), ones(3), ranks, zeros(2), gap,
        zeros((7, 3)), 1,
    ),
    "sites": (
        _ordinal_probit.sites, zeros(3), ones(3), ones(3), zeros(3), ones(3), ranks,
        zeros(2), gap, zeros((2, 3)), zeros((5, 3)), 1.0, 1,
    ),
    "log_probability": (
        _ordinal_probit.log_probability, zeros(3), ones(3), zeros(2), gap,
        zeros((3, 3)), 1,
    ),
    "scaled": (_gp_products.scaled, square, ones(3), 0, 3, zeros((3, 3)), 1),
    "column_norms": (_gp_products.column_norms, square, ones(3)),
    "steps": (
        _group_steps.steps, zeros(4), zeros((3, 4)), zeros((3, 4)), ones((3, 4)),
        zeros((3, 4)), zeros(3), 0.7, zeros(3), zeros((3, 4)),
        zeros((3, 4), np.uint8), zeros((_group_steps.n_chunks(3), 4)), zeros(3), 1,
    ),
    "descend": (
        _pair_descent.descend, square, zeros(1, int32), ones(1, int32), 1.0, 1.0, 0.0,
        1, zeros(3), zeros(2), zeros((1, 3)),
    ),
    "ActiveSet": (ActiveSet, square, zeros(1), 9),
    "minimise": (
        ActiveSet(square, zeros(2), 9).minimise, zeros(6), zeros(3), zeros(6),
        zeros(6), zeros(6), zeros(6), 1e-3, 9,
    ),
    "n_nodes": (_factorization.n_nodes, first, kind),
    "spread": (_factorization.spread, zeros((3, 4)), first, kind, zeros((5, 4))),
    "gather": (_factorization.gather, zeros((5, 4)), first, kind, zeros((3, 4))),
    "locate": (
        _factorization.locate, zeros((2, 1)), np.arange(3.0), np.array([0, 3]),
        np.array([0, 5]), node, share,
    ),
    "scores": (
        _factorization.scores, node, share, zeros((5, 4)), zeros((2, 4)), zeros(2), 1,
    ),
    "scatter": (
        _factorization.scatter, node, share, zeros((5, 4)), zeros((2, 4)), zeros(2), 1,
        zeros((2, 5, 4)), 1,
    ),
    "hinge": (
        _factorization.hinge, zeros(2), np.arange(2), zeros(2, int32), ones(2), 2, 1.0,
        zeros(2), zeros((3, 2)), zeros(6),
    ),
}  # fmt: skip
# a shorter array of these is another good call
FREE = {("scores", 2, 0), ("locate", 1, 1)}


@pytest.mark.parametrize("name", CALLS)
def test_shorter_arrays_are_refused(name):
    call, *good = CALLS[name]
    call(*good)
    for i, array in enumerate(good):
        for axis in range(np.ndim(array)):
            if (name, i, axis) in FREE:
                continue
            less = np.ascontiguousarray(np.delete(array, -1, axis))
            bad = [less if i == k else other for k, other in enumerate(good)]
            raises(ValueError, "inconsistent array shapes", call, *bad)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: _ordinal_probit.loss(zeros(3), ones(3), ranks + 1, zeros(2), gap,
                                  zeros((3, 3)), 1), "no such rank"),
    (lambda: _ordinal_probit.loss(zeros(3), ones(3), ranks - 1, zeros(2), gap,
                                  zeros((3, 3)), 1), "no such rank"),
    (lambda: _cumulative.row_terms(5, *ones((3, 3)), zeros((6, 3)), 1),
     "no such link"),
    (lambda: _cumulative.row_terms(-1, *ones((3, 3)), zeros((6, 3)), 1),
     "no such link"),
    (lambda: _pair_descent.descend(
        square, zeros(1, int32), np.full(1, 2, int32), 1.0, 1.0, 0.0, 1, zeros(3),
        zeros(2), zeros((1, 3))), "features that are not there"),
    (lambda: _gp_products.scaled(square, ones(3), -1, 3, zeros((3, 3)), 1),
     "inconsistent array shapes"),
    (lambda: _gp_products.scaled(square, ones(3), 0, 4, zeros((3, 3)), 1),
     "inconsistent array shapes"),
    (lambda: _gp_products.scaled(square, ones(3), 2, 1, zeros((3, 3)), 1),
     "inconsistent array shapes"),
    (lambda: _kernel_values.rbf(zeros((2, 3)), zeros(2), zeros(3), 1.0,
                                zeros((2, 6))[:, ::2]), "inconsistent"),
])  # fmt: skip
def test_places_that_are_none_are_refused(call, message):
    raises(ValueError, message, call)


@pytest.mark.parametrize(
    "stretches", [[], [[0, 5, 9]], [[3, 3]], [[-1, 4]], [[4, 8], [7, 9]], [[0, 11]]]
)
def test_smo_refuses_stretches_that_are_none(stretches):
    zero = zeros(10)
    stretches = np.array(stretches or np.empty((0, 2)), int32)
    with pytest.raises(ValueError, match="stretches"):
        Smo(
            np.eye(10, dtype=np.float32), np.arange(10, dtype=int32), ones(10), zero,
            zero, zero, zero, zeros(1), False, zeros(10), zeros(2), zeros(10),
            stretches, 256, 1e-3, 10**6, 1e9,
        )  # fmt: skip
