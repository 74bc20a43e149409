"""Record of the end of a fit, and the warnings that fits and models share."""

from __future__ import annotations

import enum
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from html import escape
from typing import Annotated, Literal

import numpy as np

from .._input.checks import enumerated, shown
from .._input.columns import is_frame, unknown_levels
from .._input.fields import FINITE, NONNEGATIVE, NOT_NAN
from .._input.frame import times_of
from .._input.immutable import Immutable
from .._input.sparse import NamedCSR
from .._input.warning import given_apart, warn
from ..exceptions import (
    ApproximationWarning,
    CollinearColumnsWarning,
    ConvergenceWarning,
    DisorderedThresholdsWarning,
    EmptyColumnsWarning,
    UnknownLevelsWarning,
    UnnamedColumnsWarning,
    UnscaledFeaturesWarning,
)

_BEYOND = 0.1  # share of the span of training dates; the ends of folds are nearer
_NAMED = 10  # most thresholds in a warning


def warn_of_unnamed(X: object, names: Sequence[str] | None) -> None:
    """Warn if `X` is an array, and the model was fitted on columns of these names.

    Arrays that this package makes of a table are passed on with their names, as a
    `Frame` or `NamedCSR`, so that an array without names is one of the caller.
    """
    if names is None or is_frame(X) or isinstance(X, NamedCSR):
        return
    if 0 in getattr(X, "shape", ()):
        return  # an array without rows loses its names on the way
    warn(
        "X has no column names, but the training rows had: its columns are taken "
        f"as {enumerated(names, at_most=6)}, in this order; pass a data frame to "
        "have them found by name",
        UnnamedColumnsWarning,
    )


def warn_of_unknown_levels(
    name: str, column: object, labels: np.ndarray, places: np.ndarray
) -> None:
    """Warn of values of a new column that are no categories of the training column.

    `places` are those of the values among the labels, NaN for missing and unknown ones.
    """
    if not np.isnan(places).any():
        return
    unknown, alike = unknown_levels(column, labels)
    if alike:
        value, level = next(iter(alike.items()))
        warn(
            f"column {shown(name)} of X holds {shown(value)}, which is not the "
            f"category {shown(level)} of the training rows and counts as missing: "
            "write it as there if it is meant",
            UnknownLevelsWarning,
            name,
        )
    elif unknown:
        known = enumerated(labels.tolist(), at_most=6)
        warn(
            f"column {shown(name)} of X holds {enumerated(unknown, at_most=3)}, which "
            f"no training row has and which {'count' if unknown[1:] else 'counts'} as "
            f"missing; its categories are {known}: write "
            f"{'them' if unknown[1:] else 'it'} as there if one is meant",
            UnknownLevelsWarning,
            name,
        )


def warn_of_far_dates(
    name: str, days: np.ndarray, values: np.ndarray, span: tuple[float, float]
) -> None:
    """Warn of dates of a new column whose days or years are far from the training rows.

    Numbers get no such warning: only time leads all later rows out of the span.
    """
    first, last = span
    margin = _BEYOND * (last - first)
    far = days[(values < first - margin) | (values > last + margin)]
    if far.size:
        date = times_of(far[:1]).astype("datetime64[D]")[0]
        warn(
            f"column {shown(name)} of X holds {date}, which is far from the dates of "
            "the training rows, so that effects of its year and days are extrapolated: "
            "for predictions of later dates fit the parts month and weekday alone",
            UnknownLevelsWarning,
            name,
        )


def warn_of_disorder(disorder: Sequence[str], solver: str) -> None:
    """Warn at the caller of the `fit_*` function if a model has a `disorder`."""
    if disorder:
        rest = len(disorder) - _NAMED
        more = f" and {rest} more, which `disorder` lists" if rest > 0 else ""
        warn(
            f"{solver}: thresholds out of order: {'; '.join(disorder[:_NAMED])}{more}",
            DisorderedThresholdsWarning,
        )


def warn_of_separation(columns: Sequence[str], solver: str, remedy: str) -> None:
    """Warn at the caller of the `fit_*` function that columns separate the ranks."""
    warn_of_divergence(
        f"{enumerated(columns)} separate ranks without error", solver, remedy
    )


def warn_of_divergence(cause: str, solver: str, remedy: str) -> None:
    """Warn at the caller of the `fit_*` function that no optimum is finite."""
    warn(
        f"{solver}: {Status.SEPARATED.value}: {cause}, so no finite coefficients are "
        "optimal, and those returned only indicate the direction in which they "
        f"diverge; {remedy}",
        ConvergenceWarning,
    )


def filter_held(action: Literal["ignore", "always"]) -> None:
    """Set the filter of warnings whose content is also an attribute of the models.

    Searches and the command report these attributes, and ignore the warnings.
    """
    for category in (
        ConvergenceWarning,
        DisorderedThresholdsWarning,
        CollinearColumnsWarning,
        EmptyColumnsWarning,
        UnscaledFeaturesWarning,
        UnknownLevelsWarning,
        ApproximationWarning,
    ):
        warnings.simplefilter(action, category)
    # A fit to all rows, as of `select`, warns of such columns.
    warnings.filterwarnings(action, "columns? .* of X seems? to identify the rows")


@contextmanager
def held_back() -> Iterator[None]:
    """Ignore these warnings of fits whose outcomes record them."""
    with warnings.catch_warnings(), given_apart():
        filter_held("ignore")
        yield


class Status(enum.Enum):
    """Reason why a fit ended."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    MAX_TIME = "max_time"
    N_EPOCHS = "n_epochs"  # a stochastic method has made all of its passes
    N_STEPS = "n_steps"  # early stopping: the number of steps that was asked for
    HELD_OUT = "held_out"  # early stopping: held-out rows were predicted best here
    STOPPED = "stopped"  # the callback asked for it
    STALLED = "stalled"  # no step improves the objective beyond rounding
    SEPARATED = "separated"  # no finite optimum, mostly by separated ranks
    UNBOUNDED = "unbounded"  # the variance of random effects grows for ever
    INDEFINITE = "indefinite"  # the kernel is not positive semi-definite


_REMEDY = {
    Status.MAX_ITER: "raise max_iter or tol",
    Status.MAX_TIME: "raise max_time or tol",
    Status.N_EPOCHS: "raise n_epochs or tol, or use another solver",
    Status.STOPPED: "the callback returned a true value",
    Status.STALLED: "rounding hides smaller violations; raise tol or scale the data",
    Status.SEPARATED: (
        "the likelihood grows for ever with some coefficients, mostly because features "
        "separate the ranks without error; l2 > 0 keeps slopes finite, but not nominal "
        "or scale effects"
    ),
    Status.UNBOUNDED: (
        "the log likelihood does not decrease as the standard deviation of random "
        "effects grows, mostly because nearly all groups have rows of one rank only; "
        "leave these effects out"
    ),
    Status.INDEFINITE: (
        "the kernel is not positive semi-definite, so a local optimum is all that "
        "can be had; use a positive semi-definite kernel"
    ),
}


@dataclass(frozen=True, slots=True)
class Convergence(Immutable):
    """Certificate of a finished fit, recomputed from the solution itself.

    Attributes
    ----------
    status : Status
    n_iter : int
        Number of iterations, in the unit of the solver, which its docstring names.
    violation : float
        Optimality measure that `tol` limits, in the unit that the docstring names.
        Infinite if the fit was ended before it was known, such as, on a basis, before
        a pass over all rows; the returned point is then that of a sample or the start.
    tol : float
    primal : float
        Objective at the returned point, infinite if it is not known either.
    dual : float or None
        Objective of the dual problem. The difference `gap` is >= 0 and bounds the
        distance of either objective to the optimum. None for methods without a dual,
        whose optimum may be a local one.
    seconds : float
        Wall-clock time of the whole fit.
    parts : tuple of Convergence
        Records of the problems of a method that solves several, such as NPSVOR with one
        per rank (with zeros for ranks without rows); empty for other methods. The
        fields above then hold the sums of their iterations and objectives, the largest
        violation and the worst status.
    """

    status: Status
    n_iter: Annotated[int, NONNEGATIVE]
    violation: Annotated[float, NOT_NAN]
    tol: Annotated[float, FINITE, NONNEGATIVE]
    primal: Annotated[float, NOT_NAN]
    dual: Annotated[float, NOT_NAN] | None
    seconds: Annotated[float, FINITE, NONNEGATIVE]
    parts: tuple[Convergence, ...] = ()

    @classmethod
    def of_parts(cls, parts: Sequence[Convergence]) -> Convergence:
        """Return the record of a fit that solved several problems to one tolerance."""
        several = isinstance(parts, Sequence) and len(parts) > 0
        if not several or not all(isinstance(part, Convergence) for part in parts):
            raise TypeError(f"parts must be records of fits, got {shown(parts)}")
        failed = [part.status for part in parts if not part.converged]
        duals = [part.dual for part in parts if part.dual is not None]
        return cls(
            status=failed[0] if failed else Status.CONVERGED,
            n_iter=sum(part.n_iter for part in parts),
            violation=max(part.violation for part in parts),
            tol=parts[0].tol,
            primal=sum(part.primal for part in parts),
            dual=sum(duals) if len(duals) == len(parts) else None,
            seconds=parts[0].seconds,
            parts=tuple(parts),
        )

    @property
    def converged(self) -> bool:
        """Return whether `violation` is within `tol`, which says nothing about `gap`.

        The duality gap may be as large as the violation times the sum of the weights of
        the losses, such as C for every row. With large C a fit that has converged can
        therefore have a `rel_gap` above `tol`; a smaller tolerance lowers both.
        """
        return self.status is Status.CONVERGED

    @property
    def gap(self) -> float:
        """Duality gap, a bound on the distance to the optimum; NaN without a dual."""
        return math.nan if self.dual is None else self.primal - self.dual

    @property
    def rel_gap(self) -> float:
        """Duality gap divided by the largest of |`primal`|, |`dual`| and 1, or NaN."""
        if self.dual is None:
            return math.nan
        return self.gap / max(abs(self.primal), abs(self.dual), 1.0)

    def __str__(self) -> str:
        gap, against = "", f"violation unknown, tol {self.tol:.2e}"
        if math.isfinite(self.rel_gap):
            gap = f", relative duality gap {self.rel_gap:.2e}"
        if math.isfinite(self.violation):
            against = f"violation {self.violation:.2e} against tol {self.tol:.2e}"
        return f"{self.status.value} after {self.n_iter} steps, {against}{gap}"

    def warn_unless_converged(
        self, solver: str, easier: str = "lower C", remedy: str | None = None
    ) -> None:
        """Warn at the caller of the `fit_*` function, and name the remedy.

        `easier` is a change that makes a problem with a dual converge within its limit;
        `remedy` replaces the advice that belongs to the status.
        """
        meant = Status.CONVERGED, Status.N_STEPS, Status.HELD_OUT
        if self.status not in meant:
            limited = self.status in (Status.MAX_ITER, Status.MAX_TIME)
            more = f", or {easier}" if limited and self.dual is not None else ""
            advice = remedy or f"{self.remedy}{more}"
            warn(f"{solver}: {self}; {advice}", ConvergenceWarning)

    @property
    def remedy(self) -> str:
        """Advice for a fit that ended with this status; empty if none is needed."""
        return _REMEDY.get(self.status, "")

    def _repr_html_(self) -> str:
        remedy = f"<p>Remedy: {escape(self.remedy)}.</p>" if self.remedy else ""
        return f"<p>{escape(str(self))}</p>{remedy}"


def of_ranks(parts: Sequence[Convergence], present: Iterable[bool]) -> Convergence:
    """Return the record of a fit that solved one problem per rank with training rows.

    `present` says which ranks these are. A rank without training rows has a record of
    zeros that has converged.
    """
    nothing = replace(
        parts[0], status=Status.CONVERGED, n_iter=0, violation=0.0, primal=0.0, dual=0.0
    )
    own = iter(parts)
    return Convergence.of_parts([next(own) if some else nothing for some in present])


def worse(whole: Convergence, fold: Convergence) -> Convergence:
    """Return the record of a fold if only the fold has not converged, else `whole`."""
    return fold if whole.converged and not fold.converged else whole
