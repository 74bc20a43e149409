"""Functions that fit networks with one hidden layer; the package states the problem."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any, Literal, Unpack, get_args

import numpy as np  # noqa: F401 - Rng names a type of it

from .._cumulative.likelihood import Link
from .._input.checks import (
    check_choice,
    check_count,
    check_factor,
    check_factor_or_zero,
    check_flag,
)
from .._input.types import ArrayLike, Blocks, ClassWeight, Labels, MatrixLike, Rng
from .._model.folds import few_folds
from .._model.preparation import Callback, Common, Prepared, prepare
from .._model.registry import PENALTIES, Method, register
from .._rows.chunks import Reading, is_chunked
from ..preprocessing.joined import Preprocess, preprocessed
from .convolution import Sizes, fit_relations
from .extreme import elmor_model, fit_codes
from .layers import Cumulative, Loss, OrderedCodes, random_layer
from .models import (
    CodeLoss,
    ElmorModel,
    NnorModel,
    NnpomModel,
    nnor_model,
    nnpom_model,
)
from .relations import CnnorModel, cnnor_model
from .training import Trained, Training


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
    preprocess: Preprocess | None = None,
    rng: Rng = 0,
    n_threads: int | None = None,
    max_iter: int = 1000,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> NnorModel:
    """Fit NNOR: a neural network with one output per threshold.

    The module's docstring states (P). Each output is a P(y > k) of its own, which share
    the hidden layer but are not bound to be in order. O(n h (d + r)) a step.

    Parameters
    ----------
    X : (n, d) array-like, data frame or sparse matrix
        Rows of features, which are standardised within the model. `predict` finds the
        columns of a data frame by their names. Rows of a sparse matrix become dense
        some at a time.
    y : (n,) array-like
        Ranks: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`.
    n_hidden : int, default 20
        Units of the hidden layer, h. With a penalty, what more of them bring is small:
        50 had 1 % less error on nine sets, and take longer (docs/decisions.md).
    loss : {"cross_entropy", "squared"}, default "cross_entropy"
        (1) or (2). The first is the likelihood of the codes, and its slope does not
        vanish where an output is wrong for certain.
    l2 : float >= 0, default 3e-3
        Of (P), for the weights of standardised features and of units, not for biases.
        The loss is a mean, so that a penalty means the same for any number of rows. The
        default did best on nine sets with genuine ranks (docs/decisions.md).
    n_starts : int, default 1
        Random hidden layers to begin from; the one with the least (P) in the end is
        the model.
    tol : float > 0, default 1e-3
        Largest slope of (P) by a weight or a bias of a converged fit. A smaller one
        takes longer and predicted no better (docs/decisions.md).
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
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as in `select`. The fit then returns a
        `PreprocessedModel`, which applies it to new rows, too.
    rng : int or numpy.random.Generator, default 0
        Draws the hidden layers at the start.
    n_threads : int, optional
        Number of threads. Default: the environment variable ORDINAL_NUM_THREADS or,
        without it, the number of processors that this process may use. The result does
        not depend on it, to the last bit (docs/guides/threads.md).
    max_iter : int, default 1000
        Steps of L-BFGS from each start.
    max_time : float > 0, optional
        Seconds, looked at before every evaluation of (P).
    callback : callable, optional
        Called with an `ordinal.State` after every step; a true value stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, in a notebook a progress bar (of tqdm, if installed), elsewhere one line
        every ten seconds.

    Returns
    -------
    NnorModel

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is unusable; nothing has been computed then.

    Warns
    -----
    ConvergenceWarning
        The search from the best start ended short of the tolerance, or time was up
        before the last start; the message says why and what helps.

    See Also
    --------
    fit_nnpom : Fit NNPOM: a neural network with a proportional odds output.
    fit_elmor : Fit ELMOR: an extreme learning machine with ordinal output codes.
    fit_lat : Fit LAT: a linear model with a logistic loss at every threshold.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_nnor(X, y)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.predict_proba([[15.0, 15.0]]).argmax(axis=1)
    array([1])
    """
    check_choice("loss", loss, get_args(CodeLoss))
    job = _NetworkFit("fit_nnor", n_hidden, l2, n_starts, max_iter)
    prepared = job.prepare(
        X, y, tol=tol, sample_weight=sample_weight, class_weight=class_weight,
        classes=classes, rng=rng, n_threads=n_threads, max_time=max_time,
        callback=callback, verbose=verbose,
    )  # fmt: skip
    with prepared.monitor as monitor:
        training = Training.from_problem(prepared.problem)
        codes = OrderedCodes(training.rank, training.share, loss == "squared")
        trained = job.trained(prepared, training, codes)
        monitor.conclude(trained.convergence)
    trained.convergence.warn_unless_converged("fit_nnor")
    return nnor_model(prepared.problem, trained, loss, job.l2)


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
    preprocess: Preprocess | None = None,
    rng: Rng = 0,
    n_threads: int | None = None,
    max_iter: int = 1000,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> NnpomModel:
    """Fit NNPOM: a neural network with a proportional odds output.

    The module's docstring states (P). It is the proportional odds model (`fit_pom`)
    with v'h(x) in place of x'beta: the thresholds are in order, and so are its
    probabilities. O(n h d) a step.

    Parameters
    ----------
    X : (n, d) array-like, data frame or sparse matrix
        Rows of features, which are standardised within the model. `predict` finds the
        columns of a data frame by their names. Rows of a sparse matrix become dense
        some at a time.
    y : (n,) array-like
        Ranks: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`.
    n_hidden : int, default 20
        Units of the hidden layer, h. With a penalty, what more of them bring is small:
        50 had 1 % less error on nine sets, and take longer (docs/decisions.md).
    link : {"logit", "probit", "cloglog", "loglog", "cauchit"}, default "logit"
        F of (3): logistic, normal, 1 - exp(-exp t), exp(-exp(-t)) or Cauchy.
    l2 : float >= 0, default 1e-2
        Of (P). With 3e-3, the default of `fit_nnor`, the model was worse than a
        constant on a table of noisy ranks of unequal size, and on twelve tables worse
        on average (docs/decisions.md).
    n_starts : int, default 1
        Random hidden layers to begin from; the one with the least (P) in the end is
        the model.
    tol : float > 0, default 1e-3
        Largest slope of (P) by a weight or a bias of a converged fit. A smaller one
        takes longer and predicted no better (docs/decisions.md).
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
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as in `select`. The fit then returns a
        `PreprocessedModel`, which applies it to new rows, too.
    rng : int or numpy.random.Generator, default 0
        Draws the hidden layers at the start.
    n_threads : int, optional
        Number of threads. Default: the environment variable ORDINAL_NUM_THREADS or,
        without it, the number of processors that this process may use. The result does
        not depend on it, to the last bit (docs/guides/threads.md).
    max_iter : int, default 1000
        Steps of L-BFGS from each start.
    max_time : float > 0, optional
        Seconds, looked at before every evaluation of (P).
    callback : callable, optional
        Called with an `ordinal.State` after every step; a true value stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, in a notebook a progress bar (of tqdm, if installed), elsewhere one line
        every ten seconds.

    Returns
    -------
    NnpomModel

    Raises
    ------
    ValueError, TypeError
        As `fit_nnor`.

    Warns
    -----
    ConvergenceWarning
        As `fit_nnor`.

    See Also
    --------
    fit_nnor : Fit NNOR: a neural network with one output per threshold.
    fit_pom : Fit a cumulative link model by maximum likelihood, such as the
        proportional odds model.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_nnpom(X, y)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.threshold_names
    ('1|2', '2|3')
    """
    check_choice("link", link, get_args(Link))
    job = _NetworkFit("fit_nnpom", n_hidden, l2, n_starts, max_iter)
    prepared = job.prepare(
        X, y, tol=tol, sample_weight=sample_weight, class_weight=class_weight,
        classes=classes, rng=rng, n_threads=n_threads, max_time=max_time,
        callback=callback, verbose=verbose,
    )  # fmt: skip
    with prepared.monitor as monitor:
        training = Training.from_problem(prepared.problem)
        below = Cumulative(training.rank, training.share, link)
        trained = job.trained(prepared, training, below)
        monitor.conclude(trained.convergence)
    trained.convergence.warn_unless_converged("fit_nnpom")
    return nnpom_model(prepared.problem, trained, link, job.l2)


@preprocessed
def fit_elmor(
    X: MatrixLike | Blocks,
    y: Labels | None,
    *,
    n_hidden: int = 200,
    ridge: float | Literal["loo"] = "loo",
    tol: float = 0.05,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    classes: Sequence[Any] | None = None,
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

    The extreme learning machine: the hidden layer (H) is drawn and stays as it is, so
    that the outputs are a linear problem, solved by one decomposition:

        min_{V,a}  (1/W) sum_i w_i |c_(y_i) - V h(x_i) - a|^2 + ridge |V|^2          (R)

    The code c of rank y has 1 for each threshold k < y and -1 for the others, r - 1
    numbers, all of which one network puts out: the paper's single multi-output
    machine, whose constant first column is left out. A rank is predicted whose code is
    nearest. O(n h (h + d)) in all, and O(n h r) for each ridge that is tried.

    Parameters
    ----------
    X : (n, d) array-like, data frame or sparse matrix
        Rows of features, which are standardised within the model. `predict` finds the
        columns of a data frame by their names. Or a source of blocks (`ordinal.data`),
        or a numpy.memmap, whose rows are read at every pass, some seven in all, and
        need not fit in memory. Rows of a sparse matrix become dense some at a time.
    y : (n,) array-like, or None where X is a source of blocks
        Ranks: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`.
    n_hidden : int, default 200
        Units of the hidden layer, h. The paper searches 5 to 100 of them, for without
        a ridge too many fit the last row; with one, more do no harm, and on sets of
        over a thousand rows some good.
    ridge : float > 0 or "loo", default "loo"
        Of (R). "loo" takes the one of least leave-one-out error of the codes, in the
        same units: PRESS, which the decomposition gives for every ridge without another
        fit. One observation of a row is left out: weight 1, or all of a row that weighs
        less. So weight 2 is still the row written twice, but weights that are all half
        as large are not the same.
    tol : float > 0, default 0.05
        How far the logarithm of the ridge may be from that of least error. Where a
        ridge is given, the largest amount by which the normal equations may be missed,
        as a share of their largest right side.
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
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as in `select`. The fit then returns a
        `PreprocessedModel`, which applies it to new rows, too.
    probability : bool, default False
        Also fit the link that `predict_proba` needs, on the outputs of rows that are
        left out, 50 000 of them at most. It takes no other fits.
    rng : int or numpy.random.Generator, default 0
        Draws the hidden layer, as `fit_nnor` begins: normal weights of the variance
        1/d, and biases of variance 1, so that its units bend among the rows. The
        paper's, uniform from -1 to 1, make units that hardly bend where d is small and
        do little else where it is large.
    n_threads : int, optional
        Number of threads. Default: the environment variable ORDINAL_NUM_THREADS or,
        without it, the number of processors that this process may use. The result does
        not depend on it, to the last bit (docs/guides/threads.md).
    max_iter : int, default 100
        Passes over the rows that look for the ridge; some five are usual.
    max_time : float > 0, optional
        Seconds, looked at before every pass.
    callback : callable, optional
        Called with an `ordinal.State` before every pass; a true value stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, in a notebook a progress bar (of tqdm, if installed), elsewhere one line
        every ten seconds.

    Returns
    -------
    ElmorModel

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is unusable; nothing has been computed then.

    Warns
    -----
    ConvergenceWarning
        The search of the ridge ended short of the tolerance; the message says why and
        what helps.

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
    >>> model = ordinal.fit_elmor(X, y, probability=True)
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
    reading = Reading(is_chunked(X), remote=False)
    prepared = prepare(
        "fit_elmor", X, y, reading, tol=tol, sample_weight=sample_weight,
        class_weight=class_weight, classes=classes, rng=rng, n_threads=n_threads,
        max_time=max_time, callback=callback, verbose=verbose,
    )  # fmt: skip
    problem = prepared.problem
    U = random_layer(problem.n_features, n_hidden, prepared.rng)
    share = few_folds(problem, prepared.rng) if probability else None
    with prepared.monitor as monitor, closing(problem):
        fitted = fit_codes(
            problem,
            U,
            None if ridge == "loo" else float(ridge),
            share,
            n_threads=prepared.n_threads,
            max_iter=max_iter,
            monitor=monitor,
        )
        monitor.conclude(fitted.convergence)
    fitted.convergence.warn_unless_converged("fit_elmor")
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
    preprocess: Preprocess | None = None,
    rng: Rng = 0,
    n_threads: int | None = None,
    max_iter: int = 1000,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> CnnorModel:
    """Fit CNNOR: a convolutional network trained on triplets of rows.

    A tower of three layers, whose weights all rows share, gives a row its place e(x),
    q numbers: tanh of F filters on w neighbouring features, in the order in which X has
    them, with zeros beyond; tanh of h units; and a linear layer. A triplet at a
    threshold has a row l of the rank below it, a row h of the rank above it, and any
    row x, and asks on whose side that is:

        u = |e(x) - e(l)|^2 - |e(x) - e(h)|^2,  P(x is above) = 1 / (1 + exp(-u))    (T)

        min  mean of the cross entropy of the triplets + l2/2 |weights|^2            (P)

    A row is predicted by the mean of P over pairs of training rows at each threshold,
    the votes for y > k. A logistic function of their log odds, fitted to the training
    rows at each threshold, makes good what a draw of pairs adds; ranks and
    probabilities then follow as for `fit_nnor`.

    What is known of the paper, from its abstract and from summaries: ranks become
    binary problems, one a rank, networks of one origin learn from triplets of rows of
    different ranks whether they are in order, which multiplies the rows of a small set,
    and a test row forms triplets with rows of known rank, whose votes a decoder counts.
    It is for pictures. What is chosen here: the tower for tables, one for all
    thresholds, the relation (T), which the distances in it make antisymmetric in l and
    h, neighbouring ranks for l and h, the penalty, and L-BFGS.

    Parameters
    ----------
    X : (n, d) array-like, data frame or sparse matrix
        Rows of features, which are standardised within the model; their order is that
        of the convolution. `predict` finds the columns of a data frame by their names.
        Rows of a sparse matrix become dense some at a time.
    y : (n,) array-like
        Ranks: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`.
    width : int, default 3
        Features under a filter, w.
    n_filters, n_hidden, n_places : int, default 8, 16 and 4
        F, h and q. One place orders rows on a line; more let ranks bend.
    l2 : float >= 0, default 1e-2
        Of (P), for all weights but the biases. With 1e-3 the model was worse than a
        constant on two tables of noisy ranks, and on twelve tables worse on average
        (docs/decisions.md). Where ranks follow from a product of features alone, a
        smaller one finds it more surely: try 1e-3.
    n_triplets : int, default 20 000
        At most, about; ten for each row and threshold where that is less. Every rank is
        asked of every threshold in proportion to its rows. The time is in proportion
        to them and to n.
    n_compared : int, default 200
        Pairs of training rows at each threshold, with which rows are compared to
        predict them.
    tol : float > 0, default 1e-3
        Largest slope of (P) by a weight or a bias of a converged fit.
    sample_weight : (n,) array-like >= 0, optional
        Of the loss of a row that is asked, and the chance of one to be drawn for a
        side. Weight 2 means the row written twice, but not to the same triplets: these
        are drawn. The sum must lie between 1e-50 and 1e50, and positive weights differ
        by a factor of at most 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors by which the weights of the rows are multiplied, per label; "balanced"
        gives all ranks the same total weight. The limits of `sample_weight` hold for
        the products.
    classes : sequence of labels in rank order, optional
        Required if y holds strings. It may list ranks that do not occur in y; these are
        never predicted.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as in `select`. The fit then returns a
        `PreprocessedModel`, which applies it to new rows, too.
    rng : int or numpy.random.Generator, default 0
        Draws the weights at the start, the triplets, and the pairs to compare with.
    n_threads : int, optional
        Number of threads. Default: the environment variable ORDINAL_NUM_THREADS or,
        without it, the number of processors that this process may use. The result does
        not depend on it, to the last bit (docs/guides/threads.md).
    max_iter : int, default 1000
        Steps of L-BFGS.
    max_time : float > 0, optional
        Seconds, looked at before every evaluation of (P).
    callback : callable, optional
        Called with an `ordinal.State` after every step; a true value stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, in a notebook a progress bar (of tqdm, if installed), elsewhere one line
        every ten seconds.

    Returns
    -------
    CnnorModel

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is unusable; nothing has been computed then.

    Warns
    -----
    ConvergenceWarning
        The search ended short of the tolerance; the message says why and what helps.

    See Also
    --------
    fit_nnor : Fit NNOR: a neural network with one output per threshold.
    fit_gpor : Fit GPOR: a Gaussian process with an ordinal likelihood.

    References
    ----------
    Y. Liu, A. W.-K. Kong, C. K. Goh, "Deep ordinal regression based on data
    relationship for small datasets", IJCAI 2017, 2372-2378.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_cnnor(X, y)
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
    prepared = prepare(
        "fit_cnnor",
        X,
        y,
        tol=tol,
        sample_weight=sample_weight,
        class_weight=class_weight,
        classes=classes,
        rng=rng,
        n_threads=n_threads,
        max_time=max_time,
        callback=callback,
        verbose=verbose,
    )  # fmt: skip
    with prepared.monitor as monitor:
        found = fit_relations(
            Training.from_problem(prepared.problem),
            sizes,
            l2,
            max_iter=max_iter,
            n_threads=prepared.n_threads,
            rng=prepared.rng,
            monitor=monitor,
        )
        monitor.conclude(found.convergence)
    found.convergence.warn_unless_converged("fit_cnnor")
    return cnnor_model(prepared.problem, found, l2)


class _NetworkFit:
    """Checked arguments of both fits."""

    def __init__(self, name: str, n_hidden: int, l2: float, n_starts: int, steps: int):
        self.name = name
        self.n_hidden = check_count("n_hidden", n_hidden)
        self.l2 = check_factor_or_zero("l2", l2)
        self.n_starts = check_count("n_starts", n_starts)
        self.max_iter = check_count("max_iter", steps)

    def prepare(self, X: MatrixLike, y: Labels, **common: Unpack[Common]) -> Prepared:
        return prepare(self.name, X, y, **common)

    def trained(self, prepared: Prepared, training: Training, loss: Loss) -> Trained:
        return training.best(
            loss,
            n_hidden=self.n_hidden,
            n_starts=self.n_starts,
            l2=self.l2,
            max_iter=self.max_iter,
            n_threads=prepared.n_threads,
            rng=prepared.rng,
            monitor=prepared.monitor,
        )


for _fit, _name in ((fit_nnor, "nnor"), (fit_nnpom, "nnpom")):
    register(
        Method(
            _fit,
            name=_name,
            estimator=_name.upper(),
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
        accepts={"sparse"},
        scale_free=True,
        grid={"n_hidden": (50, 100, 200, 400)},
        reads_chunks=True,
    )
)

register(
    Method(
        fit_cnnor,
        name="cnnor",
        estimator="CNNOR",
        accepts={"sparse"},
        scale_free=True,
        probabilities=True,
        grid={"l2": PENALTIES},
    )
)
