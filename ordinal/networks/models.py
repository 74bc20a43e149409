"""Models that the fits of networks return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np

from .._cumulative.likelihood import (
    Link,
    cumulative,
    exceeding,
    for_all_ranks,
    rank_probabilities,
)
from .._input.checks import check_entries
from .._input.fields import (
    DISTINCT,
    FINITE,
    LABELS,
    NONNEGATIVE,
    NOT_NAN,
    POSITIVE,
    RISING,
    SHARED,
    THRESHOLDS,
    Array,
    Length,
    Rule,
    Size,
)
from .._input.immutable import read_only
from .._input.predictions import values_of
from .._input.problem import Problem, around_ranks
from .._input.types import ArrayLike, RowsLike
from .._model.links import SoftmaxLink, falling, require_link
from .._model.model import Model, read_for
from .._model.support import finite_scores
from .._model.threshold_model import ON_PROBABILITIES, Thresholds, predicted
from .._numerics.rows import matmul
from .._watch.convergence import Convergence
from .layers import Cumulative, LayerRows, hidden_units, log_odds
from .training import TrainedNetwork

NearestRule: TypeAlias = Literal["nearest", "mode", "median", "cost"]
ScanRule: TypeAlias = Literal["scan", "mode", "median", "cost"]
CodeLoss: TypeAlias = Literal["cross_entropy", "squared"]
_LARGEST = 1e290  # largest output, so that sums of outputs are finite
_SEVERAL = Rule("name two ranks or more", lambda a: np.count_nonzero(a) > 1)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NetworkModel(Model):
    """Base of the models with one hidden layer, tanh(U'((x - mean) / scale) + a).

    Attributes
    ----------
    mean, scale : (n_features,) arrays
        Means and standard deviations of the training rows; a deviation is infinite for
        a constant column, which has no effect.
    hidden_weights : (n_features, h) array
        Weights U of the standardised features.
    hidden_bias : (h,) array
        a.
    classes : (r,) array
        Labels in rank order.
    n_features : int
    feature_names : tuple of str, or None
    convergence : Convergence
    """

    mean: Annotated[np.ndarray, Array("f8", "d"), FINITE]
    scale: Annotated[np.ndarray, Array("f8", "d"), POSITIVE]
    hidden_weights: Annotated[np.ndarray, Array("f8", "d h"), FINITE]
    hidden_bias: Annotated[np.ndarray, Array("f8", "h"), FINITE]
    classes: Annotated[np.ndarray, Array(LABELS, "r"), FINITE, DISTINCT]
    n_features: Annotated[int, Size("d")]
    feature_names: Annotated[tuple[str, ...], Length("d")] | None
    convergence: Convergence

    @property
    def n_hidden(self) -> int:
        """Number h of hidden units."""
        return self.hidden_bias.size

    def hidden(self, X: RowsLike) -> np.ndarray:
        """Return the values of the hidden units, (n, h), between -1 and 1.

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns, or if the values
            of a row are so large that a unit overflows.
        """
        return self._through(X, np.eye(self.n_hidden))

    def _through(self, X: RowsLike, V: np.ndarray) -> np.ndarray:
        """Return h(x) V' of rows for (k, h) weights V, (n, k)."""
        rows = LayerRows(read_for(self, X), self.mean, self.scale)
        U = np.vstack([self.hidden_weights, self.hidden_bias])
        out = np.empty((rows.X.shape[0], len(V)))
        with np.errstate(over="ignore", invalid="ignore"):  # seen by the check
            for part in rows.chunks():
                out[part] = matmul(hidden_units(rows[part], U), V.T)
        return finite_scores(out)


class OrderedOutputs(Model):
    """Base class of models with one output P(y > k) per threshold."""

    __slots__ = ()
    _rules = "scan", *ON_PROBABILITIES

    def decision_function(self, X: RowsLike) -> np.ndarray:
        """Return the log odds of y > k, (n, r - 1)."""
        raise NotImplementedError

    def predict_proba(self, X: RowsLike, *, as_frame: bool = False) -> np.ndarray:
        """Return the probabilities of the ranks, which are differences of the outputs.

        If the outputs P(y > k) of a row increase with k, they are first replaced by the
        nearest values, by least squares, that do not (isotonic regression).

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame
        as_frame : bool, default False
            Whether to return a pandas DataFrame, with a column per label.

        Returns
        -------
        (n, r) array, whose rows sum to 1

        Raises
        ------
        ValueError, TypeError
                As in `decision_function`.
        """
        return self._proba(self.decision_function(X))

    def _proba(self, z: np.ndarray) -> np.ndarray:
        """Return `predict_proba` of rows with these log odds."""
        above, below = log_odds(z)
        # `below` is 1 - above with all its digits, which isotonic regression keeps.
        P = rank_probabilities(-falling(-below), falling(above))
        return np.asarray(P / P.sum(axis=1, keepdims=True))

    def predict(
        self,
        X: RowsLike,
        *,
        rule: ScanRule | None = None,
        cost: ArrayLike | None = None,
    ) -> np.ndarray:
        """Predict labels by a decision rule.

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame
        rule : {"scan", "mode", "median", "cost"}, optional
            Default: the `rule` of the model or, without one, "scan", the rule of the
            paper of NNOR: the predicted rank is the first k with an output P(y > k)
            below 1/2. The others use `predict_proba`: the most probable rank, the
            median, or the rank of least expected cost. Scan and median differ only
            where outputs are out of order.
        cost : (r, r) array-like, for rule="cost" only
            cost[j, k] is the cost of predicting rank k for a row of rank j. Default
            |j - k|.

        Returns
        -------
        (n,) array of labels, of the type of `classes`, or as `Model.predict`

        Raises
        ------
        ValueError, TypeError
            As in `decision_function`; also if the rule is unknown, or if `cost` is
            passed with another rule or does not have shape (r, r).
        """
        return predicted(self, X, rule, cost)

    def _labels(self, z: np.ndarray) -> np.ndarray:
        """`predict` of rows with these log odds, by the scan."""
        passed = np.logical_and.accumulate(z >= 0, axis=1)
        return np.asarray(self.classes[passed.sum(axis=1)])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NnorModel(OrderedOutputs, NetworkModel):
    """Hidden layer with one logistic output P(y > k) per threshold.

    Attributes
    ----------
    mean, scale, hidden_weights, hidden_bias : arrays
        Parameters of the hidden layer h(x), as in `NetworkModel`.
    output_weights : (m, h) array
        v_k, one row per threshold between ranks that have training rows.
    offsets : (m,) array
        Offsets t_k. Output k is 1 / (1 + exp(t_k - v_k'h(x))).
    observed : (r,) bool array
        Whether each rank has training rows of positive weight. m is the number of such
        ranks minus one.
    loss : {"cross_entropy", "squared"}
    l2 : float
    classes : (r,) array
        Labels in rank order.
    n_features : int
    feature_names : tuple of str, or None
    convergence : Convergence
        Record of the fit. Its `primal` is (P) of `ordinal.networks` for the best
        starting point. There is no dual.
    """

    output_weights: Annotated[np.ndarray, Array("f8", "m h"), FINITE]
    offsets: Annotated[np.ndarray, Array("f8", "m"), FINITE]
    observed: Annotated[np.ndarray, Array("b1", "r"), _SEVERAL]
    loss: CodeLoss
    l2: Annotated[float, FINITE, NONNEGATIVE]

    def _check(self) -> None:
        if np.count_nonzero(self.observed) != self.offsets.size + 1:
            raise ValueError("observed must name one rank more than there are offsets")

    def decision_function(self, X: RowsLike) -> np.ndarray:
        """Return the log odds of y > k, (n, r - 1).

        They are not constrained to decrease with k. They are inf or -inf where no
        training rows lie beyond the threshold, and equal on both sides of an inner rank
        without training rows.

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns.
        """
        z = self._through(X, self.output_weights) - self.offsets
        return for_all_ranks(self.observed, z, np.inf, -np.inf)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NnpomModel(Thresholds, NetworkModel):
    """Hidden layer with a cumulative link: P(y <= j | x) = F(theta_j - v'h(x)).

    Attributes
    ----------
    mean, scale, hidden_weights, hidden_bias : arrays
        Parameters of the hidden layer h(x), as in `NetworkModel`.
    output_weights : (h,) array
        v.
    thresholds : (r - 1,) array
        Thresholds theta, in order. They are -inf or +inf where no training rows lie
        beyond them, and equal on both sides of an inner rank without training rows.
    link : {"logit", "probit", "cloglog", "loglog", "cauchit"}
        F.
    l2 : float
    classes : (r,) array
        Labels in rank order.
    n_features : int
    feature_names : tuple of str, or None
    convergence : Convergence
        Record of the fit. Its `primal` is (P) of `ordinal.networks` for the best
        starting point. There is no dual.
    """

    _rules = ON_PROBABILITIES
    output_weights: Annotated[np.ndarray, Array("f8", "h"), FINITE]
    thresholds: Annotated[np.ndarray, Array("f8", "r-1"), THRESHOLDS, RISING]
    link: Link
    l2: Annotated[float, FINITE, NONNEGATIVE]

    def decision_function(self, X: RowsLike) -> np.ndarray:
        """Return the score f(x) = v'h(x), (n,), which increases with the rank.

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns.
        """
        return self._through(X, self.output_weights[None])[:, 0]

    def predict_proba(self, X: RowsLike, *, as_frame: bool = False) -> np.ndarray:
        """Return the probabilities of the ranks, F(theta_j - f) - F(theta_(j-1) - f).

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame
        as_frame : bool, default False
            Whether to return a pandas DataFrame, with a column per label.

        Returns
        -------
        (n, r) array, whose rows sum to 1

        Raises
        ------
        ValueError, TypeError
                As in `decision_function`.
        """
        eta = self.thresholds - self.decision_function(X)[:, None]
        P = rank_probabilities(cumulative(self.link, eta), exceeding(self.link, eta))
        return np.asarray(P / P.sum(axis=1, keepdims=True))

    def predict(
        self,
        X: RowsLike,
        *,
        rule: Literal["mode", "median", "cost"] | None = None,
        cost: ArrayLike | None = None,
    ) -> np.ndarray:
        """Predict labels by a rule on `predict_proba`.

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame
        rule : {"mode", "median", "cost"}, optional
            Default: the `rule` of the model or, without one, "mode". The mode is the
            most probable rank, as in the survey of Gutierrez et al.; the median, which
            has the least expected absolute error; or the rank of least expected cost.
        cost : (r, r) array-like, for rule="cost" only
            cost[j, k] is the cost of predicting rank k for a row of rank j. Default
            |j - k|.

        Returns
        -------
        (n,) array of labels, of the type of `classes`, or as `Model.predict`

        Raises
        ------
        ValueError, TypeError
            As in `decision_function`; also if the rule is unknown, or if `cost` is
            passed with another rule or does not have shape (r, r).
        """
        return predicted(self, X, rule, cost)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ElmorModel(NetworkModel):
    """Random hidden layer with one output per threshold: o(x) = V h(x) + a.

    Attributes
    ----------
    mean, scale, hidden_weights, hidden_bias : arrays
        Parameters of the hidden layer h(x), as in `NetworkModel`; they are random and
        not trained.
    output_weights : (m, h) array
        V, one row per threshold between ranks that have training rows.
    intercept : (m,) array
        a.
    observed : (r,) bool array
        Whether each rank has training rows of positive weight. m is the number of such
        ranks minus one.
    ridge : float
        Ridge that was given or found.
    loo_error : float or None
        Mean squared leave-one-out error |c - o|^2 of the training rows; None if the
        ridge was given.
    classes : (r,) array
        Labels in rank order.
    n_features : int
    feature_names : tuple of str, or None
    link : SoftmaxLink or None
        Link from distances to the codes to probabilities; None unless fitted with
        `probability=True`.
    convergence : Convergence
        Record of the fit. Its `primal` is (R) of `ordinal.networks`. There is no dual.
    """

    _rules = "nearest", *ON_PROBABILITIES
    output_weights: Annotated[np.ndarray, Array("f8", "m h"), FINITE]
    intercept: Annotated[np.ndarray, Array("f8", "m"), FINITE]
    observed: Annotated[np.ndarray, Array("b1", "r"), _SEVERAL]
    ridge: Annotated[float, FINITE, POSITIVE]
    loo_error: Annotated[float, NOT_NAN, NONNEGATIVE] | None
    link: Annotated[SoftmaxLink, SHARED] | None

    def _check(self) -> None:
        if np.count_nonzero(self.observed) != self.intercept.size + 1:
            raise ValueError("observed must name one rank more than there are outputs")
        if self.link:
            known = np.isfinite(self.link.offsets)
            if not np.array_equal(known, self.observed):
                raise ValueError("the link must know the observed ranks")

    def decision_function(self, X: RowsLike) -> np.ndarray:
        """Return the outputs, one per threshold, which are positive for higher ranks.

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame

        Returns
        -------
        (n, r - 1) array
            Approximations of 1, the code of y > k, or of -1. They are exactly 1 or -1
            where no training rows lie beyond the threshold, and equal on both sides of
            an inner rank without training rows.

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns.
        """
        outputs = self._through(X, self.output_weights) + self.intercept
        return for_all_ranks(self.observed, outputs, 1.0, -1.0)

    def rank_values(self, outputs: np.ndarray) -> np.ndarray:
        """Return the proximity of outputs to the codes of the ranks.

        Parameters
        ----------
        outputs : (n, r - 1) array
            From `decision_function`.

        Returns
        -------
        (n, r) array
            A quarter of the difference of two squared distances: to the nearest code,
            and to the code of the rank. Values are at most 0; those of two neighbouring
            ranks differ by the output between them. They are -inf for a rank without
            training rows.

        Raises
        ------
        ValueError, TypeError
            If `outputs` is not a real matrix with one column per threshold, or has NaN.
        """
        outputs = values_of(outputs, "outputs", self.classes.size - 1)
        check_entries("outputs", outputs, ~np.isnan(outputs), "not be NaN")
        return -self._distances(outputs)

    def _distances(self, outputs: np.ndarray) -> np.ndarray:
        between = np.flatnonzero(self.observed)[:-1]
        return code_distances(outputs[:, between], self.observed)

    def predict_proba(self, X: RowsLike, *, as_frame: bool = False) -> np.ndarray:
        """Return the probabilities of the ranks, a softmax of distances to their codes.

        The log odds of two neighbouring ranks increase with the output between them.
        The link is fitted to the leave-one-out outputs of the training rows.

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame
        as_frame : bool, default False
            Whether to return a pandas DataFrame, with a column per label.

        Returns
        -------
        (n, r) array, whose rows sum to 1

        Raises
        ------
        ValueError, TypeError
            As in `decision_function`, or if the model was fitted without
            `probability=True`.
        """
        link = require_link(self.link)
        return np.asarray(link(self._distances(self.decision_function(X))))

    def predict(
        self,
        X: RowsLike,
        *,
        rule: NearestRule | None = None,
        cost: ArrayLike | None = None,
    ) -> np.ndarray:
        """Predict labels by a decision rule.

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame
        rule : {"nearest", "mode", "median", "cost"}, optional
            Default: the `rule` of the model or, without one, "nearest", the rank whose
            code is nearest to the outputs, the lower one of a tie. (The rank of least
            exponential loss, another way of decoding, is the same unless the outputs
            are out of order; it differed in one row of thousands.) The other rules use
            `predict_proba`: the most probable rank, the median, or the rank of least
            expected cost.
        cost : (r, r) array-like, optional, for rule="cost" only
            cost[j, k] is the cost of predicting rank k for a row of rank j. Default
            |j - k|.

        Returns
        -------
        (n,) array of labels, of the type of `classes`, or as `Model.predict`

        Raises
        ------
        ValueError, TypeError
            As in `decision_function`; also if the rule is unknown or needs
            probabilities that the model does not have, or if `cost` is passed with
            another rule or does not have shape (r, r).
        """
        return predicted(self, X, rule, cost)

    def _labels(self, outputs: np.ndarray) -> np.ndarray:
        """Return labels of rows with these outputs, by the nearest code."""
        return np.asarray(self.classes[self._distances(outputs).argmin(axis=1)])


def code_distances(outputs: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Return distances of outputs to the codes of the ranks, (n, r).

    They are quarters of the squared distances, less the smallest one of each row; inf
    for a rank that is not observed.
    """
    outputs = np.clip(outputs, -_LARGEST, _LARGEST)  # so that their sums are finite
    # The squared distances of adjacent codes differ by 4 times an output.
    ahead = np.cumsum(outputs, axis=1)
    out = np.full((len(outputs), observed.size), np.inf)
    out[:, observed] = np.column_stack([np.zeros(len(outputs)), -ahead])
    return np.asarray(out - out.min(axis=1, keepdims=True))


def network_fields(
    problem: Problem,
    mean: np.ndarray,
    scale: np.ndarray,
    U: np.ndarray,
    convergence: Convergence,
) -> dict[str, Any]:
    """Return the fields of `NetworkModel`; U has the bias last, (d + 1, h)."""
    return {
        "mean": read_only(mean),
        "scale": read_only(scale),
        "hidden_weights": read_only(U[:-1].copy()),
        "hidden_bias": read_only(U[-1].copy()),
        **problem.model_fields(),
        "convergence": convergence,
    }


def _fields(problem: Problem, trained: TrainedNetwork) -> dict[str, Any]:
    """Return the fields of `NetworkModel` for a trained network."""
    rows, U = trained.rows, trained.network.U
    return network_fields(problem, rows.mean, rows.scale, U, trained.convergence)


def nnor_model(
    problem: Problem, trained: TrainedNetwork, loss: CodeLoss, l2: float
) -> NnorModel:
    """Return the model that `fit_nnor` returns."""
    return NnorModel(
        **_fields(problem, trained),
        output_weights=read_only(trained.network.V.copy()),
        offsets=read_only(trained.network.t.copy()),
        observed=read_only(problem.present),
        loss=loss,
        l2=l2,
    )


def nnpom_model(
    problem: Problem, trained: TrainedNetwork, link: Link, l2: float
) -> NnpomModel:
    """Return the model that `fit_nnpom` returns."""
    theta = Cumulative.thresholds(trained.network.t)
    present = np.flatnonzero(problem.present)
    return NnpomModel(
        **_fields(problem, trained),
        output_weights=read_only(trained.network.V[0].copy()),
        thresholds=read_only(around_ranks(theta, present, problem.n_classes)),
        link=link,
        l2=l2,
    )
