"""Fits with fewer terms: tests of single terms, and stepwise selection by AIC or BIC.

All fits are to the training rows of one model, which has every term. With x the
parameters, V their covariance, d those that are dropped and k those that stay, a fit
without a term starts at the minimum of the quadratic approximation of the larger loss,

    x_k - V_kd V_dd^-1 x_d                                                           (1)

from which about two Newton steps are left; fits with random effects start without
these. A term is never dropped before terms that
contain it, nor added before those that it contains (marginality).

W. N. Venables, B. D. Ripley, "Modern Applied Statistics with S", Springer, 2002, 6.8.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from .._cumulative.design import Design
from .._cumulative.fitting import Minimum
from .._cumulative.likelihood import Factor
from .._formula.coding import Coding
from .._input.checks import check_choice, listed, shown
from .._input.frame import Frame
from .._input.immutable import read_only
from .._model.printing import Table
from .._model.training_rows import digests_of_some
from .._numerics.tails import chi2_tail
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from .calls import on_one_thread
from .fitted import (
    TOL,
    FitMemory,
    Fitted,
    check_likelihood,
    fields_of_design,
    fitted_model,
    refit,
    remember,
    remembered,
    warn_unless_optimal,
    with_values,
)
from .limits import limit_fields
from .sandwich import CovarianceChoice, covariance_of

Criterion = Literal["aic", "bic"]
Direction = Literal["backward", "forward", "both"]


class TermFit(NamedTuple):
    """Fit with some of the terms, in all parts of the model that have their columns.

    `found` is the optimum, a `Minimum` if there are no random effects.
    """

    terms: tuple[str, ...]
    found: Any
    loglik: float
    dof: int


class TermFits:
    """Fits of the terms of a model to its training rows.

    Parameters
    ----------
    model : PomModel or RatioModel
    asked : str
        The method that messages name.

    Attributes
    ----------
    columns : dict of str to int array
        Columns by term, in whatever parts of the model they are.
    variables : dict of str to frozenset
        Variables by term; a term contains others that have some of its variables.
    """

    def __init__(self, model: Any, asked: str):
        check_likelihood(model, asked)
        if model.predictor.coding is not None and model.predictor.coding.monotone:
            raise ValueError(
                f"{asked} compares fits without constraints: write fused(x) "
                "instead of mo(x)"
            )
        self.model, self.asked = model, asked
        self.fit = self._training()
        own, coding = model.predictor, model.predictor.coding
        used = np.unique(np.concatenate([own.location, own.nominal, own.scale]))
        if coding is None:
            every = {own.column_names[j]: np.array([j]) for j in used.tolist()}
            variables: Any = [(k,) for k in used.tolist()]
        else:
            every = {t: np.array(of) for t, of in coding.columns_of_terms.items()}
            variables = coding.terms
        found = dict(zip(every, map(frozenset, variables), strict=True))
        self.columns = {t: of for t, of in every.items() if np.isin(of, used).any()}
        self.variables = {t: found[t] for t in self.columns}

    def _training(self) -> Any:
        """Return the training rows of the model."""
        return remembered(self.model, self.asked)

    def start(self) -> TermFit:
        """Return the fit of the model itself."""
        loss = self.fit.loss
        point = loss.at(self.fit.x)
        found = Minimum(point, np.zeros_like(point.x), 0.0, Status.CONVERGED, 0)
        return self._fitted(tuple(self.columns), found)

    def base(self, terms: Iterable[str], argument: str) -> TermFit:
        """Fit some terms, which are the `argument` of a caller."""
        if isinstance(terms, str):
            raise ValueError(
                f"{argument} must be a sequence of terms, got {shown(terms)}; for this "
                f"term pass [{shown(terms)}]"
            )
        chosen = list(terms)
        for term in chosen:
            if term not in self.columns:
                raise ValueError(
                    f"{argument} names {shown(term)}, which is not among the terms "
                    f"{listed(self.columns)}: fit a model with all terms first"
                )
        return self.without(self.start(), [t for t in self.columns if t not in chosen])

    def without(self, larger: TermFit, terms: Sequence[str]) -> TermFit:
        """Fit the terms of a larger fit except some, starting at (1).

        Without terms of the nominal or scale effects, which change other parameters by
        much, start at the larger fit without their effects.
        """
        if not terms:
            return larger
        left = tuple(t for t in larger.terms if t not in terms)
        if self.model.statistics.separated.size:  # (1) has no covariance
            return self._fit(left, ())
        D, smaller = self._design(larger.terms), self._design(left)
        x, hessian = larger.found.point.x, larger.found.point.hessian
        if (D.nominal.size, D.scale.size) != (smaller.nominal.size, smaller.scale.size):
            return self._fit(left, (_parameters_in(smaller, x, D),))
        q, qm, _, _ = D.sizes
        drop = q + qm + np.flatnonzero(~np.isin(D.location, smaller.location))
        keep = np.setdiff1d(np.arange(x.size), drop)
        # V_kd V_dd^-1 = -H_kk^-1 H_kd
        if hessian.first.size:
            gone = np.where(np.isin(np.arange(x.size), drop), x, 0.0)
            for index in reversed(drop.tolist()):
                hessian = hessian.without(index)
            moved = Factor(hessian).solve(larger.found.point.hessian.matvec(gone)[keep])
        else:
            H = hessian.dense()
            into = H[np.ix_(keep, drop)] @ x[drop]
            moved = np.linalg.solve(H[np.ix_(keep, keep)], into)
        return self._fit(left, (x[keep] + moved, x[keep]))

    def with_term(self, smaller: TermFit, term: str) -> TermFit:
        """Fit one more term, starting at a smaller fit without an effect of it."""
        terms = tuple(t for t in self.columns if t in (*smaller.terms, term))
        x, D = smaller.found.point.x, self._design(smaller.terms)
        return self._fit(terms, (_parameters_in(self._design(terms), x, D),))

    def droppable(self, terms: Collection[str]) -> list[str]:
        """Return those of some terms that no other one of them contains."""
        of = self.variables
        return [
            t
            for t in self.columns
            if t in terms and not any(of[t] < of[u] for u in terms)
        ]

    def addable(self, terms: Collection[str]) -> list[str]:
        """Return the terms of which some terms contain all parts."""
        of = self.variables
        return [
            t
            for t in self.columns
            if t not in terms and all(u in terms for u in self.columns if of[u] < of[t])
        ]

    def model_of(self, fitted: TermFit) -> Any:
        """Return the model of a fit, which reads only the columns of its terms.

        Without terms, it reads all columns, as other models without terms do.
        """
        model, D = self.model, self.fit.loss.design
        if set(fitted.terms) == set(self.columns):
            return model
        # The smaller model finds its columns by name, for which it needs a coding.
        frame, coding = None, model.predictor.coding
        if coding is None:
            if D.is_sparse:
                raise ValueError(
                    f"{self.asked} needs dense features for its model, got sparse ones"
                )
            frame = Frame.of_numbers(np.asarray(D.X), model.feature_names)
            coding = Coding.of_columns(frame)
        places = coding.columns_of_terms
        gone = [t for t in self.columns if t not in fitted.terms]
        kept = [t for t in places if t not in gone]
        terms = tuple(
            of for of, t in zip(coding.terms, places, strict=True) if t in kept
        )
        response = (coding.formula or "y ~").partition("~")[0].strip()
        offsets = [coding.variables[k].name for k in coding.offsets]
        smaller = self._design(fitted.terms)
        # Terms of the scale are no part of the formula.
        used = [*smaller.location, *smaller.nominal]
        named = [t for t in kept if np.isin(places[t], used).any()]
        text = f"{response} ~ {' + '.join([*named, *offsets]) or '1'}"
        coding = replace(coding, terms=terms, formula=text if coding.formula else None)
        columns = np.array([j for t in kept for j in places[t]], np.int64)
        design = smaller.with_columns(columns)
        x, fields, memory = self.refitted(fitted, design, frame)
        own, in_order = model.predictor, model.predictor.family == "cumulative"
        read: Any = slice(None)
        if coding.feature_names and 0 < len(coding.columns_read) < coding.n_features:
            read, coding = coding.columns_read, coding.of_columns_read()
            rows = None  # digests of the columns that are left
            if isinstance(memory, FitMemory) and memory.frame is not None:
                own_columns = memory.frame.columns_of(coding.feature_names)
                memory = replace(memory, frame=own_columns)
                rows = self._digests(own_columns, coding.feature_names)
            if model.origin is not None:
                fields["origin"] = replace(model.origin, training_rows=rows)
        of_design = fields_of_design(design, own.observed, x, in_order=in_order)
        made = with_values(
            model,
            n_features=coding.n_features,
            feature_names=coding.feature_names,
            binary=own.binary[read],
            spread=own.spread[read],
            coding=coding,
            column_names=coding.column_names,
            **({"loglik": fitted.loglik} | of_design | fields),
        )
        if memory is not None:
            remember(made, memory, model._rows_used)
        return made

    def _digests(
        self, frame: Frame, names: tuple[str, ...] | None
    ) -> np.ndarray | None:
        """Return digests of some training rows; None where ranks are intervals."""
        model, D = self.model, self.fit.loss.design
        if D.lower is not None:
            return None
        ranks = np.flatnonzero(model.predictor.observed)[D.rank]
        held = np.flatnonzero(D.weight > 0)  # other rows may have any rank
        labels = model.classes[ranks[held]]
        return digests_of_some(frame.rows(held), labels, names)[0]

    def refitted(
        self, fitted: TermFit, design: Design, frame: Frame | None
    ) -> tuple[np.ndarray, dict[str, Any], Any]:
        """Return the parameters of a fit with the columns of a design, the fields of
        its model that the design does not determine, and the training rows.
        """
        found = fitted.found
        smaller, monitor = self.fit.loss_of(design), Monitor(self.asked, TOL)
        status, separated, limit = self.model._end(smaller, found, monitor)
        point = found.point if limit is None else smaller.at(limit.x)
        x = point.x
        fields = {
            "uncertainty": covariance_of(smaller, smaller.at(x)),
            "separated": read_only(separated),
            "limits": None,
            "convergence": monitor.record(
                status, found.n_iter, found.violation, point.value, None
            ),
        }
        own = None
        if limit is not None:
            own = limit.limit
            fields |= limit_fields(design, own, CovarianceChoice())
        frame = self.fit.frame if frame is None else frame
        return x, fields, FitMemory(smaller, x, frame, own, self.fit.again)

    def _design(self, terms: Collection[str]) -> Design:
        """Return the design without the columns of the terms that are not given."""
        D: Design = self.fit.loss.design
        none = np.zeros(0, np.int64)
        gone = np.concatenate(
            [none, *(of for t, of in self.columns.items() if t not in terms)]
        )
        location, nominal, scale = (
            part[~np.isin(part, gone)] for part in (D.location, D.nominal, D.scale)
        )
        return replace(D, location=location, nominal=nominal, scale=scale)

    def _fit(self, terms: tuple[str, ...], starts: tuple[np.ndarray, ...]) -> TermFit:
        """Fit some terms from the first start at which the loss is finite.

        Without any start, begin without effects.
        """
        smaller = self.fit.loss_of(self._design(terms))
        # The quadratic approximation may lead to where thresholds cross.
        finite = (x for x in starts if np.isfinite(smaller.at(x).value))
        at = next(finite, None)
        found = refit(smaller, smaller.start() if at is None else at, self.asked)
        self._warn_unless_optimal(found, terms)
        return self._fitted(terms, found)

    def _warn_unless_optimal(self, found: Any, terms: Sequence[str]) -> None:
        """Warn if a fit of some terms, which the message lists, stopped early."""
        which = f"the fit of {listed(terms) if terms else 'no terms'}"
        warn_unless_optimal(found, self.asked, which)

    def _fitted(self, terms: tuple[str, ...], found: Minimum) -> TermFit:
        """Return the optimum of some terms with its log-likelihood."""
        loglik = -self.fit.loss.design.total * found.point.value
        if terms == tuple(self.columns):  # of a separated fit it is the supremum
            loglik = max(loglik, self.model.loglik)
        return TermFit(terms, found, loglik, found.point.x.size)


def _parameters_in(other: Design, x: np.ndarray, D: Design) -> np.ndarray:
    """Return the parameters x of a design D as those of another one of the same table.

    Effects that only the other design has are 0.
    """
    alpha, *parts = D.split(x)
    columns = ((of.nominal, of.location, of.scale) for of in (D, other))
    out = [alpha]
    for values, own, there in zip(parts, *columns, strict=True):
        made = np.zeros((*values.shape[:-1], there.size))
        made[..., np.isin(there, own)] = values[..., np.isin(own, there)]
        out.append(made.ravel())
    return np.concatenate(out)


def check_observed(model: Fitted, asked: str) -> None:
    """Raise ValueError for a sandwich covariance, which is not for likelihood tests."""
    if model.statistics.covariance_type != "observed":
        raise ValueError(
            f"{asked} compares likelihoods, which the covariance of this model "
            f"({model.statistics.covariance_type}) does not rely on: fit without "
            "robust and cluster"
        )


def information(fitted: TermFit, criterion: Criterion, total: float) -> float:
    """Return the AIC or the BIC of a fit to rows of a total weight."""
    penalty = 2.0 if criterion == "aic" else float(np.log(total))
    return penalty * fitted.dof - 2 * fitted.loglik


def single_terms(
    fits: TermFits, base: TermFit, others: dict[str, TermFit], criterion: Criterion
) -> Table:
    """Return the table of fits that differ from a base by one term."""
    total = fits.model.statistics.n_obs
    first = information(base, criterion, total)
    rows = [("none", 0, base.loglik, first, np.nan, np.nan)]
    for term, other in others.items():
        larger, smaller = (base, other) if base.dof > other.dof else (other, base)
        dof = larger.dof - smaller.dof
        chi2 = max(0.0, 2 * (larger.loglik - smaller.loglik))
        value = information(other, criterion, total)
        rows.append((term, dof, other.loglik, value, chi2, chi2_tail(chi2, dof)))
    names = "name", "dof", "loglik", criterion, "chi2", "p_value"
    return Table.from_rows(names, rows)


def search(
    fits: TermFits,
    start: TermFit,
    keep: set[str],
    direction: Direction,
    criterion: Criterion,
) -> tuple[TermFit, Table]:
    """Drop or add the term that lowers a criterion most, until none does.

    Returns the last fit, and the table of the steps.
    """
    total = fits.model.statistics.n_obs
    here, best = start, information(start, criterion, total)
    rows = [("start", start.dof, start.loglik, best)]
    while True:
        moves: list[tuple[str, TermFit]] = []
        if direction != "forward":
            drop = [t for t in fits.droppable(here.terms) if t not in keep]
            moves += [(f"- {t}", fits.without(here, [t])) for t in drop]
        if direction != "backward":
            add = fits.addable(here.terms)
            moves += [(f"+ {t}", fits.with_term(here, t)) for t in add]
        values = [information(fit, criterion, total) for _, fit in moves]
        # Rounding must not make a step, which the next one would undo.
        if not moves or min(values) >= best - 1e-9:
            return here, Table.from_rows(("step", "dof", "loglik", criterion), rows)
        best = min(values)
        name, here = moves[values.index(best)]
        rows.append((name, here.dof, here.loglik, best))


class Steps(NamedTuple):
    """Result of `step`.

    Attributes
    ----------
    model : PomModel, RatioModel or ClmmModel
        Model with the chosen terms.
    table : Table
        The steps: "step", such as "- x1", "dof", "loglik" and the criterion.
    """

    model: Any
    table: Table

    def __repr__(self) -> str:
        return f"{self.table}\n{self.model}"


@on_one_thread
def drop1(model: Any, *, criterion: Criterion = "aic") -> Table:
    """Test every term by a fit without it.

    Terms that another one contains, such as a in a + b + a:b, are kept. A term that
    also has nominal or scale effects is dropped with all of them; `lr_test` against a
    fit without the latter tests these alone. Random effects stay, with the number of
    quadrature nodes of the model; `lr_test` tests them.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
    criterion : {"aic", "bic"}, default "aic"

    Returns
    -------
    Table
        A dict of arrays, with the entry "none" followed by one per term: "name";
        "dof", the number of parameters that are dropped; "loglik" and "aic" (or
        "bic") of the fit without the term; "chi2" and "p_value" of the likelihood
        ratio test, which are nan for "none".

    Raises
    ------
    ValueError
        If the fit is penalised or separated, if the covariance is robust, or if the
        model no longer has its training rows.

    Warns
    -----
    ConvergenceWarning
        If a fit stopped before it reached its optimum.

    See Also
    --------
    add1 : Test every term of this model by adding it to a smaller one.
    step : Choose terms of this model by AIC or BIC, step by step.
    anova : Compare nested models of the same rows by likelihood ratio tests.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> ordinal.inference.drop1(ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3]))
    name dof   loglik     aic    chi2   p_value
    none   0 -3.97389 15.9478     nan       nan
    x1     1 -4.83736 15.6747 1.72695  0.188801
    x2     1 -7.13556 20.2711 6.32335 0.0119158
    """
    model = fitted_model(model, "drop1")
    check_choice("criterion", criterion, get_args(Criterion))
    check_observed(model, "drop1")
    fits = model._term_fits("drop1")
    start = fits.start()
    others = {t: fits.without(start, [t]) for t in fits.droppable(start.terms)}
    return single_terms(fits, start, others, criterion)


@on_one_thread
def add1(model: Any, base: Sequence[str], *, criterion: Criterion = "aic") -> Table:
    """Test every term of this model by adding it to a smaller one.

    A term that also has nominal or scale effects is added with all of them.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
    base : sequence of str
        Terms of the smaller model, which may be empty.
    criterion : {"aic", "bic"}, default "aic"

    Returns
    -------
    Table
        As for `drop1`, where "dof" is the number of parameters that are added;
        tests are nan for "none".

    Raises
    ------
    ValueError
        As for `drop1`; also if a name is not a term.

    Warns
    -----
    ConvergenceWarning
        If a fit stopped before it reached its optimum.

    See Also
    --------
    drop1 : Test every term by a fit without it.
    step : Choose terms of this model by AIC or BIC, step by step.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> table = ordinal.inference.add1(ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3]), [])
    >>> table["name"], table["chi2"].round(3)
    (array(['none', 'x1', 'x2'], dtype='<U4'), array([  nan, 3.044, 7.64 ]))
    """
    model = fitted_model(model, "add1")
    check_choice("criterion", criterion, get_args(Criterion))
    check_observed(model, "add1")
    fits = model._term_fits("add1")
    start = fits.base(base, "base")
    others = {t: fits.with_term(start, t) for t in fits.addable(start.terms)}
    return single_terms(fits, start, others, criterion)


@on_one_thread
def step(
    model: Any,
    *,
    start: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    direction: Direction = "both",
    criterion: Criterion = "aic",
) -> Steps:
    """Choose terms of this model by AIC or BIC, step by step.

    Every step drops or adds the term that lowers the criterion most, with all its
    effects, nominal and scale ones included, until none does. Standard errors and tests
    of the resulting model do not account for the selection: they are too optimistic,
    and intervals are too short.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
    start : sequence of str, optional
        Terms of the first model. Default: all, or none for direction="forward".
    keep : sequence of str, default none
        Terms that are never dropped.
    direction : {"both", "backward", "forward"}, default "both"
    criterion : {"aic", "bic"}, default "aic"

    Returns
    -------
    Steps
        A named tuple (model, table). The model is the same as one that is fitted to
        its terms alone, and finds its columns by name.

    Raises
    ------
    ValueError
        As for `drop1`; also if a name is not a term.

    Warns
    -----
    ConvergenceWarning
        If a fit stopped before it reached its optimum.

    See Also
    --------
    drop1 : Test every term by a fit without it.
    add1 : Test every term of this model by adding it to a smaller one.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> found = ordinal.inference.step(ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3]))
    >>> found.table
    step  dof   loglik     aic
    start   4 -3.97389 15.9478
    - x1    3 -4.83736 15.6747
    >>> found.model.coef_names
    ('x2',)
    """
    model = fitted_model(model, "step")
    check_choice("direction", direction, get_args(Direction))
    check_choice("criterion", criterion, get_args(Criterion))
    check_observed(model, "step")
    fits = model._term_fits("step")
    smallest = fits.base(keep, "keep")
    if start is not None:
        first = fits.base([*start, *keep], "start")
    else:
        first = smallest if direction == "forward" else fits.start()
    end, table = search(fits, first, {*smallest.terms}, direction, criterion)
    return Steps(fits.model_of(end), table)
