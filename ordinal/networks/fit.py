"""Functions that fit networks with one hidden layer; the package states the problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, Unpack, get_args

import numpy as np

from .._cumulative.likelihood import Link
from .._input.checks import (
    check_choice,
    check_count,
    check_factor,
    check_factor_or_zero,
    check_flag,
)
from .._input.problem import Problem
from .._input.types import ArrayLike, ClassWeight, Labels, MatrixLike, Rng
from .._model.folds import draw_few_folds
from .._model.labelled import MissingLabels
from .._model.preparation import Callback, Common, prepare, shared_arguments
from .._model.registry import PENALTIES, Method, register
from ..preprocessing.base import Preprocess
from ..preprocessing.model import preprocessed
from .convolution import CnnorModel, Sizes, cnnor_model, fit_relations
from .extreme import elmor_model, fit_codes
from .layers import Cumulative, Loss, OrderedCodes, random_layer
from .models import CodeLoss, ElmorModel, NnorModel, NnpomModel, nnor_model, nnpom_model
from .training import TrainedNetwork, Training


@preprocessed
def fit_nnor(
    X: MatrixLike,
    y: Labels,
    *,
    n_hidden: int = 20,
    loss: CodeLoss = "cross_entropy",
    l2: float = 3e-3,
    n_starts: int = 1,
    tol: float = 1e-3,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    preprocess: Preprocess | None = None,
    rng: Rng = 0,
    n_threads: int | None = None,
    max_iter: int = 1000,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> NnorModel:
    """Fit NNOR: a neural network with one output per threshold.

    The docstring of `ordinal.networks` states the problem (P). The outputs are the
    probabilities P(y > k). They share the hidden layer, but are not constrained to
    decrease with k. A step takes O(n h (d + r)) operations.

    Parameters
    ----------
    X : (n, d) array-like, data frame or sparse matrix
        Features, one row per observation; the model standardises them. `predict` finds
        the columns of a data frame by their names. Sparse matrices are converted to
        dense ones a part of the rows at a time.
    y : (n,) array-like
        Labels: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`.
    n_hidden : int, default 20
        Number h of hidden units. With a penalty, more units gain little: 50 had 1 %
        less error on nine data sets and took longer (docs/decisions.md).
    loss : {"cross_entropy", "squared"}, default "cross_entropy"
        Loss (1) or (2). Unlike the squared loss, cross entropy is a likelihood, and its
        gradient does not vanish for outputs that are wrong and close to 0 or 1.
    l2 : float >= 0, default 3e-3
        Penalty of (P) on the weights of standardised features and of hidden units, but
        not on biases. The loss is a mean over rows, so that a good value does not
        depend on their number. The default had the lowest error on nine data sets with
        genuine ranks (docs/decisions.md).
    n_starts : int, default 1
        Number of random starting points. The result with the smallest value of (P) is
        returned.
    tol : float > 0, default 1e-3
        Tolerance on the partial derivatives of (P) by weights and biases. A smaller
        tolerance takes longer and did not improve predictions (docs/decisions.md).
    sample_weight : (n,) array-like >= 0, optional
        Weights of the rows; weight 2 has the same effect as writing the row twice.
        Their sum must lie between 1e-50 and 1e50, and the ratio of two positive weights
        must not exceed 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors by which the weights of the rows are multiplied, per label; "balanced"
        gives all ranks the same total weight. The limits of `sample_weight` hold for
        the products.
    classes : sequence of labels in rank order, optional
        Required if y holds strings. It may list ranks that do not occur in y; these are
        never predicted.
    missing_labels : {"error", "drop"}, default "error"
        Whether rows without a label are an error or are left out, with their entries of
        all other arguments. The attribute `n_missing_labels` counts them.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as in `select`. The fit then returns a
        `PreprocessedModel`, which applies it to new rows, too.
    rng : int or numpy.random.Generator, default 0
        Source of the random numbers that draw the starting points.
    n_threads : int, optional
        Number of threads. Default: the environment variable ORDINAL_NUM_THREADS or,
        without it, the number of processors that this process may use. The result does
        not depend on it, to the last bit (docs/guides/threads.md).
    max_iter : int, default 1000
        Limit on the number of L-BFGS steps from each starting point.
    max_time : float > 0, optional
        Time budget in seconds, checked before every evaluation of (P). When it is
        exhausted, the fit returns its best point so far, with a warning.
    callback : callable, optional
        Function that is called with an `ordinal.models.State` after every step. If it
        returns a true value, the fit stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, elsewhere, as in a notebook, one line every ten seconds.

    Returns
    -------
    NnorModel

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is invalid. This is checked before anything is
        computed.

    Warns
    -----
    ConvergenceWarning
        If the fit from the best starting point stopped before it reached the tolerance,
        or the time budget was exhausted before the last starting point. The message
        names the reason and the remedy.

    See Also
    --------
    fit_nnpom : Fit NNPOM: a neural network with a proportional odds output.
    fit_elmor : Fit ELMOR: an extreme learning machine with ordinal output codes.
    fit_lat : Fit LAT: a linear model with a logistic loss at every threshold.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.companions.fit_nnor(X, y)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.predict_proba([[15.0, 15.0]]).argmax(axis=1)
    array([1])
    """
    check_choice("loss", loss, get_args(CodeLoss))
    l2 = check_factor_or_zero("l2", l2)
    given = shared_arguments(Common, locals())
    loss_of = partial(OrderedCodes, squared=loss == "squared")
    problem, trained = _trained(
        "fit_nnor", X, y, loss_of, n_hidden, l2, n_starts, max_iter, **given
    )
    return nnor_model(problem, trained, loss, l2)


@preprocessed
def fit_nnpom(
    X: MatrixLike,
    y: Labels,
    *,
    n_hidden: int = 20,
    link: Link = "logit",
    l2: float = 1e-2,
    n_starts: int = 1,
    tol: float = 1e-3,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    preprocess: Preprocess | None = None,
    rng: Rng = 0,
    n_threads: int | None = None,
    max_iter: int = 1000,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> NnpomModel:
    """Fit NNPOM: a neural network with a proportional odds output.

    It is the proportional odds model (`fit_pom`) with v'h(x) in place of x'beta, so
    that the thresholds are in order and P(y <= j) increases with j. The docstring of
    `ordinal.networks` states the problem (P). A step takes O(n h d) operations.

    Parameters
    ----------
    X : (n, d) array-like, data frame or sparse matrix
        Features, one row per observation; the model standardises them. `predict` finds
        the columns of a data frame by their names. Sparse matrices are converted to
        dense ones a part of the rows at a time.
    y : (n,) array-like
        Labels: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`.
    n_hidden : int, default 20
        Number h of hidden units. With a penalty, more units gain little: 50 had 1 %
        less error on nine data sets and took longer (docs/decisions.md).
    link : {"logit", "probit", "cloglog", "loglog", "cauchit"}, default "logit"
        Distribution function F of (3): logistic, normal, 1 - exp(-exp t), exp(-exp(-t))
        or Cauchy.
    l2 : float >= 0, default 1e-2
        Penalty of (P), as in `fit_nnor`. With the default of that function, 3e-3,
        errors were larger on average over twelve data sets, and larger than those of a
        constant on one with noisy ranks of unequal size (docs/decisions.md).
    n_starts : int, default 1
        Number of random starting points. The result with the smallest value of (P) is
        returned.
    tol : float > 0, default 1e-3
        Tolerance on the partial derivatives of (P) by weights and biases. A smaller
        tolerance takes longer and did not improve predictions (docs/decisions.md).
    sample_weight : (n,) array-like >= 0, optional
        Weights of the rows; weight 2 has the same effect as writing the row twice.
        Their sum must lie between 1e-50 and 1e50, and the ratio of two positive weights
        must not exceed 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors by which the weights of the rows are multiplied, per label; "balanced"
        gives all ranks the same total weight. The limits of `sample_weight` hold for
        the products.
    classes : sequence of labels in rank order, optional
        Required if y holds strings. It may list ranks that do not occur in y; these are
        never predicted.
    missing_labels : {"error", "drop"}, default "error"
        Whether rows without a label are an error or are left out, with their entries of
        all other arguments. The attribute `n_missing_labels` counts them.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as in `select`. The fit then returns a
        `PreprocessedModel`, which applies it to new rows, too.
    rng : int or numpy.random.Generator, default 0
        Source of the random numbers that draw the starting points.
    n_threads : int, optional
        Number of threads. Default: the environment variable ORDINAL_NUM_THREADS or,
        without it, the number of processors that this process may use. The result does
        not depend on it, to the last bit (docs/guides/threads.md).
    max_iter : int, default 1000
        Limit on the number of L-BFGS steps from each starting point.
    max_time : float > 0, optional
        Time budget in seconds, checked before every evaluation of (P). When it is
        exhausted, the fit returns its best point so far, with a warning.
    callback : callable, optional
        Function that is called with an `ordinal.models.State` after every step. If it
        returns a true value, the fit stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, elsewhere, as in a notebook, one line every ten seconds.

    Returns
    -------
    NnpomModel

    Raises
    ------
    ValueError, TypeError
        As in `fit_nnor`.

    Warns
    -----
    ConvergenceWarning
        As in `fit_nnor`.

    See Also
    --------
    fit_nnor : Fit NNOR: a neural network with one output per threshold.
    ordinal.fit_pom : Fit a cumulative link model by maximum likelihood, such as
        proportional odds.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.companions.fit_nnpom(X, y)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.threshold_names
    ('1|2', '2|3')
    """
    check_choice("link", link, get_args(Link))
    l2 = check_factor_or_zero("l2", l2)
    given = shared_arguments(Common, locals())
    loss_of = partial(Cumulative, link=link)
    problem, trained = _trained(
        "fit_nnpom", X, y, loss_of, n_hidden, l2, n_starts, max_iter, **given
    )
    return nnpom_model(problem, trained, link, l2)


@preprocessed
def fit_elmor(
    X: MatrixLike,
    y: Labels,
    *,
    n_hidden: int = 200,
    ridge: float | Literal["loo"] = "loo",
    tol: float = 0.05,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    preprocess: Preprocess | None = None,
    probability: bool = False,
    rng: Rng = 0,
    n_threads: int | None = None,
    max_iter: int = 100,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> ElmorModel:
    """Fit ELMOR: an extreme learning machine with ordinal output codes.

    In an extreme learning machine the hidden layer (H) is random and not trained, so
    that fitting the outputs is a linear problem, which one decomposition solves:

        min_{V,a}  (1/W) sum_i w_i |c_(y_i) - V h(x_i) - a|^2 + ridge |V|^2          (R)

    The code c of rank y has r - 1 entries: 1 for each threshold k < y and -1 for the
    others. One network has all of them as outputs; this is the single multi-output
    machine of the paper without its constant first column. The rank whose code is
    nearest to the outputs is predicted. A fit takes O(n h (h + d)) operations, and O(n
    h r) per ridge that is tried.

    Parameters
    ----------
    X : (n, d) array-like, data frame or sparse matrix
        Features, one row per observation; the model standardises them. `predict` finds
        the columns of a data frame by their names. Sparse matrices are converted to
        dense ones a part of the rows at a time.
    y : (n,) array-like
        Labels: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`.
    n_hidden : int, default 200
        Number h of hidden units. The paper searches 5 to 100, because without a ridge a
        large number overfits. With a ridge a large number does no harm, and is better
        on data sets of more than a thousand rows.
    ridge : float > 0 or "loo", default "loo"
        Ridge of (R). "loo" chooses the ridge with the smallest squared leave-one-out
        error of the codes (PRESS), which the decomposition gives for every ridge
        without another fit. What is left out of a row is weight 1, or all of its weight
        if that is less. Weight 2 thus still has the same effect as writing the row
        twice, but multiplying all weights by a number can change the ridge.
    tol : float > 0, default 0.05
        Tolerance of ridge="loo" on the logarithm of the ridge. If a ridge is given,
        tolerance on the residual of the normal equations relative to their largest
        right-hand side.
    sample_weight : (n,) array-like >= 0, optional
        Weights of the rows; weight 2 has the same effect as writing the row twice.
        Their sum must lie between 1e-50 and 1e50, and the ratio of two positive weights
        must not exceed 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors by which the weights of the rows are multiplied, per label; "balanced"
        gives all ranks the same total weight. The limits of `sample_weight` hold for
        the products.
    classes : sequence of labels in rank order, optional
        Required if y holds strings. It may list ranks that do not occur in y; these are
        never predicted.
    missing_labels : {"error", "drop"}, default "error"
        Whether rows without a label are an error or are left out, with their entries of
        all other arguments. The attribute `n_missing_labels` counts them.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as in `select`. The fit then returns a
        `PreprocessedModel`, which applies it to new rows, too.
    probability : bool, default False
        Whether to calibrate the probabilities of `predict_proba`. This uses the
        leave-one-out outputs of at most 50 000 rows and takes no further fits.
    rng : int or numpy.random.Generator, default 0
        Source of the random numbers that draw the hidden layer: normal weights of
        variance 1 / d and biases of variance 1, with which the units are nonlinear
        within the range of the rows. The paper draws them uniformly from -1 to 1, with
        which units are almost linear if d is small, and saturated if it is large.
    n_threads : int, optional
        Number of threads. Default: the environment variable ORDINAL_NUM_THREADS or,
        without it, the number of processors that this process may use. The result does
        not depend on it, to the last bit (docs/guides/threads.md).
    max_iter : int, default 100
        Limit on the number of passes over the rows to find the ridge, which usually
        takes about five.
    max_time : float > 0, optional
        Time budget in seconds, checked before every pass. When it is exhausted, the fit
        returns its best result so far, with a warning.
    callback : callable, optional
        Function that is called with an `ordinal.models.State` before every pass. If it
        returns a true value, the fit stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, elsewhere, as in a notebook, one line every ten seconds.

    Returns
    -------
    ElmorModel

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is invalid. This is checked before anything is
        computed.

    Warns
    -----
    ConvergenceWarning
        If the search for the ridge stopped before it reached the tolerance. The message
        names the reason and the remedy.

    See Also
    --------
    fit_nnor : Fit NNOR: a neural network with one output per threshold.
    fit_kdlor : Fit KDLOR: kernel discriminant analysis with ordered means.

    References
    ----------
    W.-Y. Deng, Q.-H. Zheng, S. Lian, L. Chen, X. Wang, "Ordinal extreme learning
    machine", Neurocomputing 74:447-456, 2010. D. M. Allen, "The relationship between
    variable selection and data augmentation and a method for prediction",
    Technometrics 16:125-127, 1974.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.companions.fit_elmor(X, y, probability=True)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.predict_proba([[15.0, 15.0]]).argmax(axis=1)
    array([1])
    """
    n_hidden = check_count("n_hidden", n_hidden)
    if isinstance(ridge, str):
        check_choice("ridge", ridge, ("loo",))
    else:
        ridge = check_factor("ridge", ridge)
    probability = check_flag("probability", probability)
    max_iter = check_count("max_iter", max_iter)
    prepared = prepare("fit_elmor", X, y, **shared_arguments(Common, locals()))
    problem = prepared.problem
    U = random_layer(problem.n_features, n_hidden, prepared.rng)
    share = draw_few_folds(problem, prepared.rng) if probability else None
    with prepared.monitor:
        given = None if ridge == "loo" else float(ridge)
        fitted = fit_codes(prepared, U, given, share, max_iter)
        prepared.monitor.conclude(fitted)
    return elmor_model(problem, fitted)


@preprocessed
def fit_cnnor(
    X: MatrixLike,
    y: Labels,
    *,
    width: int = 3,
    n_filters: int = 8,
    n_hidden: int = 16,
    n_places: int = 4,
    l2: float = 1e-2,
    n_triplets: int = 20_000,
    n_compared: int = 200,
    tol: float = 1e-3,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    preprocess: Preprocess | None = None,
    rng: Rng = 0,
    n_threads: int | None = None,
    max_iter: int = 1000,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> CnnorModel:
    """Fit CNNOR: a convolutional network trained on triplets of rows.

    A network of three layers maps each row to its embedding e(x) of q numbers: tanh of
    F filters on w neighbouring features, in the order of the columns of X and padded
    with zeros; tanh of h units; and a linear layer. A triplet at a threshold has a row
    l of the rank below it, a row h of the rank above it, and any row x. It asks on
    which side of the threshold x is:

        u = |e(x) - e(l)|^2 - |e(x) - e(h)|^2,  P(x is above) = 1 / (1 + exp(-u))    (T)

        min  mean of the cross entropy of the triplets + l2/2 |weights|^2            (P)

    For prediction, the mean of P over pairs of training rows at each threshold is the
    vote for y > k. A logistic function of its log odds, fitted to the training rows at
    each threshold, corrects the effect of the random pairs. Labels and probabilities
    then follow as for `fit_nnor`.

    The paper was known to us only from its abstract and from summaries: it has one
    binary problem per rank, whose networks learn from triplets of rows of different
    ranks whether they are in order, which increases the number of training examples of
    a small data set; a test row forms triplets with rows of known ranks, and a decoder
    counts their votes. It is meant for images. Choices of this implementation are the
    network for tables, which is the same for all thresholds, the relation (T), which is
    antisymmetric in l and h, neighbouring ranks for l and h, the penalty, and L-BFGS.

    Parameters
    ----------
    X : (n, d) array-like, data frame or sparse matrix
        Features, one row per observation, in the order of the convolution; the model
        standardises them. `predict` finds the columns of a data frame by their names.
        Sparse matrices are converted to dense ones a part of the rows at a time.
    y : (n,) array-like
        Labels: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`.
    width : int, default 3
        Number w of features per filter.
    n_filters, n_hidden, n_places : int, default 8, 16 and 4
        Numbers of filters F, of hidden units h, and of entries q of the embedding. With
        q = 1 rows are ordered along a line, with a larger q along a curve.
    l2 : float >= 0, default 1e-2
        Penalty of (P) on all weights but not on biases. With 1e-3, errors were larger
        on average over twelve data sets, and larger than those of a constant on two
        with noisy ranks (docs/decisions.md). Try 1e-3 if ranks depend on products of
        features only.
    n_triplets : int, default 20 000
        Approximate limit on the number of triplets; there are ten per row and threshold
        if that is less. At every threshold, the triplets of a rank are proportional to
        its rows. The time of a fit is proportional to this number and to n.
    n_compared : int, default 200
        Number of pairs of training rows per threshold with which new rows are compared.
    tol : float > 0, default 1e-3
        Tolerance on the partial derivatives of (P) by weights and biases.
    sample_weight : (n,) array-like >= 0, optional
        Weights of the rows: they multiply the loss of x, and the probability to be
        drawn as l or h. Weight 2 has the same effect as writing the row twice, except
        that other triplets are drawn. Their sum must lie between 1e-50 and 1e50, and
        the ratio of two positive weights must not exceed 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors by which the weights of the rows are multiplied, per label; "balanced"
        gives all ranks the same total weight. The limits of `sample_weight` hold for
        the products.
    classes : sequence of labels in rank order, optional
        Required if y holds strings. It may list ranks that do not occur in y; these are
        never predicted.
    missing_labels : {"error", "drop"}, default "error"
        Whether rows without a label are an error or are left out, with their entries of
        all other arguments. The attribute `n_missing_labels` counts them.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as in `select`. The fit then returns a
        `PreprocessedModel`, which applies it to new rows, too.
    rng : int or numpy.random.Generator, default 0
        Source of the random numbers that draw the initial weights, the triplets and the
        pairs for prediction.
    n_threads : int, optional
        Number of threads. Default: the environment variable ORDINAL_NUM_THREADS or,
        without it, the number of processors that this process may use. The result does
        not depend on it, to the last bit (docs/guides/threads.md).
    max_iter : int, default 1000
        Limit on the number of L-BFGS steps.
    max_time : float > 0, optional
        Time budget in seconds, checked before every evaluation of (P). When it is
        exhausted, the fit returns its best point so far, with a warning.
    callback : callable, optional
        Function that is called with an `ordinal.models.State` after every step. If it
        returns a true value, the fit stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, elsewhere, as in a notebook, one line every ten seconds.

    Returns
    -------
    CnnorModel

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is invalid. This is checked before anything is
        computed.

    Warns
    -----
    ConvergenceWarning
        If the fit stopped before it reached the tolerance. The message names the reason
        and the remedy.

    See Also
    --------
    fit_nnor : Fit NNOR: a neural network with one output per threshold.
    ordinal.fit_gpor : Fit GPOR: a Gaussian process with an ordinal likelihood.

    References
    ----------
    Y. Liu, A. W.-K. Kong, C. K. Goh, "Deep ordinal regression based on data
    relationship for small datasets", IJCAI 2017, 2372-2378.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.companions.fit_cnnor(X, y)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.predict_proba([[15.0, 15.0]]).argmax(axis=1)
    array([1])
    """
    sizes = Sizes(
        check_count("width", width),
        check_count("n_filters", n_filters),
        check_count("n_hidden", n_hidden),
        check_count("n_places", n_places),
        check_count("n_triplets", n_triplets),
        check_count("n_compared", n_compared),
    )
    l2 = check_factor_or_zero("l2", l2)
    max_iter = check_count("max_iter", max_iter)
    prepared = prepare("fit_cnnor", X, y, **shared_arguments(Common, locals()))
    with prepared.monitor:
        found = fit_relations(prepared, sizes, l2, max_iter)
        prepared.monitor.conclude(found)
    return cnnor_model(prepared.problem, found, l2)


def _trained(
    name: str,
    X: MatrixLike,
    y: Labels,
    loss_of: Callable[[np.ndarray, np.ndarray], Loss],
    n_hidden: int,
    l2: float,
    n_starts: int,
    max_iter: int,
    **common: Unpack[Common],
) -> tuple[Problem, TrainedNetwork]:
    """Train the network of `fit_nnor` or `fit_nnpom`, by name.

    `loss_of` makes the loss from the ranks of the rows and their shares of the weight.
    """
    n_hidden = check_count("n_hidden", n_hidden)
    n_starts = check_count("n_starts", n_starts)
    max_iter = check_count("max_iter", max_iter)
    prepared = prepare(name, X, y, **common)
    with prepared.monitor:
        training = Training.from_problem(prepared.problem)
        loss = loss_of(training.rank, training.share)
        trained = training.best(prepared, loss, n_hidden, n_starts, l2, max_iter)
        prepared.monitor.conclude(trained)
    return prepared.problem, trained


for _fit, _name, _rule in ((fit_nnor, "nnor", "scan"), (fit_nnpom, "nnpom", "mode")):
    register(
        Method(
            _fit,
            name=_name,
            estimator=_name.upper(),
            own_rule=_rule,
            accepts={"sparse"},
            scale_free=True,
            probabilities=True,
            grid={"l2": PENALTIES},
        )
    )

register(
    Method(
        fit_elmor,
        name="elmor",
        estimator="ELMOR",
        own_rule="nearest",
        accepts={"sparse"},
        scale_free=True,
        grid={"n_hidden": (50, 100, 200, 400)},
    )
)

register(
    Method(
        fit_cnnor,
        name="cnnor",
        estimator="CNNOR",
        own_rule="scan",
        accepts={"sparse"},
        scale_free=True,
        probabilities=True,
        grid={"l2": PENALTIES},
    )
)
