"""Base class of all models: description, files, and columns found by name."""

from __future__ import annotations  # numpy.random is slow to import

import os
from dataclasses import dataclass, field
from typing import (
    IO,
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Protocol,
    TypeVar,
    cast,
    overload,
)

import numpy as np

from .._input.checks import enumerated, shown, with_suggestions
from .._input.columns import Categories, frame_columns, is_frame
from .._input.features import read_features
from .._input.fields import Array
from .._input.frame import default_names
from .._input.labels import rounded_labels
from .._input.sparse import CSR
from .._input.types import ArrayLike, Labels, MatrixLike, Rng, RowsLike
from .._watch.convergence import Convergence, warn_of_unknown_levels, warn_of_unnamed
from .column_names import READING, innermost, reads_records, with_names
from .explanation import Explanation, Named
from .printing import Page, rounded, rows_left_out
from .storage import Storable, read_file
from .training_rows import RowsUsed
from .views import views

_S = TypeVar("_S", bound=Storable)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, eq=False)
class Origin(Storable):
    """Fit and training data from which a model comes.

    Attributes
    ----------
    call : str or None
        Call that made the model, with its hyperparameters.
    label_type : {"categorical", "interval"}, or None
        Whether the labels were an ordered Categorical of pandas. `predict` then returns
        one as well; for a data frame, a Series with its index. The categories of
        "interval" were intervals, as `pandas.cut` makes them; `classes` then holds
        their text.
    training_rows : (k,) array of uint64, or None
        Digests of at most 64 training rows, by which a report recognises them; None if
        they are not known, as of rows in chunks.
    """

    call: str | None
    label_type: Literal["categorical", "interval"] | None
    training_rows: Annotated[np.ndarray, Array("u8", "_")] | None


# Attributes of models of R, statsmodels and scikit-learn
_ATTRIBUTES = {
    "beta": "coef",
    "bse": "standard_errors",
    "best_estimator": "model",
    "best_params": "params",
    "coefficients": "coef",
    "coefs": "coef",
    "conf_int": "confint",
    "cov_params": "covariance",
    "effects": "marginal_effects",
    "edf": "dof",
    "evaluate": "score",
    "feature_importance": "explain",
    "feature_importances": "explain",
    "feature_names_in": "feature_names",
    "fixef": "coef",
    "get_margeff": "marginal_effects",
    "intercept": "thresholds",
    "llf": "loglik",
    "lp": "decision_function",
    "n_features_in": "n_features",
    "params": "coef",
    "resid": "residuals",
    "save_model": "save",
    "se": "standard_errors",
    "shap_values": "contributions",
    "std_errors": "standard_errors",
    "support_vectors": "support",
    "stderr": "standard_errors",
    "theta": "thresholds",
    "VarCorr": "deviations",
    "logLik": "loglik",
    "AIC": "aic",
    "BIC": "bic",
    "vcov": "covariance",
    "zeta": "thresholds",
}
# Functions of models, whose names are taken for methods
_OF_INFERENCE = (
    "add1", "anova", "augment", "confint", "contrasts", "drop1", "equality_test",
    "glance", "goodness_of_fit", "hosmer_lemeshow", "influence", "jeffreys", "lr_test",
    "marginal_effects", "monotone_effects", "negative_rows", "odds_ratios",
    "predictions", "proportional_odds_test", "residuals", "scale_test", "simulate",
    "simulated_residuals", "simultaneous_band", "simultaneous_intervals", "step",
    "tidy", "wald_test",
)  # fmt: skip
# What they stand for, where models have the attribute that comes first
_IN_WORDS = {
    **{
        name: ("predict", f"it is ordinal.inference.{name}(model), for linear models")
        for name in _OF_INFERENCE
    },
    **dict.fromkeys(
        ("plot", "plot_importance"),
        ("explain", "explain(X).plot() draws importances, ordinal.plot other figures"),
    ),
    "summary": ("report", "print(model) is one, and report(X, y) returns a page"),
    **dict.fromkeys(
        ("p_values", "pvalues", "tvalues", "zvalues"),
        ("standard_errors", "model.table() has them"),
    ),
    **dict.fromkeys(
        ("deviance", "nobs", "prsquared", "rsquared"),
        ("standard_errors", "ordinal.inference.glance(model) has it"),
    ),
    **dict.fromkeys(
        ("fitted", "fitted_values", "fittedvalues"),
        ("predict_proba", "predict_proba(X) of the training rows has them"),
    ),
    **dict.fromkeys(
        ("fit", "get_params", "set_params"),
        ("predict", "fits are functions; ordinal.sklearn has estimators"),
    ),
    **dict.fromkeys(
        ("contributions", "shap_values"), ("explain", "explain(X) has them")
    ),
    **dict.fromkeys(
        ("cv_results", "results", "trials"), ("best_score", "table() has them")
    ),
    "df_residual": ("dof", "dof counts parameters, ordinal.inference.glance rows"),
    "n_iter": ("convergence", "it is model.convergence.n_iter"),
    "predict_log_proba": ("predict_proba", "it is np.log(predict_proba(X))"),
    "ranef": ("standard_errors", "fit_clmm fits random effects"),
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Model(Storable):
    """Base class of all models, which are immutable and have read-only arrays.

    Attributes
    ----------
    classes : (r,) array
        Labels in rank order.
    n_features : int
        Number of columns that `predict` expects.
    feature_names : tuple of (n_features,) str, or None
        Names of these columns, if the model was fitted on a data frame. `predict` then
        accepts data frames with these columns in any order, and with others; the
        columns of an array are identified by their positions.
    convergence : Convergence
        Record of the fit: its status, and bounds on the distance to the optimum.
    n_missing_labels : int
        Number of training rows that `missing_labels="drop"` left out.
    rule : str or None
        Rule by which `predict` predicts unless it is given another: the one that
        belongs to the score by which `select` or `compare` chose the model. None stands
        for the method's own rule. A model behind a preprocessor has it itself.
    origin : Origin or None
        The call of the fit (`origin.call`), the type of its labels and digests of some
        training rows; None for a model that no fit of this package made.
    """

    n_missing_labels: int = field(default=0, kw_only=True)
    rule: str | None = field(default=None, kw_only=True)
    origin: Origin | None = field(default=None, kw_only=True)
    _rules: ClassVar[tuple[str, ...]] = ("median", "mode", "cost")  # its own rule first
    _notes_rows: ClassVar[bool] = False  # whether its fit may leave out rows itself

    def __init_subclass__(cls, **kwargs: Any) -> None:
        for name in READING:
            own = cls.__dict__.get(name)
            if own is not None and not hasattr(own, "_reads_records"):
                setattr(cls, name, reads_records(own))
        # With slots, dataclass makes a second class, which super() does not know.
        super(Model, cls).__init_subclass__(**kwargs)

    if TYPE_CHECKING:  # as properties, dataclasses would take them for defaults

        @property
        def classes(self) -> np.ndarray: ...
        @property
        def n_features(self) -> int: ...
        @property
        def feature_names(self) -> tuple[str, ...] | None: ...
        @property
        def convergence(self) -> Convergence: ...

    def predict(
        self, X: RowsLike, *, rule: Any = None, cost: ArrayLike | None = None
    ) -> np.ndarray:
        """Predict the labels of rows, (n,), of the type of `classes`.

        The rules of prediction are described by each model.

        Returns
        -------
        (n,) array, pandas.Categorical or pandas.Series
            An array of labels, also for a data frame. Only where the training labels
            were an ordered Categorical of pandas, predictions are one as well, because
            an array would lose the order of its categories: a Series with the index of
            a data frame X, otherwise a Categorical.
        """
        raise NotImplementedError

    def predict_proba(self, X: RowsLike, *, as_frame: bool = False) -> np.ndarray:
        """Return the probabilities of the ranks, (n, r).

        With `as_frame`, they are a pandas DataFrame with a column per label, which has
        the index of a data frame X. Raises ValueError if the model has none.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        """Return a summary of a few lines."""
        lines = [type(self).__name__]
        lines += [f"  {name:<13}{value}" for name, value in self._summary().items()]
        return "\n".join(lines)

    if not TYPE_CHECKING:  # it would make every attribute known

        def __getattr__(self, name):
            """Raise AttributeError, with the name of this package for an attribute."""
            if hasattr(type(self), name):  # a property, which has an error of its own
                return object.__getattribute__(self, name)
            raise no_attribute(self, name, self)

    def _repr_html_(self) -> str:
        return str(views().summary_html(self))

    @property
    def rows_used(self) -> np.ndarray:
        """Return the positions of the training rows that the fit used, (n,) int.

        They are those of the rows of the caller that were not left out for want of a
        label or a value; `table.iloc[model.rows_used]` are these rows of a data frame.
        Residuals and other results per training row are in this order. Estimators of
        `ordinal.sklearn` may merge equal rows, of which the first counts.

        Raises
        ------
        ValueError
            If the model comes from a file, a pickle or a copy, or if its rows were read
            in chunks.
        """
        used: RowsUsed | None = getattr(self, "_rows_used", None)
        if used is None and isinstance(self._wrapped, Model):
            inner: np.ndarray = self._wrapped.rows_used
            return inner
        if used is None:
            raise ValueError(
                "rows_used is known only in the process that fitted the model, and "
                "only where X was in memory, not after load, pickle or copy: fit again"
            )
        return np.arange(used.n) if used.positions is None else used.positions

    @reads_records
    def explain(
        self,
        X: RowsLike,
        y: Labels | None = None,
        *,
        n_repeats: int = 5,
        rng: Rng = 0,
    ) -> Explanation:
        """Explain the predictions by the importance of the features.

        If the score is a sum of terms, these are the explanation: score functions and
        interactions of `fit_xofm`, effects and interactions of `fit_ofmhs`, and
        coefficients times columns of `fit_pom` (without nominal and scale effects),
        `fit_lit` and `fit_lat`. Other models are explained by permutation importance:
        the mean change of predictions, in ranks, when a feature is shuffled among the
        rows or, with `y`, the increase of the mean absolute error (L. Breiman, "Random
        forests", Machine Learning 45:5-32, 2001, section 10). Correlated features share
        their importance.

        Parameters
        ----------
        X : (n, d) array-like or data frame
            Rows as for `predict`, two or more; a few hundred are enough.
        y : (n,) array-like, optional
            True labels. If given, the importance is the increase of the error when a
            feature is shuffled.
        n_repeats : int, default 5
            Number of times that each feature is shuffled.
        rng : int or numpy.random.Generator, default 0
            Source of the random numbers that shuffle.

        Returns
        -------
        Explanation
            Importances with standard errors, the strongest first; prints as a table.

        Raises
        ------
        ValueError, TypeError
            As in `predict`; also if `X` is sparse or the kernel precomputed.

        Examples
        --------
        >>> import ordinal
        >>> X, y = ordinal.datasets.load_election(as_frame=True)
        >>> ordinal.fit_pom(X, y).explain(X).names[:2]
        ('vote', 'self')
        """
        named = with_names(X, self.feature_names)
        found: Explanation = views().explain(self, named, y, n_repeats, rng)
        return found

    @reads_records
    def score(
        self,
        X: RowsLike,
        y: Labels,
        *,
        scoring: Any = "mae",
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return a metric of the labels that `predict` returns, or of probabilities.

        Errors are positive, and smaller ones are better, unlike in scikit-learn.

        Parameters
        ----------
        X : (n, d) array-like or data frame
            Rows as for `predict`.
        y : (n,) array-like
            Their true labels.
        scoring : str or callable, default "mae"
            Metric as for `select`: "mae", "accuracy", "rps" and others by name.
        sample_weight : (n,) array-like >= 0, optional
            Weights of the rows, for metrics by name.

        Returns
        -------
        float
            nan if the metric has no value for these rows, such as a rank correlation
            of equal labels, or if a function in `scoring` returns it.

        Raises
        ------
        ValueError, TypeError
            As in `predict`; also if a label is unknown, or if the metric is unknown or
            needs probabilities that the model does not have.

        Examples
        --------
        >>> import ordinal
        >>> X, y = ordinal.datasets.load_election()
        >>> model = ordinal.fit_pom(X[::2], y[::2])
        >>> round(model.score(X[1::2], y[1::2]), 2)
        0.96
        """
        named = with_names(X, self.feature_names)
        found: float = views().score(self, named, y, scoring, sample_weight)
        return found

    @reads_records
    def report(
        self,
        X: RowsLike | str,
        y: Labels,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str = "",
    ) -> Page | None:
        """Return a report about the model on rows with labels, or write it to a file.

        The report is one self-contained HTML page, for screens of any size and for
        paper: errors with intervals and baselines, confusion matrix, calibration,
        importances, prediction sets, coefficients of a linear model and the optimality
        certificate, each with an explanation of its terms. With matplotlib, which the
        extra `plot` installs, it has the figures of `ordinal.plot` besides. It warns of
        rows that the model was fitted to, as far as the digests of 64 training rows
        tell, which models of rows in memory keep. Importances are those of
        `explain(X)`; if they need permutations, of at most 500 rows.

        Rows without a label are left out, and so are rows with missing values unless
        the model predicts them. The report says which.

        Its date is today's or, for reproducible files, that of the environment variable
        SOURCE_DATE_EPOCH.

        Parameters
        ----------
        X : (n, d) array-like or data frame, or str
            Rows as for `predict`; the model should not have been fitted to them. A
            formula, such as "y ~ x", takes the labels from the table `y`, as in a fit.
        y : (n,) array-like
            Their true labels.
        path : path of the file, optional
            Path of the file, which is written atomically.
        title : str, optional
            Heading of the page; by default the name of the class.

        Returns
        -------
        Page or None
            Without `path`, the HTML text, a str that displays the page in a notebook.

        Raises
        ------
        ValueError, TypeError, OSError
            As in `predict`; also if labels are unknown, if no row is left, if the file
            cannot be written, or if SOURCE_DATE_EPOCH is not a number of seconds.

        Examples
        --------
        >>> import ordinal
        >>> X, y = ordinal.datasets.load_election()
        >>> page = ordinal.fit_pom(X[::2], y[::2]).report(X[1::2], y[1::2])
        >>> page[:15]
        '<!doctype html>'
        """
        page: Page | None = views().report(self, X, y, path, title)
        return page

    def _score_terms(self, X: MatrixLike) -> Named | None:
        """Return terms whose sum is the score of each row up to a constant, (n, terms).

        None stands for a score that is no such sum.
        """
        return None

    def _remedy(self) -> str:
        """Return the advice for a fit that ended early; empty if none is needed."""
        return self.convergence.remedy

    def _summary(self) -> dict[str, str]:
        """Return the lines of the summary by name, which a model may extend."""
        names = self.feature_names
        known = "" if names is None else f": {_shown(names)}"
        lines = {
            name: _short(getattr(self, name))
            for name in ("method", "inference", "kernel")
            if hasattr(self, name)
        }
        labels = rounded_labels(self.classes)
        lines["classes"] = f"{labels.size}: {_shown(labels.tolist())}"
        lines["features"] = f"{self.n_features}{known}"
        if hasattr(self, "support"):
            lines["support"] = f"{len(self.support)} rows"
        if self.rule is not None:
            lines["rule"] = self.rule
        if hasattr(self, "convergence"):  # not that of a foreign estimator
            lines["convergence"] = str(self.convergence)
        # Linear models count rows with missing values.
        n_values = getattr(getattr(self, "statistics", None), "n_missing", 0)
        if rows := rows_left_out(self.n_missing_labels, n_values):
            lines["left out"] = rows
        return lines


def no_attribute(made: Any, name: str, model: Any, path: str = "") -> AttributeError:
    """Return the error for an attribute that `made` lacks, with the one meant.

    `model` is found at the `path` within `made`.
    """
    meant, remedy = name.removesuffix("_"), ""
    chain = [(path, model)]
    while (inner := getattr(chain[-1][1], "_wrapped", None)) is not None:
        chain.append((f"{chain[-1][0]}model.", inner))
    if not name.startswith("_"):
        known = _ATTRIBUTES.get(meant, meant)
        paths = [path for path, inner in chain if hasattr(type(inner), known)]
        needed, words = _IN_WORDS.get(meant, ("", ""))
        if paths:
            remedy = f"; did you mean {paths[0]}{known}?"
        elif needed and any(hasattr(type(inner), needed) for _, inner in chain):
            remedy = f"; {words}"
    return AttributeError(
        f"'{type(made).__name__}' object has no attribute '{name}'{remedy}"
    )


class Fit(Protocol):
    """Type of any `fit_*` function: from features, labels and options to a model.

    Examples
    --------
    >>> import ordinal
    >>> fits: dict[str, ordinal.models.Fit] = {
    ...     "linear": ordinal.fit_pom, "kernel": ordinal.fit_svorim
    ... }
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> [type(fit(X, y)).__name__ for fit in fits.values()]
    ['PomModel', 'SvorModel']
    """

    def __call__(self, *args: Any, **options: Any) -> Model:
        """Fit a model to features X and labels y."""
        ...


@overload
def load(path: str | os.PathLike[str] | IO[bytes]) -> Model: ...
@overload
def load(path: str | os.PathLike[str] | IO[bytes], kind: type[_S]) -> _S: ...
@with_suggestions
def load(
    path: str | os.PathLike[str] | IO[bytes], kind: type[Storable] | None = None
) -> Any:
    """Load a model from a file written by its method `save`.

    Loading is safe for untrusted files: nothing is unpickled, and the memory used is
    proportional to the size of the file.

    Parameters
    ----------
    path : path of a regular file, or file that is open for reading in binary mode
        Path of the file. A file object, such as a pipe or an `io.BytesIO`, is read to
        its end and not closed.
    kind : type, optional
        Class that the file must hold, such as `ordinal.model_selection.Selection`; type
        checkers then know the type of the result. Default: any class.

    Returns
    -------
    Model
        Object of the class that was saved, with read-only arrays. It may also be a
        `Standardizer`, a `Binning`, a `Selection` or a `Nested`.

    Raises
    ------
    ValueError
        If the file is damaged, has another format or another version of it, or has
        fields that are not valid for a model. The message says which.
    OSError
        If the file cannot be opened, is not a regular file, or is a file object that is
        not open for reading.
    TypeError
        If `path` is neither a path nor a binary file, or if the file holds an object of
        another class than `kind`.

    See Also
    --------
    select : Tune the hyperparameters of a method by cross-validation, and refit it.
    conformal : Calibrate prediction sets of neighbouring ranks around a fitted model.
    ordinal.data.write_predictions : Write the predictions of the rows of a source to a
        file.
    """
    if not (kind is None or isinstance(kind, type)):
        raise TypeError(f"kind must be a class, got {shown(kind)}")
    found = read_file(path)
    if kind is not None and not isinstance(found, kind):
        raise TypeError(
            f"{path!s} holds a {type(found).__name__}, not a {kind.__name__}"
        )
    return found


def read_for(
    model: Any, X: Any, missing: bool = False, categories: Categories | None = None
) -> np.ndarray | CSR:
    """Return X as the matrix of the model, which may have no rows.

    Columns are matched by name if both have names, and otherwise by position. Raises
    ValueError or TypeError as `read_features` does, and warns of an array instead of
    named columns.
    """
    read = read_features(
        X,
        model.n_features,
        missing=missing,
        feature_names=model.feature_names,
        categories=categories,
        empty=True,
    )
    warn_of_unnamed(X, model.feature_names)
    if any(known is not None for known in categories or ()):
        X = X if is_frame(X) else np.asarray(X, dtype=object)
        _warn_of_levels(model, X, cast(np.ndarray, read), cast(Categories, categories))
    return read


def _warn_of_levels(model: Any, X: Any, read: np.ndarray, levels: Categories) -> None:
    """Warn of unknown categories in rows X that were read as numbers."""
    columns = frame_columns(X, model.feature_names) if is_frame(X) else list(X.T)
    names = model.feature_names or default_names(len(columns))
    for j, (name, known) in enumerate(zip(names, levels, strict=True)):
        if known is not None:
            warn_of_unknown_levels(name, columns[j], known, read[:, j])


def names_read(model: Any) -> tuple[str, ...] | None:
    """Return the names of the columns that predictions read, or None without names.

    Columns that only random slopes read come last.
    """
    names, own = model.feature_names, innermost(model)
    beside = getattr(own, "_slope_columns", ()) if isinstance(own, Model) else ()
    return None if names is None else tuple(dict.fromkeys([*names, *beside]))


def with_rule(model: _T, rule: str | None) -> _T:
    """Note in a new model the rule by which it predicts, unless it is its own.

    The model is returned.
    """
    inner = innermost(model)
    if isinstance(inner, Model) and rule not in (None, inner._rules[0]):
        # The model is changed in place, because a copy would lose its training rows.
        object.__setattr__(inner, "rule", rule)
    return model


def _short(value: Any) -> str:
    """Return a value as one line of at most 70 characters."""
    text = " ".join(rounded(value).split())
    return text if len(text) <= 70 else f"{text[:67]}..."


def _shown(items: Any) -> str:
    """Return the first six items as text."""
    return enumerated(items, at_most=6)
