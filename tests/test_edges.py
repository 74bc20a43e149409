"""Numbers at the edge of what a double can hold, wherever a caller may put them."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import ordinal
from ordinal import kernels
from ordinal.model_selection import UniformDesign
from ordinal.preprocessing import Binning

BEYOND = 10**400  # an integer that no double holds
X, Y = ordinal.datasets.make_gaussians(6, rng=0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ordinal.fit_tlssvor(X, Y, u=BEYOND), "u must be a number above 2 eta"),
        (lambda: kernels.ARD([BEYOND]), "gamma must be positive and finite"),
        (lambda: kernels.LinearARD([1, -BEYOND]), "gamma must be positive and finite"),
        (lambda: kernels.RBF(Fraction(BEYOND)), "gamma must be a positive finite"),
        (lambda: kernels.Polynomial(degree=BEYOND), "degree must be a positive int"),
        (lambda: Binning([BEYOND]), "edges must be a finite, non-empty vector"),
        (lambda: ordinal.fit_svorim([[0], [BEYOND]], [0, 1]), "X must be finite; "),
        (lambda: ordinal.fit_gpor(X, Y, start={"gamma": BEYOND}), "start.'gamma'. mus"),
        (
            lambda: ordinal.fit_gpor(X, Y, start={"thresholds": [0, BEYOND]}),
            "start.'thresholds'. must increase",
        ),
        (lambda: ordinal.fit_gpor(X, Y, basis=Fraction(BEYOND)), "basis as a share mu"),
        (
            lambda: ordinal.fit_svorim(X, Y, sample_weight=[BEYOND] * len(Y)),
            "sample_weight must be finite and >= 0",
        ),
        (lambda: UniformDesign(C=(1, BEYOND)), r"C\[1\] must be a positive finite"),
        (
            lambda: UniformDesign(others={"epsilon": (0, BEYOND)}),
            r"epsilon\[1\] must be a finite number",
        ),
    ],
)
def test_an_integer_beyond_the_largest_double_is_refused(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()


@pytest.mark.parametrize("value", [[], {}, 5, None, "a", (1,), (1, 2, 3), {1, 2}])
def test_a_range_is_two_numbers(value):
    with pytest.raises(ValueError, match=r"^C must be two numbers, \(low, high\), got"):
        UniformDesign(C=value)


def test_a_range_increases_and_the_design_holds_floats():
    with pytest.raises(ValueError, match=r"^gamma must be \(low, high\) with low < hi"):
        UniformDesign(gamma=(2, 1))
    with pytest.raises(ValueError, match="n_points must be two numbers, got 13"):
        UniformDesign(n_points=13)
    with pytest.raises(ValueError, match="others must be a mapping, got "):
        UniformDesign(others=[(0, 1)])
    assert UniformDesign(C=np.array([1, 2])).C == (1.0, 2.0)


def test_integers_of_any_length_that_a_double_holds_are_numbers():
    assert_array_equal(Binning([2**70, 2.0**71]).edges, [2.0**70, 2.0**71])
    assert kernels.ARD([2**70]).gamma[0] == 2.0**70
    with pytest.raises(TypeError, match="edges must hold real numbers"):
        Binning(["1.5"])


def test_a_kernel_holds_plain_numbers():
    kernel = kernels.Polynomial(np.int8(2), Fraction(1, 2), np.float32(1))
    assert [type(value) for value in (kernel.degree, kernel.gamma, kernel.coef0)] == [
        int,
        float,
        float,
    ]
