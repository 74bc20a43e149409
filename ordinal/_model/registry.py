"""Registry of methods, which each module of fits declares at its bottom.

    register(Method(
        fit_new, name="new", estimator="New", accepts={"sparse"},
        varying=("C",), fit_path=_fit_path,
    ))

The command, the estimators of scikit-learn, searches and the conformance suite read the
registry, so that all of them include every registered method. `methods` imports the
modules of all public names (see `public`), and thus registers every method.

A search fits a method at many points, which are mappings from parameters to values. If
points differ only in a few parameters, such as C, a method may fit them together faster
than one by one: over one kernel matrix, each fit started from the last. Such a group of
points is called a path, and such a method declares a function:

    fit_path(X, y, points, products, X_test, **options) -> (models, values)

    points      mappings that hold the `varying` arguments, in the order in which they
                are best fitted
    products    the `Products` of X, or None
    X_test      rows to predict, or None
    options     all other arguments of `fit_new`
    models      one per point, as `fit_new` returns
    values      per model its `decision_function` of X_test, or None if that was not
                computed

`fit_path` raises what `fit_new` raises; the search then fits the points one by one to
find out which of them is at fault. A model that comes with values has `_labels(values)`
and `_proba(values)`, which are its `predict` and `predict_proba` of X_test.

A function that has not registered can be searched as well, point by point.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from textwrap import fill
from typing import Any, Literal

from .._input.checks import keyword_defaults, shown, similar_to
from .._input.intervals import RankIntervals, response_columns
from ..kernels.functions import kernel_class
from .public import import_all

Content = Literal["missing", "categories", "sparse", "intervals"]
Grid = Mapping[str, Sequence[Any]]

# Grids of kernel methods on standardised features: the RBF kernels of these gammas have
# the value 1/e at distances from 10 to 1.
COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
GAMMAS = (0.01, 0.03, 0.1, 0.3, 1.0)
# Rules on probabilities in whose place a method's own rule is scored: those whose
# probabilities take five more fits did not pay on the 19 sets of docs/accuracy.md
# (docs/decisions.md has the errors).
BOTH_RULES = frozenset({"median", "mode"})
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1)  # relative to the mean loss of a row


@dataclass(frozen=True, slots=True)
class Path:
    """Path of a method.

    Attributes
    ----------
    fit_one : callable
        The function of the method.
    varying : tuple of str
        The arguments that may vary along the path.
    function : callable
        Fits the points, given everything that `fit` completes.
    """

    fit_one: Callable[..., Any]
    varying: tuple[str, ...]
    function: Callable[..., tuple[Any, Any]]

    def fit(
        self,
        X: Any,
        y: Any,
        points: Iterable[Mapping[str, Any]],
        products: Any = None,
        X_test: Any = None,
        **options: Any,
    ) -> tuple[Any, Any]:
        """Return the models of the points, and their values at X_test or None.

        Parameters that neither a point nor the options state have their defaults.
        """
        every = {**keyword_defaults(self.fit_one), **options}
        # A search does both before, but for linear fits, which preprocess themselves.
        every.pop("missing_labels", None)
        if every.get("preprocess") is None:
            every.pop("preprocess", None)
        own = {name: every.pop(name) for name in self.varying if name in every}
        full = [{**own, **point} for point in points]
        return self.function(X, y, full, products, X_test, **every)


@dataclass(frozen=True, slots=True)
class Method:
    """Declaration of a method.

    Attributes
    ----------
    fit : callable
    name : str
        In lower case, as in the name of its function.
    estimator : str
        The name of its class in `ordinal.sklearn`.
    accepts : set of "missing", "categories", "sparse", "intervals"
        What its X may hold or be, beside a table of finite numbers, and whether its y
        may be `RankIntervals`.
    scale_free : bool
        Whether predictions stay the same when features are shifted and scaled, so that
        there is no use in standardising them.
    full_rank : bool
        Whether no feature should be a combination of others and of the thresholds, so
        that a `TablePreprocessor` leaves out the first level of every category.
    probabilities : bool
        Whether its models have probabilities without `probability=True`.
    own_rule : str
        Rule by which its models predict unless they are given another.
    keeps_rule : set of "median", "mode"
        Rules on probabilities in whose place `own_rule` serves where predictions are
        scored, as `BOTH_RULES` says.
    variants : mapping of str to mapping
        By the names that the command has for it, the arguments which each name means;
        by default the name of the method, and none.
    grid : mapping of str to sequence
        What the command tries with --tune: arguments and their values. Empty for a
        method that finds its own.
    varying : tuple of str
        Arguments in which the points of a path may differ.
    fit_path : callable or None
        Fits such points.
    paths : tuple of callable
        Public functions that fit paths of the method, whose y may be what its own is.
    rows_per_basis_row : int
        Up to how many training rows per row of a basis a fit without the basis takes
        less time. Searches leave the basis out of fits to such samples.
    reads_chunks : bool
        Whether the fit reads rows in chunks without a basis.
    by_row : set of str
        Arguments of the fit with one entry per row, beside `sample_weight`. Estimators
        and searches, which order, merge and split rows, do without them, and so does
        the command.
    grouped_folds : mapping of str to value, or type of values
        Arguments with which a fit divides its rows into folds that its argument
        `groups` keeps whole. Searches, comparisons and estimators pass the groups of
        the training rows to such a fit. Empty for a method without such folds.
    needs : str or None
        The argument without which there is no fit, which depends on the data set, such
        as `random`. Such a method is left out of `methods` and of all defaults.
    package : str or None
        Package that a fit imports beside numpy.
    composed : bool
        Whether a fit fits other methods. Such a method is left out of `methods`, too.
    """

    fit: Callable[..., Any]
    name: str
    estimator: str
    accepts: Set[Content] = frozenset()
    scale_free: bool = False
    full_rank: bool = False
    probabilities: bool = False
    own_rule: str = "median"
    keeps_rule: Set[str] = frozenset()
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    grid: Grid = field(default_factory=dict)
    varying: tuple[str, ...] = ()
    fit_path: Callable[..., tuple[Any, Any]] | None = None
    paths: tuple[Callable[..., Any], ...] = ()
    rows_per_basis_row: int = 0
    reads_chunks: bool = False
    by_row: Set[str] = frozenset()
    grouped_folds: Mapping[str, Any] = field(default_factory=dict)
    needs: str | None = None
    package: str | None = None
    composed: bool = False

    def __post_init__(self) -> None:
        if not self.variants:
            own: dict[str, Any] = {self.name.replace("_", "-"): {}}
            object.__setattr__(self, "variants", own)  # it is frozen otherwise

    @property
    def path(self) -> Path | None:
        """Path of the method, if points that differ in `varying` are one."""
        if self.fit_path is None:
            return None
        return Path(self.fit, self.varying, self.fit_path)

    def accepts_with(self, options: Mapping[str, Any]) -> Set[Content]:
        """Return the accepted content: some kernels take missing values."""
        if kernel_class(options.get("kernel")).takes_missing:
            return self.accepts | {"missing"}
        return self.accepts

    def groups_folds(self, options: Mapping[str, Any]) -> bool:
        """Return whether a fit with these options has folds that take `groups`."""
        given = {**keyword_defaults(self.fit), **options}
        return bool(self.grouped_folds) and all(
            isinstance(given[name], value)
            if isinstance(value, type)
            else isinstance(given[name], type(value)) and given[name] == value
            for name, value in self.grouped_folds.items()
        )


_METHODS: dict[Callable[..., Any], Method] = {}


def register(method: Method) -> None:
    """Add a method to those that the command, searches and files know."""
    _METHODS[method.fit] = method


def methods(every: bool = False) -> tuple[Method, ...]:
    """Import all modules, and return the methods in the order of their names.

    Methods with a parameter that depends on the data set (`Method.needs`), and those
    composed of others, are included only if `every`.
    """
    import_all()
    # Ctrl-C can cut an import short after a method has registered: it registers again
    # when the import is repeated, and the later one is the real one.
    known = {method.name: method for method in tuple(_METHODS.values())}
    found = (known[name] for name in sorted(known))
    return tuple(m for m in found if every or (m.needs is None and not m.composed))


def method_of(fit: Callable[..., Any]) -> Method | None:
    """Return the declaration of a `fit_*` function, or None for other functions."""
    return _METHODS.get(fit)


def _of_intervals() -> list[Callable[..., Any]]:
    """Return the functions whose y may be RankIntervals."""
    known = [m for m in methods(every=True) if "intervals" in m.accepts]
    return [taker for m in known for taker in (m.fit, *m.paths)]


def takes_intervals(fit: Callable[..., Any]) -> bool:
    """Return whether the y of a function, or of a partial of it, may be intervals."""
    return unwrapped(fit)[0] in _of_intervals()


def check_intervals(
    fit: Callable[..., Any], y: Any, name: str | None = None, formula: str = ""
) -> None:
    """Raise TypeError if y holds intervals of ranks, which the method does not take.

    A formula may name them. The message is about `name`, by default that of the
    function.
    """
    are_intervals = isinstance(y, RankIntervals) or len(response_columns(formula)) > 1
    if are_intervals and not takes_intervals(fit):
        function = unwrapped(fit)[0]
        name = name or getattr(function, "__name__", shown(function))
        takers = sorted(taker.__name__ for taker in _of_intervals())
        raise TypeError(
            f"{name} does not take RankIntervals, unlike {', '.join(takers)}: pass "
            "the rows with a known rank, X[y.is_known] and y.known, or one of these "
            "methods"
        )


def fits_by_name() -> dict[str, Callable[..., Any]]:
    """Return the function of every method and variant by its name in the command.

    The function of a variant is a `functools.partial` with the variant's arguments.
    """
    return {
        name: partial(method.fit, **fixed) if fixed else method.fit
        for method in methods(every=True)
        for name, fixed in method.variants.items()
    }


def resolve_fit(
    fit: Any,
    argument: str = "fit",
    others: Mapping[str, Callable[..., Any]] | None = None,
) -> Callable[..., Any]:
    """Return the function that a name such as "svorim" stands for; others as they are.

    `others` are names that the argument takes besides those of methods.

    Raises
    ------
    ValueError, TypeError
        There is no method of that name; `fit` is neither a name nor a function.
    """
    if isinstance(fit, str):
        known = fits_by_name() | dict(others or {})
        if fit not in known:
            meant = similar_to(fit.removeprefix("fit_"), known)
            names = "; the names are\n" + fill(", ".join(map(repr, known)), 80)
            raise ValueError(
                f"{argument} must be a function or the name of a method, got "
                f"{shown(fit)}{meant or names}"
            )
        return known[fit]
    if not callable(fit):
        raise TypeError(
            f"{argument} must be a function of (X, y), or the name of a method such as "
            f"'svorim', got {shown(fit)}"
        )
    return fit  # type: ignore[no-any-return]


def path_of(fit: Callable[..., Any]) -> Path | None:
    """Return the path of a function, which is no partial, or None."""
    method = method_of(fit)
    return None if method is None else method.path


def unwrapped(fit: Callable[..., Any]) -> tuple[Callable[..., Any], Mapping[str, Any]]:
    """Return the function within a `functools.partial` of any depth, and the arguments
    that are fixed there.
    """
    fixed: dict[str, Any] = {}
    while isinstance(fit, partial) and not fit.args:
        fixed = {**fit.keywords, **fixed}
        fit = fit.func
    return fit, fixed


def parameters(docstring: str) -> dict[str, str]:
    """Return the entries of the section "Parameters" by the names that they begin with.

    An entry is a line such as "C : float > 0" with the indented lines below it; its
    name is what stands before the colon, which may be several names.
    """
    section = docstring.partition("Parameters\n----------\n")[2]
    section = section.partition("\n\nReturns\n")[0]
    return {entry.partition(" : ")[0]: entry for entry in _entries(section)}


def _entries(section: str) -> Iterator[str]:
    """Yield the entries of a section without indentation."""
    entry: list[str] = []
    for line in section.splitlines():
        if line and not line.startswith(" ") and entry:
            yield "\n".join(entry)
            entry = []
        entry.append(line)
    yield "\n".join(entry)
