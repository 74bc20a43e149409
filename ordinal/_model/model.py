"""Base class of all models: description, files, and columns found by name."""

from __future__ import annotations  # numpy.random is slow to import

import os
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeVar, cast, overload

import numpy as np

from .._input.checks import enumerated, shown
from .._input.columns import Categories
from .._input.features import read_features
from .._input.labels import is_ordered
from .._input.sparse import CSR
from .._input.types import ArrayLike, Labels, MatrixLike, Rng
from .._watch.convergence import Convergence, warn_of_unnamed
from .explanation import Explanation, Named, explain
from .printing import html_lines, html_notes, html_thresholds
from .report import write_report
from .storage import Storable, read_file

_M = TypeVar("_M")
_S = TypeVar("_S", bound=Storable)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Model(Storable):
    """Base of all models, which the `fit_*` functions make: frozen, with read-only
    arrays.

    Attributes
    ----------
    classes : (r,) array
        Labels in rank order.
    n_features : int
        Columns that `predict` expects.
    feature_names : tuple of (n_features,) str, or None
        Their names, if the model was fitted on a data frame. A data frame then may
        hold them in any order, and others beside; an array goes by position.
    convergence : Convergence
        How the fit ended, and how far from the optimum.
    categorical_labels : bool
        Whether the labels came as an ordered Categorical of pandas, so that `predict`
        returns one: for a data frame a Series with its index.
    """

    categorical_labels: bool = field(default=False, kw_only=True)

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
        self, X: MatrixLike, *, rule: Any = ..., cost: ArrayLike | None = None
    ) -> np.ndarray:
        """Labels of rows, (n,), of the type of `classes`.

        Every model says by which rules.
        """
        raise NotImplementedError

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Probabilities of the ranks, (n, r); ValueError of a model without them."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """Return a summary of a few lines."""
        lines = [type(self).__name__]
        lines += [f"  {name:<13}{value}" for name, value in self._summary().items()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        text = html_lines(type(self).__name__, self._summary())
        thresholds = np.asarray(getattr(innermost(self), "thresholds", ()))
        if thresholds.ndim == 1:
            text += html_thresholds(thresholds, self.classes.tolist())
        remedy = self.convergence.remedy
        return text + html_notes([f"Remedy: {remedy}."] * bool(remedy))

    def explain(
        self,
        X: MatrixLike,
        y: Labels | None = None,
        *,
        n_repeats: int = 5,
        rng: Rng = 0,
    ) -> Explanation:
        """Explain what the features do to the predictions.

        A score that is a sum of terms is explained by these: the score functions and
        pairs of `fit_xofm`, the effects and pairs of `fit_ofmhs`, and coefficients
        times columns of `fit_pom` (without nominal and scale effects), `fit_lit` and
        `fit_lat`. All other models are explained by permutation importance: how far
        predictions move, in ranks, when a feature is shuffled among the rows or, with
        `y`, how much the mean absolute error increases (L. Breiman, "Random forests",
        Machine Learning 45:5-32, 2001, section 10). Correlated features share their
        importance.

        Parameters
        ----------
        X : (n, d) array-like or data frame
            Rows as for `predict`; some hundred are enough.
        y : (n,) array-like, optional
            True labels, which make it a permutation importance of the error.
        n_repeats : int, default 5
            How often each feature is shuffled.
        rng : int or numpy.random.Generator, default 0
            Shuffles.

        Returns
        -------
        Explanation
            Importances with standard errors, the strongest first; prints as a table.

        Raises
        ------
        ValueError, TypeError
            As `predict`; for a sparse `X`, and for a precomputed kernel.

        Examples
        --------
        >>> import ordinal
        >>> X, y = ordinal.datasets.load_election(as_frame=True)
        >>> ordinal.fit_pom(X, y).explain(X).names[:2]
        ('vote', 'self')
        """
        return explain(self, X, y, n_repeats, rng)

    def report(
        self,
        path: str | os.PathLike[str],
        X: MatrixLike,
        y: Labels,
        *,
        title: str = "",
    ) -> None:
        """Write a page about the model on rows that it was not fitted to.

        One HTML file that needs no other: errors with intervals, the confusion matrix,
        calibration of probabilities, importances, prediction sets and the certificate.

        Parameters
        ----------
        path : path of the file
            It appears whole or not at all.
        X : (n, d) array-like or data frame
            Rows as for `predict`.
        y : (n,) array-like
            Their true labels.
        title : str, optional
            Heading of the page; by default the name of the class.

        Raises
        ------
        ValueError, TypeError, OSError
            As `predict`; unknown labels; the file cannot be written.
        """
        write_report(self, path, X, y, title)

    def _score_terms(self, X: MatrixLike) -> Named | None:
        """Return terms that add up to the score of each row but for a constant; None
        for a score that is no such sum.
        """
        return None

    def _summary(self) -> dict[str, str]:
        """Return the lines of the summary by name, which a model may extend."""
        names = self.feature_names
        known = "" if names is None else f": {_shown(names)}"
        lines = {
            name: _short(getattr(self, name))
            for name in ("method", "inference", "kernel")
            if hasattr(self, name)
        }
        lines["classes"] = f"{self.classes.size}: {_shown(self.classes.tolist())}"
        lines["features"] = f"{self.n_features}{known}"
        if hasattr(self, "support"):
            lines["support"] = f"{len(self.support)} rows"
        lines["convergence"] = str(self.convergence)
        return lines


class Fit(Protocol):
    """Type of any `fit_*` function: from features, labels and options to a model.

    Examples
    --------
    >>> import ordinal
    >>> fits: dict[str, ordinal.Fit] = {
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
def load(
    path: str | os.PathLike[str] | IO[bytes], kind: type[Storable] | None = None
) -> Any:
    """Load a model from a file that its `save` method has written.

    Safe for files from anywhere: nothing is unpickled, and the memory used is in
    proportion to the size of the file.

    Parameters
    ----------
    path : path of a regular file, or file that is open for reading in binary mode
        An open file, such as a pipe or an `io.BytesIO`, is read to its end and stays
        open.
    kind : type, optional
        The class that the file must hold, such as `ordinal.Selection`, which type
        checkers then know. By default any.

    Returns
    -------
    Model
        Of the class that was saved, with read-only arrays. Where a `Standardizer`, a
        `Binning`, a `Selection` or a `Nested` was saved, it is that.

    Raises
    ------
    ValueError
        The file is damaged, of another kind, or of another version of the format; or
        its fields make no model. The message says which.
    OSError
        It cannot be opened, or is no regular file; an open file is not open for
        reading.
    TypeError
        `path` is neither a path nor a binary file, such as a file of text; or the file
        holds something else than a `kind`.

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
    """X as the model's matrix: its columns by name where both have names, else by
    position. It may have no rows. Raises ValueError or TypeError as `read_features`,
    and warns of an array in the place of named columns.
    """
    warn_of_unnamed(X, model.feature_names)
    return read_features(
        X,
        model.n_features,
        missing=missing,
        feature_names=model.feature_names,
        categories=categories,
        empty=True,
    )


def innermost(model: Any) -> Any:
    """Return the model itself, behind what is done to its features first."""
    while hasattr(model, "model"):
        model = model.model
    return model


def with_labels_like(model: _M, y: Any) -> _M:
    """Note in a model that was just fitted whether its labels came as an ordered
    Categorical of pandas, and return it.
    """
    dtype = getattr(y, "dtype", None)
    given = type(dtype).__name__ == "CategoricalDtype" and is_ordered(dtype)
    if given and hasattr(model, "categorical_labels"):
        # in place, because a copy would lose the training rows that `fit_pom` keeps
        object.__setattr__(model, "categorical_labels", True)
    return model


def labels_like_those_given(model: Any, labels: Any, X: Any) -> np.ndarray:
    """Return labels of the rows of X as an array, or as an ordered Categorical if the
    labels of the training rows came as one: for a data frame a Series with its index.

    A model from a file gives arrays where pandas is not installed.
    """
    if not getattr(model, "categorical_labels", False) or not find_spec("pandas"):
        return np.asarray(labels)
    import pandas

    made = pandas.Categorical(labels, categories=model.classes, ordered=True)
    framed = isinstance(X, pandas.DataFrame)
    return cast(np.ndarray, pandas.Series(made, X.index) if framed else made)


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 70 else f"{text[:67]}..."


def _shown(items: Any) -> str:
    return enumerated(items, at_most=6)
