"""Random ordinal problems that are small, valid, and include the nasty ones."""

from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ordinal import kernels
from ordinal.gpor.laplace import Likelihood


def at_most(examples: int) -> settings:
    """Return settings for a property that is costly: no more examples than this."""
    return settings(max_examples=min(examples, settings.default.max_examples))


def slow(*values):
    """Return parameter values, or tuples of several, marked as slow."""
    why = pytest.mark.slow("another value is fast")
    cases = [v if isinstance(v, tuple) else (v,) for v in values]
    return [pytest.param(*case, marks=why) for case in cases]


@contextmanager
def case(name):
    """Name the case of a loop in whatever fails within the block."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the case {name}")
        raise


def raises(error, message, call, /, *args, **options):
    """Assert that a call raises an error whose text matches a pattern."""
    with pytest.raises(error, match=message):
        call(*args, **options)


def options_of(case, *names):
    """Return the classes and weights of a case, and other arguments by name."""
    own = {name: getattr(case, name) for name in names}
    return {"classes": range(case.r), "sample_weight": case.weight, **own}


class Case(NamedTuple):
    """A training set and the arguments of `fit_npsvor` that define the problem."""

    X: np.ndarray
    y: np.ndarray  # ranks 0..r-1
    r: int
    kernel: object
    C: float
    C2: float
    epsilon: float
    weight: np.ndarray
    cost: np.ndarray | None

    @property
    def options(self):
        return options_of(self, "kernel", "C", "C2", "epsilon", "cost")

    @property
    def terms(self):
        """The same for the oracles: C, C2, epsilon, weight, cost."""
        cost = np.ones((self.r, self.r)) if self.cost is None else self.cost
        return self.C, self.C2, self.epsilon, self.weight, cost


IDENTITY = kernels.RBF(7.0)  # nearly
named_kernels = st.sampled_from(
    [kernels.Linear(), kernels.Polynomial(2, 0.3, 1.0), kernels.RBF(0.4), IDENTITY]
)

# not dyadic: C - a + a may round
costs_of_slack = st.one_of(
    st.sampled_from([1e-3, 0.3, 1.7, 30.1, 1e4]),
    st.floats(-3, 4).map(lambda e: float(10**e)),
)


@st.composite
def cost_matrices(draw, r):
    """Not symmetric; 0 on the diagonal and rising away from it, by 0 in places."""
    cost = np.zeros((r, r))
    for i in range(r):
        for step in (-1, 1):
            total, j = draw(st.sampled_from([0.3, 1.0, 2.5])), i + step
            while 0 <= j < r:
                cost[i, j] = total
                total += draw(st.sampled_from([0.0, 0.7, 3.0]))
                j += step
    return cost


def in_like_units(X):
    """Return whether no fit, by whatever weights, warns of features in much larger
    units."""
    ranges = np.ptp(X, axis=0)
    return ranges.max() <= 6 * ranges[ranges > 0].min(initial=np.inf)


@st.composite
def datasets(draw, max_n=14):
    """(X, y, r): every rank present; grid features, so rows repeat and tie often."""
    n = draw(st.integers(2, max_n))
    r = min(n, draw(st.sampled_from([2, 3, 4, n])))
    d = draw(st.integers(1, 3))
    elements = draw(st.sampled_from([st.integers(-3, 3), st.floats(-3, 3, width=16)]))
    X = draw(hnp.arrays(np.float64, (n, d), elements=elements).filter(in_like_units))
    free = draw(st.lists(st.integers(0, r - 1), min_size=n - r, max_size=n - r))
    return X, np.array(draw(st.permutations([*range(r), *free]))), r


@st.composite
def weights(draw, y):
    """Weights of rows, all 1 or some of them 0; two ranks or more have some."""
    values = st.sampled_from([0.0, 1.0, 2.0, 0.3])
    drawn = np.array(draw(st.lists(values, min_size=y.size, max_size=y.size)))
    some = draw(st.booleans()) and np.unique(y[drawn > 0]).size >= 2
    return drawn if some else np.ones(y.size)


@st.composite
def cases(draw, max_n=14, C=costs_of_slack, weighted=True, kernel=named_kernels):
    X, y, r = draw(datasets(max_n))
    weight = draw(weights(y)) if weighted else np.ones(y.size)
    own, made = draw(C), draw(kernel)
    other, epsilon = draw(st.just(own) | C), draw(st.sampled_from([0.0, 0.1, 0.2, 0.9]))
    cost = draw(st.none() | cost_matrices(r)) if weighted else None
    return Case(X, y, r, made, own, other, epsilon, weight, cost)


moderate = st.sampled_from([0.03, 0.7, 1.7, 30.1])


def sample(n, r=5, d=3, seed=0, noise=0.5):
    """(X, y) of a fixed random problem: r equally frequent ranks of a noisy sum."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X.sum(axis=1) + noise * rng.normal(size=n)
    return X, np.argsort(np.argsort(score)) * r // n


def with_gaps(X, share=0.4, seed=0):
    """A copy of X with so many of its entries missing."""
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


class SvorCase(NamedTuple):
    """A training set, one of the methods of `ordinal.svor`, and its arguments."""

    method: str
    X: np.ndarray
    y: np.ndarray  # ranks 0..r-1
    r: int
    kernel: object
    C: float
    weight: np.ndarray
    cost: np.ndarray | None

    @property
    def options(self):
        return options_of(self, "kernel", "C", "cost")

    @property
    def full_cost(self):
        """The cost matrix, also where it is the default of the method."""
        if self.cost is not None:
            return self.cost
        distance = [[abs(j - k) for k in range(self.r)] for j in range(self.r)]
        absolute = self.method in ("svorim", "redsvm")
        return np.minimum(np.array(distance, dtype=float), self.r if absolute else 1)

    @property
    def terms(self):
        """The same for the oracles: C, weight, cost."""
        return self.C, self.weight, self.full_cost

    @property
    def price(self):
        """Return the Hessian of 1/2 b_j^2, for the thresholds between ranks that have
        rows: one for each of the thresholds that ranks without rows put together."""
        return np.diff(self.held) * float(self.method == "redsvm")

    @property
    def held(self):
        """Ranks with a row of positive weight: thresholds lie between these."""
        return np.unique(self.y[self.weight > 0])


SVOR_METHODS = ["svorim", "svorex", "shashua_levin", "redsvm"]


@st.composite
def convex_costs(draw, r):
    """Rows that rise from the diagonal in steps that grow; dyadic, so exactly."""
    cost = np.zeros((r, r))
    for i in range(r):
        for side in (-1, 1):
            step, total, j = draw(st.sampled_from([0.25, 1.0, 2.5])), 0.0, i + side
            while 0 <= j < r:
                total += step
                cost[i, j] = total
                step += draw(st.sampled_from([0.0, 0.25, 3.0]))
                j += side
    return cost


@st.composite
def svor_cases(
    draw, max_n=14, C=costs_of_slack, weighted=True, kernel=named_kernels, cost=None
):
    """`cost` is a function of r that gives a strategy, default None or any matrix."""
    X, y, r = draw(datasets(max_n))
    weight = draw(weights(y)) if weighted else np.ones(y.size)
    any_cost = st.none() | convex_costs(r) | cost_matrices(r)
    method, made, factor = (
        draw(of) for of in (st.sampled_from(SVOR_METHODS), kernel, C)
    )
    own = draw(any_cost if cost is None else cost(r))
    return SvorCase(method, X, y, r, made, factor, weight, own)


class GporCase(NamedTuple):
    """A training set and hyperparameters of GPOR, in the units of f."""

    X: np.ndarray
    y: np.ndarray  # ranks 0..r-1
    r: int
    kernel: str
    gamma: np.ndarray  # one a feature; "rbf" takes the first, "linear" none
    noise: float
    thresholds: np.ndarray
    weight: np.ndarray  # whole numbers

    @property
    def start(self):
        """Draw priors in the form that `fit_gpor` takes."""
        start = {"noise": self.noise, "thresholds": self.thresholds}
        if self.kernel in ("rbf", "laplacian", "matern32"):
            start["gamma"] = self.gamma[0]
        elif self.kernel != "linear":
            start["gamma"] = self.gamma
        return start

    @property
    def made(self):
        """Return the kernel as an object of `kernels`."""
        return {
            "rbf": lambda: kernels.RBF(float(self.gamma[0])),
            "laplacian": lambda: kernels.Laplacian(float(self.gamma[0])),
            "matern32": lambda: kernels.Matern(1.5, float(self.gamma[0])),
            "ard": lambda: kernels.ARD(self.gamma),
            "linear": kernels.Linear,
            "ard_linear": lambda: kernels.LinearARD(self.gamma),
        }[self.kernel]()

    @property
    def options(self):
        own = {"kernel": self.kernel, "start": self.start, "sample_weight": self.weight}
        return {**own, "prior": None, "n_threads": 1}

    @property
    def model(self):
        """The same for the oracles: y, b, v."""
        return self.y, self.thresholds, self.noise**2

    @property
    def likelihood(self):
        return likelihood(*self.model, self.weight)


GPOR_KERNELS = ["rbf", "ard", "linear", "ard_linear", "laplacian", "matern32"]


def likelihood(y, b, v, weight=None, extra_variance=0.0, n_threads=1):
    """A `Likelihood` of ranks, thresholds and a noise variance."""
    n, b = len(y), np.asarray(b, float)
    return Likelihood(
        rank=np.asarray(y, np.int32),
        weight=np.ones(n) if weight is None else np.asarray(weight, float),
        noise=float(np.sqrt(v)),
        first=float(b[0]),
        width=np.concatenate([[np.inf], np.diff(b), [np.inf]]),
        extra_variance=np.broadcast_to(extra_variance, n).astype(float),
        n_threads=n_threads,
    )


@st.composite
def gpor_cases(
    draw, max_n=12, kernel=GPOR_KERNELS, weighted=True, decades=1.0, distinct=False
):
    """Hyperparameters within so many decades of 1; `distinct` rows differ."""
    X, y, r = draw(datasets(max_n))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if distinct:
        X = X + rng.normal(size=X.shape)
    near = st.floats(-decades, decades)
    gaps = draw(st.lists(near, min_size=r - 2, max_size=r - 2))
    first = draw(st.floats(-3, 3))
    weight = np.ones(y.size, int)
    if weighted and draw(st.booleans()):
        weight = rng.integers(1, 4, y.size)
    name = draw(st.sampled_from(kernel))
    gamma = 10 ** np.array([draw(near) for _ in range(X.shape[1])])
    noise = 10 ** draw(near)
    thresholds = first + np.append(0, np.cumsum(10 ** np.array(gaps)))
    return GporCase(X, y, r, name, gamma, noise, thresholds, weight)


class XofmCase(NamedTuple):
    """A training set for `fit_xofm`, and arguments that define the problem."""

    X: np.ndarray  # NaN is missing; column j of categories holds their numbers
    y: np.ndarray  # ranks 0..r-1
    r: int
    weight: np.ndarray
    is_category: np.ndarray
    sign: np.ndarray
    n_intervals: list[int]
    breakpoints: str
    n_factors: int
    tau: float
    l2_main: float
    l2_pair: float
    seed: int

    @property
    def options(self):
        names = "n_intervals", "breakpoints", "n_factors", "tau", "l2_main", "l2_pair"
        categorical = np.flatnonzero(self.is_category).tolist()
        own = {"categorical": categorical, "monotone": self.sign, "rng": self.seed}
        return {**options_of(self, *names), **own, "n_threads": 1}


@st.composite
def xofm_cases(draw, max_n=12, monotone=True, factors=(0, 1, 3)):
    X, y, r = draw(datasets(max_n))
    n, d = X.shape
    weight = draw(weights(y))
    is_category = np.array(draw(st.lists(st.booleans(), min_size=d, max_size=d)))
    X = np.where(is_category, np.abs(np.rint(X)), X)
    if draw(st.booleans()):
        X = np.where(draw(hnp.arrays(bool, (n, d))), np.nan, X)
    signs = st.sampled_from([-1, 0, 1] if monotone else [0])
    sign = np.array(draw(st.lists(signs, min_size=d, max_size=d)))
    sign = np.where(is_category, 0, sign)
    n_intervals = draw(st.lists(st.integers(1, 4), min_size=d, max_size=d))
    choices = ["equal", "quantile"], factors, [0.3, 1.0, 2.0], *2 * [[1e-3, 0.03]]
    more = *(draw(st.sampled_from(of)) for of in choices), draw(st.integers(0, 5))
    return XofmCase(X, y, r, weight, is_category, sign, n_intervals, *more)


class TlsCase(NamedTuple):
    """A training set and the arguments of `fit_tlssvor` that define the problem."""

    X: np.ndarray
    y: np.ndarray  # ranks 0..r-1
    r: int
    kernel: object
    C: float
    u: float
    eta: float
    weight: np.ndarray

    @property
    def options(self):
        return options_of(self, "kernel", "C", "u", "eta")

    @property
    def held(self):
        """Ranks with a row of positive weight: thresholds lie between these."""
        return np.unique(self.y[self.weight > 0])


@st.composite
def tlssvor_cases(draw, max_n=10, u=(0.7, 1.5, 3.0, np.inf), kernel=named_kernels):
    X, y, r = draw(datasets(max_n))
    weight = draw(weights(y))
    C = draw(st.sampled_from([0.01, 0.3, 1.7, 30.1]))
    eta = draw(st.sampled_from([0.05, 0.1, 0.3]))
    return TlsCase(
        X, y, r, draw(kernel), C, draw(st.sampled_from(list(u))), eta, weight
    )


@st.composite
def quadratic_programs(draw, max_n=12):
    """(K, lo, hi, pn, pp) of (Q); sum lo < 0 < sum hi, some boxes are points or
    do not hold 0."""
    n = draw(st.integers(2, max_n))
    m = draw(st.integers(1, n + 1))
    reals = st.floats(-2, 2, width=16)
    B = draw(hnp.arrays(np.float64, (n, m), elements=reals))
    K = B @ B.T
    ends = draw(hnp.arrays(np.float64, (2, n), elements=reals)) * draw(moderate)
    lo, hi = ends.min(axis=0), ends.max(axis=0)
    lo[0] = min(lo[0], -0.3 - lo[1:].sum())
    hi[0] = max(hi[0], 0.3 - hi[1:].sum())
    slopes = draw(hnp.arrays(np.float64, (2, n), elements=reals))
    return K, lo, hi, slopes.min(axis=0), slopes.max(axis=0)
