"""Base class of models with several hyperplanes, and probabilities of their ranks."""

from typing import TYPE_CHECKING, Any

import numpy as np

from .links import require_link
from .support import KernelModel


class Hyperplanes(KernelModel):
    """Base of kernel models with one value per hyperplane, whose probabilities come
    from a link. A subclass says in `_linked` what the link takes of these values.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def link(self) -> Any: ...
        def decision_function(self, X: Any) -> np.ndarray: ...
        def _linked(self, f: np.ndarray) -> np.ndarray: ...

    def link_input(self, X: Any, like: "Hyperplanes") -> np.ndarray:
        """Return the input of a link, for that of any model."""
        return self._linked(self.decision_function(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the ranks from `decision_function` by the `link`, as the
        docstring of the class says.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            As for `decision_function`, which says what else is raised.

        Returns
        -------
        (n, r) array
            Rows sum to 1.

        Raises
        ------
        ValueError
            If the model was fitted without `probability`.
        """
        return self._proba(self.decision_function(X))

    def _proba(self, f: np.ndarray) -> np.ndarray:
        """`predict_proba` of rows with the values f."""
        return np.asarray(require_link(self.link)(self._linked(f)))
