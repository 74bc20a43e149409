"""Labels as integers in rank order, for tools that number labels by the alphabet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._input.checks import suggest_in_methods
from .._input.columns import only_column
from .._input.labels import (
    classes_in_rank_order,
    declared_categories,
    ranks_of,
    read_labels,
)
from .._input.types import Labels


@suggest_in_methods
class RankEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode labels as integers in rank order, which every tool keeps in order.

    Ensembles of scikit-learn, such as BaggingClassifier, replace labels by their
    positions in alphabetical order, also those of an ordered categorical, and no
    estimator within can see that. Integers stay in rank order.

    Parameters
    ----------
    classes : sequence of labels, optional
        All labels in rank order. Default: the categories of an ordered categorical, or
        numbers by value. Strings need `classes`.

    Attributes
    ----------
    classes_ : (r,) array
        Labels in rank order, of which `transform` returns the positions.

    Examples
    --------
    >>> from sklearn.ensemble import BaggingClassifier
    >>> import ordinal
    >>> from ordinal.sklearn import SVORIM, RankEncoder
    >>> X, rank = ordinal.datasets.make_gaussians(20, rng=0)
    >>> grades = [["low", "mid", "high"][k - 1] for k in rank]
    >>> encoder = RankEncoder(classes=["low", "mid", "high"])
    >>> bagged = BaggingClassifier(SVORIM(), n_estimators=3, random_state=0)
    >>> bagged = bagged.fit(X, encoder.fit_transform(grades))
    >>> encoder.inverse_transform(bagged.predict([[10.0, 10.0], [20.0, 10.0]]))
    array(['low', 'high'], dtype='<U4')
    """

    def __init__(self, classes: Sequence[Any] | None = None) -> None:
        self.classes = classes

    def fit(self, y: Labels, unused: Any = None) -> RankEncoder:
        """Learn the rank order of labels.

        Parameters
        ----------
        y : (n,) array-like
            Ranks, an ordered categorical, or strings together with `classes`.
        unused : None
            Ignored; scikit-learn passes it.

        Returns
        -------
        RankEncoder

        Raises
        ------
        TypeError, ValueError
            If the order of the labels is not known, or a label is missing or is not
            among `classes`.
        """
        y = only_column(y)
        known = self.classes
        if known is None:
            known = declared_categories(y)
        labels = read_labels(y, "y")
        self.classes_ = classes_in_rank_order(labels, known)
        ranks_of(labels, self.classes_)
        return self

    def transform(self, y: Labels) -> np.ndarray:
        """Return the positions of labels in rank order, (n,) integers from 0 on.

        Raises ValueError for a label that is not among `classes_`.
        """
        check_is_fitted(self)
        labels = read_labels(only_column(y), "y")
        found = ranks_of(labels, self.classes_, "y", "classes_")
        return found.astype(np.int64)

    def inverse_transform(self, ranks: Labels) -> np.ndarray:
        """Return the labels of ranks, such as those that an estimator predicts.

        Raises ValueError for a number that is no rank.
        """
        check_is_fitted(self)
        known = np.arange(self.classes_.size)
        rank = ranks_of(read_labels(ranks, "ranks"), known, "ranks", "the ranks")
        return np.asarray(self.classes_[rank])
