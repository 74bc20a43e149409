"""Fits of cumulative link mixed models.

The search begins at the fit without random effects. Its Hessian gives the units of the
parameters in which L-BFGS finds the optimum. Newton steps, whose Hessian is a finite
difference of the exact gradient, then certify it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, cast, get_args

import numpy as np

from .._cumulative.design import Threshold
from .._cumulative.likelihood import Link
from .._cumulative.separation import check_separation_by
from .._formula.formulas import named_column
from .._input.checks import (
    as_array,
    as_real_array,
    check_choice,
    check_count,
    check_entries,
    enumerated,
    listed,
    shown,
)
from .._input.columns import columns_of, feature_names, is_frame
from .._input.frame import default_names
from .._input.immutable import read_only
from .._input.intervals import RankIntervals
from .._input.labels import lacks_label
from .._input.sparse import is_sparse
from .._input.types import ArrayLike, Labels, MatrixLike
from .._input.warning import warn
from .._model.labelled import MissingLabels
from .._model.preparation import Callback, shared_arguments
from .._model.registry import Method, register
from .._numerics.memory import check_memory
from .._rows.reading import check_in_memory
from ..exceptions import ApproximationWarning
from ..inference.fitted import remember, with_records
from ..inference.sandwich import CovarianceChoice, CovarianceType, sandwich_of_clusters
from ..linear.prepared import Missing, PomArguments, PreparedPom, prepare_pom
from ..linear.ratio_loss import Family
from ..preprocessing.base import Preprocess
from ..preprocessing.model import preprocessed_in_columns
from .elimination import RandomTerm, is_nested
from .likelihood import MixedLikelihood
from .model import ClmmModel
from .optimum import Start, optimum_of, rank_order, start_of
from .quadrature import (
    Nodes,
    check_laplace,
    has_quadrature,
    is_panelled,
    read_nodes,
)
from .random_terms import (
    EffectsSpec,
    check_names,
    effect_columns,
    from_arrays,
    incomplete,
    read_groups,
    read_random,
    read_slopes,
    split_formula,
    term_of,
)
from .refits import GroupFactor, fitted_effects
from .rows import IntervalRows, RatioRows, RowsOf

_HEAVIEST = 1e6  # weight of a group


@preprocessed_in_columns
def fit_clmm(
    X: MatrixLike | str,
    y: Labels,
    *,
    random: str | None = None,
    groups: Mapping[str, ArrayLike] | None = None,
    slopes: Mapping[str, Sequence[str | int]] | None = None,
    n_quadrature: int | Literal["auto"] = "auto",
    family: Literal["cumulative"] | Family = "cumulative",
    link: Link = "logit",
    threshold: Threshold = "flexible",
    nominal: Sequence[str | int] = (),
    scale: Sequence[str | int] = (),
    offset: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    group_weight: ArrayLike | str | None = None,
    cluster: ArrayLike | str | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    preprocess: Preprocess | None = None,
    reference: Mapping[str, Any] | None = None,
    missing: Missing = "error",
    tol: float = 1e-6,
    max_iter: int = 1000,
    max_time: float | None = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> ClmmModel:
    """Fit a cumulative link mixed model, with random effects of groups.

    P(y <= j | b) = F((theta_j - n'nu_j - x'beta - z'b) / exp(t'zeta)) with effects
    b ~ N(0, Sigma) of the level of each group. The effects are integrated out by
    adaptive Gauss-Hermite quadrature, or by the Laplace approximation. With `family`,
    the model is one of stopping ratios or adjacent categories.

    Parameters
    ----------
    X : (n, d) array-like, data frame or formula
        Features, one row per observation; at least one. Or a formula with random
        effects in the syntax of lme4, such as "rating ~ temp + contact + (1 | judge)",
        that refers to the columns of the data frame `y`; terms such as (1 + week
        | id), (week || id), (0 + x | g) and (1 | a/b) may be combined. A formula needs
        the package formulaic.
    y : (n,) array-like, or the data frame of a formula
    random : str, optional
        Random effects without a formula, in its syntax, such as "(1 | judge)". The
        names are those of columns of the data frame X; columns of groups are not used
        as features.
    groups : mapping of names to (n,) labels
        Grouping factors with random intercepts, without a formula and `random`.
    slopes : mapping of names of `groups` to columns of X, optional
        Columns with random slopes, by name or number, which are correlated with the
        intercept.
    n_quadrature : int or "auto", default "auto"
        Number of quadrature nodes per dimension. "auto" fits a single factor with one
        effect with 1, 5, 9, 15 and 25 nodes, until more nodes do not matter, and
        integrates groups whose rows all have one rank, and all groups with
        link="cauchit", by a rule of its own. The number used is `n_quadrature` of the
        model. For all other effects "auto" is the Laplace
        approximation, with a warning where it is known to be inaccurate. A number from
        1 to 100 is that of R's clmm: 1 is the Laplace approximation, and more nodes of
        adaptive Gauss-Hermite quadrature need a single factor, or two of which one is
        nested in the other, with at most 3 effects in total.
    family : {"cumulative", "stopping", "backward", "adjacent"}, default "cumulative"
        The last three are those of `fit_ratio`, with z'b added to x'beta.
    link : {"logit", "probit", "cloglog", "loglog", "cauchit"}, default "logit"
        Distribution function F: logistic, normal, 1 - exp(-exp t), exp(-exp(-t)) or
        Cauchy.
    threshold : {"flexible", "symmetric", "equidistant"}, default "flexible"
        Whether the thresholds are free, symmetric about a centre, or equidistant.
    nominal : names or numbers of columns, default none
        Features with one coefficient per threshold. For a table with categories or a
        formula these are names of terms, such as "Infl" for all its levels, or of
        indicator columns, such as "Infl[High]".
    scale : names or numbers of columns, default none
        Features on which the spread of the latent variable depends, in the same form as
        `nominal`.
    offset : (n,) array-like, default 0
        Known terms that are added to x'beta, in addition to those of `offset(...)` in a
        formula. With a formula, `offset` and `sample_weight` may be names of columns of
        its data. Offsets of rows of positive weight must lie between -10000 and 10000.
    sample_weight : (n,) array-like >= 0, optional
        Weights of the rows; weight 2 has the same effect as writing the row twice in
        the same group.
    group_weight : (n,) array-like > 0, optional
        Weight of the group of each row, or with a formula the name of a column. Weight
        2 has the same effect as a second group with the same rows. It needs a single
        factor.
    cluster : (n,) array-like of numbers or strings, optional
        Group of each row, such as a person, for cluster-robust standard errors: the
        covariance is the sandwich formula over the G groups, with the factor
        G / (G - 1). It needs about 30 groups or more.
    classes : sequence of labels in rank order, optional
        Required if y holds strings. It may list ranks that do not occur in y; these are
        never predicted.
    missing_labels : {"error", "drop"}, default "error"
        Whether rows without a label are an error or are left out, with their entries of
        all other arguments. The attribute `n_missing_labels` counts them.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Coding of the table that is fitted to X first, as in `select`. The model states
        its coefficients in the columns of X; behind a preprocessor that scales, only
        penalties see scaled columns.
    reference : mapping of columns to levels, optional
        Reference levels of categorical columns. Default: the first level, which is the
        first in alphabetical order for strings, and in the order of the type for a
        categorical one.
    missing : {"error", "drop"}, default "error"
        Treatment of rows with a missing value, including labels of groups, as in
        `fit_pom`.
    tol : float > 0, default 1e-6
        Tolerance on the length of the next Newton step in standard errors.
    max_iter : int, default 1000
        Limit on the number of steps.
    max_time : float > 0, optional
        Time budget in seconds, checked before every evaluation of the likelihood. When
        it is exhausted, the fit returns its best point so far, with a warning.
    n_threads : int, optional
        Number of threads. Default: the environment variable ORDINAL_NUM_THREADS or,
        without it, the number of processors that this process may use. The result does
        not depend on it, to the last bit (docs/guides/threads.md).
    callback : callable, optional
        Called with an `ordinal.models.State` after every step; a true value stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, elsewhere, as in a notebook, one line every ten seconds.

    Returns
    -------
    ClmmModel

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is invalid, which is checked before anything is
        computed; for example, if the rows of a group lie in several clusters. Also if
        columns separate the ranks, so that there is no finite optimum.
    MemoryError
        If the dense matrix of all factors but the largest needs more memory than the
        machine has.

    Warns
    -----
    ConvergenceWarning
        If the fit stopped before it reached the tolerance, or the variance of a factor
        grows for ever (`Status.UNBOUNDED`). The message names the reason and the
        remedy.
    ApproximationWarning
        If the integrals over the effects may be inaccurate, or if all groups hold a
        single row, which raises for two ranks and for probit.
    CollinearColumnsWarning
        As in `fit_pom`.

    See Also
    --------
    fit_pom : Fit a cumulative link model by maximum likelihood, such as proportional
        odds.
    fit_ratio : Fit a stopping ratio or an adjacent categories model by maximum
        likelihood.
    ordinal.inference.lr_test : Compare two nested models of the same rows by a
        likelihood ratio test.
    ordinal.plot.random_effects : Plot the conditional modes of one random effect with
        their intervals, sorted.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.load_wine()
    >>> judges = [i // 8 for i in range(72)]
    >>> model = ordinal.fit_clmm(X[:, :2], y, groups={"judge": judges})
    >>> round(model.loglik, 4), model.deviations["sd"].round(4)
    (-81.5325, array([1.1348]))
    """
    nodes = read_nodes(n_quadrature)
    check_choice("family", family, ("cumulative", *get_args(Family)))
    max_iter = check_count("max_iter", max_iter)
    check_choice("missing", missing, ("error", "drop"))
    fixed, table, asked = _split_effects(X, y, random, groups, slopes)
    labels, n = read_groups(asked, groups, table), len(table)
    frame = read_slopes([name for own in asked for name in own.slope_names], table)
    coded = [own.coded(frame, reference or {}) for own in asked]
    Z = [effect_columns(own.slopes, frame) for own in coded]
    absent = incomplete(labels, Z, n)
    _check_complete("groups and slopes", absent, missing, "labels or values")
    cluster = named_column("cluster", cluster, table)
    without = _lacks_cluster(cluster, n)
    _check_complete("cluster", without, missing, "a label")
    prepared = prepare_pom(
        "fit_clmm",
        fixed,
        y,
        is_penalised=False,
        complete=~(absent | without),
        **shared_arguments(PomArguments, locals(), cluster=None),
    )
    if family != "cumulative":
        if isinstance(prepared.training.y, RankIntervals):
            raise ValueError(
                "family must be 'cumulative' where y holds RankIntervals, got "
                f"{shown(family)}"
            )
        _check_ratio(family, prepared)
    used = np.flatnonzero(prepared.training.used)
    factors = [
        GroupFactor(own, *term_of(own, [a.rows(used) for a in columns], z[used]))
        for own, columns, z in zip(coded, labels, Z, strict=True)
    ]
    # The effects of the first factor are eliminated level by level, so the largest
    # factor comes first, and of two nested ones the inner one.
    factors.sort(key=lambda f: -f.term.n_levels * f.term.q)
    if is_nested([f.term for f in factors[::-1]]):
        factors.reverse()
    _check_quadrature(nodes, [f.term for f in factors])
    for own in factors:
        _check_single_rows(own, prepared, family)
    by_group = _group_weights(group_weight, table, used, [f.term for f in factors])
    clusters = _cluster_numbers(cluster, n, used, factors)
    with prepared.monitor as monitor:
        model, remedy = _fit(
            prepared, family, factors, nodes, max_iter, by_group, clusters
        )
        end = model.convergence
        monitor.conclude(
            model, warn=lambda _: end.warn_unless_converged("fit_clmm", remedy=remedy)
        )
    return model


def _split_effects(
    X: Any, y: Any, random: Any, groups: Any, slopes: Any
) -> tuple[Any, Any, list[EffectsSpec]]:
    """Separate the random effects from the arguments of a fit.

    Returns the fixed part, as X of `prepare_pom`, the table with the columns of the
    random effects, and these effects.
    """
    others = random is not None, groups is not None or slopes is not None
    if sum(others) + isinstance(X, str) > 1:
        raise ValueError(
            "random effects must be given by one of a formula, random, and groups "
            "with slopes: leave out the others"
        )
    if isinstance(X, str):
        if not is_frame(y):
            raise TypeError(
                "a formula needs its data frame: fit_clmm('y ~ x + (1 | g)', data), "
                f"got {shown(y)}"
            )
        fixed, asked = split_formula(X)
        check_names(asked, feature_names(y) or ())
        return fixed, y, asked
    check_in_memory("fit_clmm", X)
    if is_sparse(X):
        raise TypeError(
            "X must be dense for fit_clmm, got a sparse matrix: pass X.toarray()"
        )
    if random is not None:
        if not is_frame(X) or not (names := feature_names(X)):
            raise TypeError(
                "random names columns of a data frame, and X is none, got "
                f"{shown(X)}: pass groups={{name: labels}} with an array"
            )
        asked = read_random(random)
        check_names(asked, names)
        of_groups = {name for own in asked for name in own.columns}
        fixed_names = [name for name in names if name not in of_groups]
        if not fixed_names:
            raise ValueError(
                "X must have a column besides those of random: pass the formula "
                f"'y ~ {random}' with a table that has the labels, too"
            )
        return columns_of(X, fixed_names), X, asked
    if is_frame(X):
        return X, X, from_arrays(groups, slopes, feature_names(X) or ())
    table = np.asarray(X)
    if table.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {table.ndim}")
    return X, table, from_arrays(groups, slopes, default_names(table.shape[1]))


def _check_ratio(family: Family, prepared: PreparedPom) -> None:
    """Raise ValueError for options that only cumulative models have."""
    if prepared.threshold != "flexible":
        raise ValueError(
            f"threshold must be 'flexible' with family={shown(family)}, whose "
            f"thresholds have no order, got {shown(prepared.threshold)}"
        )
    if prepared.design.scale.size:
        names = [prepared.problem.shown_names[j] for j in prepared.design.scale]
        raise ValueError(
            f"scale must be empty with family={shown(family)}, which has no latent "
            f"variable, got {listed(names)}: leave it out, or pass family='cumulative'"
        )


def _check_single_rows(factor: GroupFactor, prepared: PreparedPom, family: str) -> None:
    """Refuse or warn of an intercept of groups that all hold a single observation.

    A row of weight 5 is five rows. With two ranks, or with probit, the deviation and
    the unit of the latent variable cannot be told apart.
    """
    term, name, weight = factor.term, factor.spec.name, prepared.design.weight
    has_intercept = (term.Z[0] == term.Z).all(axis=0).any()
    rows = np.bincount(term.group[weight > 0], minlength=term.n_levels)
    if not has_intercept or rows.max() > 1 or weight.max() > 1:
        return
    has_two_ranks = prepared.design.T == 1
    # The stages of ratio models repeat the effect of a row with three ranks or more.
    is_probit = prepared.link == "probit" and family == "cumulative"
    if has_two_ranks or is_probit:
        why = "two ranks" if has_two_ranks else "link='probit'"
        raise ValueError(
            f"{name} has a single row in each group, and with {why} its variance is "
            "not identified: leave it out, or choose a factor whose groups have "
            "several rows"
        )
    warn(
        f"fit_clmm: {name} has a single row in each group, so that only the form of "
        "the link tells its variance from the noise: leave it out, or choose a factor "
        "whose groups have several rows",
        ApproximationWarning,
    )


def _check_quadrature(nodes: Nodes, terms: list[RandomTerm]) -> None:
    """Raise an error if the integral needs too many nodes or too much memory."""
    if nodes not in ("auto", 1) and not has_quadrature(terms):
        raise ValueError(
            "n_quadrature must be 1 or 'auto' with crossed factors, three factors or "
            f"more than 3 effects, got {nodes}: the Laplace approximation fits these"
        )
    if is_nested(terms):
        return
    rest = sum(t.n_levels * t.q for t in terms[1:])
    # A, its factor and the inverse, and products by Lambda
    needed = 8.0 * 7 * rest**2
    check_memory("fit_clmm", needed, f"{rest} effects of all factors but the largest")


def _group_weights(
    given: Any, table: Any, used: np.ndarray, terms: list[RandomTerm]
) -> np.ndarray | None:
    """Return the weight of each level of the factor, or None without weights.

    `used` numbers the rows of the table that are fitted.
    """
    if given is None:
        return None
    given = named_column("group_weight", given, table)
    weight = as_real_array(given, "group_weight", (len(table),), " as X")[used]
    inside = (weight > 0) & (weight <= _HEAVIEST)
    rule = f"lie above 0 and up to {_HEAVIEST:g}"
    check_entries("group_weight", weight, inside, rule)
    if len(terms) > 1:
        raise ValueError(
            "group_weight is for one grouping factor, because groups of several "
            "are not independent: leave it out"
        )
    of_level, row = _values_of_levels(terms[0], weight)
    if row is not None:
        raise ValueError(
            "group_weight must be the same in all rows of a group, but differs in "
            f"row {int(used[row])}: pass weights of rows as sample_weight"
        )
    return of_level


def _values_of_levels(
    term: RandomTerm, values: np.ndarray
) -> tuple[np.ndarray, int | None]:
    """Return the values of rows by level, and the first row that differs from another
    one of its level, or None.
    """
    of_level = np.zeros(term.n_levels, dtype=values.dtype)
    of_level[term.group] = values
    differs = of_level[term.group] != values
    return of_level, int(differs.argmax()) if differs.any() else None


def _check_complete(
    argument: str, absent: np.ndarray, missing: Missing, what: str
) -> None:
    """Raise ValueError if `absent` rows of an argument are an error, or all rows."""
    if absent.any() and (missing == "error" or absent.all()):
        raise ValueError(
            f"{argument}: {int(absent.sum())} of {absent.size} rows lack {what}, the "
            f"first in row {int(absent.argmax())}: pass missing='drop' to leave these "
            "rows out"
        )


def _lacks_cluster(cluster: Any, n: int) -> np.ndarray:
    """Return whether rows lack the label of their cluster, (n,)."""
    labels = None if cluster is None else as_array(cluster, "cluster")
    if labels is None or labels.shape != (n,):  # other lengths are an error later
        return np.zeros(n, dtype=bool)
    return lacks_label(labels)


def _cluster_numbers(
    cluster: Any, n: int, used: np.ndarray, factors: list[GroupFactor]
) -> np.ndarray | None:
    """Return the number of the cluster of each fitted row, or None without clusters."""
    labels = cluster if cluster is None else as_array(cluster, "cluster")
    if labels is not None and labels.shape == (n,):
        labels = labels[used]
    number = CovarianceChoice.from_arguments(False, labels, used.size).groups
    if number is None:
        return None
    for factor in factors:
        _, row = _values_of_levels(factor.term, number)
        if row is not None:
            level = str(factor.levels[factor.term.group[row]])
            raise ValueError(
                f"cluster must contain whole groups, and the rows of "
                f"{factor.spec.name} {shown(level)} lie in several clusters: rows that "
                "share a random effect are not independent. Join these clusters, or "
                "leave cluster out"
            )
    return number


def _fit(
    prepared: PreparedPom, family: str, factors: list[GroupFactor], nodes: Nodes,
    max_iter: int, by_group: np.ndarray | None, clusters: np.ndarray | None,
) -> tuple[ClmmModel, str | None]:  # fmt: skip
    """Find the optimum, and make the model; also return the remedy of its status."""
    terms, monitor = [f.term for f in factors], prepared.monitor
    rows_of: RowsOf = IntervalRows
    if family != "cumulative":
        rows_of = partial(RatioRows, cast(Family, family))

    def started(given: PreparedPom) -> tuple[MixedLikelihood, Start]:
        """Return the loss of prepared rows, and its start."""
        loss = MixedLikelihood(
            given.design, given.link, terms, 1 if nodes == "auto" else nodes,
            given.n_threads, by_group, rows_of, is_panelled(nodes, terms),
        )  # fmt: skip
        return loss, start_of(loss, family, max_iter)

    complete, ranks = prepared, None
    loss, start = started(prepared)
    if prepared.design.lower is not None:
        ranks = rank_order(start, loss)
        while ranks.revise(start.minimum.point.x):
            prepared = complete.in_groups(ranks.group)
            loss, start = started(prepared)
    _check_separation(prepared, start)
    names = [f.spec.name for f in factors]
    found = optimum_of(loss, start, max_iter, monitor, names)
    while ranks is not None and ranks.revise(
        found.x[: prepared.design.n_parameters], separate=False
    ):
        prepared = complete.in_groups(ranks.group)
        loss, start = started(prepared)
        found = optimum_of(loss, start, max_iter, monitor, names)
    design = prepared.design
    loss, x, covariance = found.loss, found.x, found.covariance
    p = design.n_parameters
    if covariance is not None and nodes == "auto" and not loss.by_panels:
        check_laplace(loss, x, names, monitor)
    if covariance is not None and clusters is not None:
        # Clusters whose rows all have weight 0 do not count.
        counted = np.unique(clusters[loss.design.weight > 0])
        scores = loss.scores(x, clusters, int(clusters.max()) + 1)[counted]
        covariance = sandwich_of_clusters(scores, covariance)
    end = monitor.record(found.status, found.n_iter, found.violation, found.value)
    kind: CovarianceType = "observed" if clusters is None else "cluster"
    of_effects, memory = fitted_effects(factors, loss, x, covariance)
    fields = {
        **prepared.fields(start.weighted, x[:p], in_order=family == "cumulative"),
        **of_effects,
        "null_loglik": start.null_loglik,
        "covariance_type": kind,
        "is_singular": found.is_singular,
        "family": family,
        "is_mixed": True,
        "l1": 0.0,
        "l2": 0.0,
        "loglik": -end.primal,
        "separated": read_only(np.zeros(0, dtype=np.int64)),
        "convergence": end,
    }
    model = ClmmModel(**with_records(fields))
    remember(model, memory, prepared.training.used)
    return model, found.remedy


def _check_separation(prepared: PreparedPom, start: Start) -> None:
    """Raise ValueError if columns separate ranks without error."""
    status = start.minimum.status
    _, separated = check_separation_by(start.find_separated, status, prepared.monitor)
    if separated.size:
        names = [prepared.problem.shown_names[j] for j in separated.tolist()]
        raise ValueError(
            f"no finite coefficients are optimal, because {enumerated(names)} "
            "separate ranks without error: leave these columns out"
        )


register(
    Method(
        fit_clmm,
        name="clmm",
        estimator="CLMM",
        accepts={"missing", "categories", "intervals"},
        scale_free=True,
        full_rank=True,
        probabilities=True,
        by_row={"offset", "groups", "group_weight", "cluster"},
        needs="random",
    )
)
