"""Names for sources with model files: those of subjects.py, `forged`, and the changes
that it makes to a file."""

# ruff: noqa: F403, F405
import copy
import io
import json

from subjects import *

from ordinal._model.storage import checksum

Change = Callable[[Any], Any]
_NAMES = ["low", "mid", "high", "never"]
_ASKED: list[tuple[str, dict[str, Any]]] = [
    ("predict", {}),
    ("predict", {"rule": "median"}),
    ("predict", {"rule": "cost"}),
    ("predict_proba", {}),
    ("decision_function", {}),
    ("predict_latent", {}),
    ("predict_interval", {}),
    ("p_values", {}),
    ("contributions", {}),
    ("transform", {}),
]


def _with_gaps() -> np.ndarray:
    return np.where(rows() > 1.2, np.nan, rows())


def _sparse() -> Any:
    return sparse.csr_array(np.where(np.abs(rows()) > 0.5, rows(), 0.0))


def _with_words() -> np.ndarray:
    return np.column_stack([rows(), ranks()])


def _two_columns() -> np.ndarray:
    return table()[:, 2:]


_PROBA = {"probability": True}
_WORDS = {"y": np.array(_NAMES)[ranks() - 1], "classes": _NAMES, "probability": True}
_GRAM = {"kernel": "precomputed"}
# Rows and arguments of fits, so that there is a model of every class and kind of field.
_FITS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "npsvor": (rows, _PROBA),
    "npsvor csr": (_sparse, {"kernel": "linear"}),
    "npsvor normalize": (rows, {"normalize": True, "cost": cost(), **_PROBA}),
    "npsvor words": (rows, _WORDS),
    "svorim": (rows, _PROBA),
    "svorim words": (rows, _WORDS),
    "svorex": (gram, _GRAM),
    "redsvm": (_with_gaps, {"kernel": kernels.Pearson()}),
    "shashua_levin": (rows, {"kernel": "polynomial"}),
    "svc": (rows, _PROBA),
    "svr": (rows, {"thresholds": "fitted", **_PROBA}),
    "cssvc": (gram, _GRAM),
    "svmop": (_sparse, _PROBA),
    "opbe": (gram, _GRAM),
    "kdlor": (rows, _PROBA),
    "tlssvor": (rows, _PROBA),
    "gpor": (rows, {"kernel": "ard", "max_iter": 5}),
    "gpor basis": (
        rows,
        {"basis": 5, "inference": "laplace", "kernel": "ard_linear", "max_iter": 5},
    ),
    "pom": (rows, {"nominal": [0], "scale": [1], "l2": 0.1}),
    "pom_path": (rows, {"nominal": [0], "n_lambdas": 3}),
    "pom words": (_two_columns, {"l2": 0.1}),
    "lit": (_sparse, {}),
    "lat": (rows, _PROBA),
    "cnnor": (rows, {"n_filters": 2, "n_hidden": 3, "n_compared": 5}),
    "elmor": (rows, {"n_hidden": 9, **_PROBA}),
    "nnor": (rows, {"n_hidden": 3}),
    "nnpom": (_sparse, {"n_hidden": 3}),
    "ofmhs": (rows, {}),
    "boosting": (_with_gaps, {"n_rounds": 4, "monotone": [1, 0, 0]}),
    "boosting words": (
        _with_words, {"categorical": [3], "n_rounds": 4, "structure": "scores"}
    ),
    "xofm": (_with_gaps, {"monotone": [1, 0, 0], **_PROBA}),
    "xofm words": (_with_words, {"categorical": [3]}),
}  # fmt: skip
# Other objects that are saved, and rows that they can judge.
_OTHERS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "standardized": (rows, standardized),
    "preprocessed": (table, preprocessed),
    "coding": (
        table,
        lambda: preprocessing.TablePreprocessor(order={2: _NAMES[:3]}).fit(table()),
    ),
    "standardizer": (rows, lambda: preprocessing.Standardizer.fit(rows())),
    "binning": (
        lambda: rows()[:, 0],
        lambda: preprocessing.Binning.equal_frequency(rows()[:, 0], 4),
    ),
    "selection": (rows, selection),
    "nested": (rows, nesting),
    "conformal": (rows, conformal_sets),
    "cross conformal": (rows, cross_conformal_sets),
}
SUBJECTS = (*_FITS, *_OTHERS)


def _made(name: str) -> tuple[Any, Any]:
    """An object of this name, and rows that it can judge."""
    if name in _OTHERS:
        make_rows, make = _OTHERS[name]
        return make(), make_rows()
    make_rows, options = _FITS[name]
    given = {"y": ranks(), "n_threads": 1, **options}
    with warnings.catch_warnings(action="ignore"):
        return function_of(name.split()[0])(make_rows(), **given), make_rows()


@functools.cache
def subject(name: str) -> tuple[bytes, Any]:
    """The bytes of a file, and rows that the object in it can judge."""
    model, X = _made(name)
    return _bytes_of(model), X


@functools.cache
def members(name: str) -> tuple[Any, dict[str, np.ndarray]]:
    """The header of a file, and its arrays."""
    pathlib.Path("original.npz").write_bytes(subject(name)[0])
    with np.load("original.npz") as archive:
        arrays = dict(archive)
    return json.loads(arrays.pop("header").tobytes()), arrays


def _bytes_of(model: Any) -> bytes:
    model.save("written.npz")
    return pathlib.Path("written.npz").read_bytes()


def judged(model: Any, X: Any) -> dict[str, np.ndarray]:
    """Ask a loaded object for predictions; a ValueError is an answer, too."""
    said = {}
    for name, options in _ASKED:
        if hasattr(model, name):
            try:
                result = getattr(model, name)
                # p_values of a conformal model are of rows, those of a POM a property
                if callable(result):
                    result = result(X, **options)
            except ValueError:
                continue
            except Exception as error:
                raised = f"{name} raised {type(error).__name__}: {error}"
                raise BrokenPromise(raised) from error
            parts = result if isinstance(result, tuple) else (result,)
            for i, part in enumerate(parts):
                if not isinstance(part, tuple):  # names
                    said[f"{name}{options}[{i}]"] = np.asarray(part)
    return said


def forged(name: str, *changes: Change) -> str:
    """Load a file whose fields have changed, with the checksum that belongs to them: it
    is refused, or predicts finitely, and can be saved again."""
    model = _forged(name, changes)
    X = subject(name)[1]
    for size in (1.0, 1e-200, 1e150, 1e305):
        for key, values in judged(model, _times(size, X)).items():
            if values.dtype.kind == "f" and not _finite(model, key, values):
                raise BrokenPromise(f"{key} of rows times {size:g} is not finite")
            if key == "predict_proba{}[0]" and not _are_probabilities(values):
                raise BrokenPromise(f"{key} of rows times {size:g} does not sum to 1")
    repr(model)
    _loaded(_bytes_of(model))
    return "another"


def forged_probabilities(name: str, *changes: Change) -> bool:
    """Load such a file, and check nothing but the probabilities of rows of two sizes.

    Return whether there are any.
    """
    model = _forged(name, changes)
    any_made = False
    for size in (1.0, 1e150):
        try:
            P = model.predict_proba(_times(size, subject(name)[1]))
        except ValueError:
            continue
        any_made = True
        if not _are_probabilities(P):
            raise BrokenPromise(f"rows times {size:g} have probabilities that are none")
    return any_made


def _forged(name: str, changes: tuple[Change, ...]) -> Any:
    """Return the object in a file whose fields and checksum have changed."""
    header, arrays = copy.deepcopy(members(name))
    for change in changes:
        change((header, arrays))
    header["checksum"] = checksum(header["model"], arrays)
    as_bytes = np.frombuffer(json.dumps(header).encode(), np.uint8)
    file = io.BytesIO()
    with warnings.catch_warnings(action="ignore"):
        np.savez(file, header=as_bytes, **arrays)
    return _loaded(file.getvalue())


def _times(size: float, X: Any) -> Any:
    """Rows whose numbers are so many times as large; of objects, those that are."""
    if X.dtype != object:
        return size * X
    return np.vectorize(lambda v: v * size if isinstance(v, float) else v, "O")(X)


def _finite(model: Any, key: str, values: np.ndarray) -> bool:
    """All finite, but for the distance to a rank without rows, which NPSVOR gives, and
    the outputs of NNOR and CNNOR beyond the ranks with rows."""
    known = np.isfinite(values)
    if key == "decision_function{}[0]" and values.ndim == 2:
        inner = getattr(model, "model", None) or model
        if isinstance(inner, ordinal.models.NnorModel | ordinal.models.CnnorModel):
            below = np.cumsum(inner.observed)[:-1]
            known |= (below == 0) | (below == inner.observed.sum())
        elif isinstance(inner, ordinal.models.NpsvorModel):
            known |= (values == np.inf) & np.isinf(inner.intercept)
    return bool(known.all())


def _are_probabilities(P: np.ndarray) -> bool:
    """All between 0 and 1, with rows that sum to 1."""
    sums = P.sum(axis=1)
    return bool((P >= 0).all() and (P <= 1).all() and np.allclose(sums, 1, 0, 1e-12))


def _loaded(content: bytes) -> Any:
    """The object in a file of these bytes; ValueError alone refuses it."""
    try:
        return ordinal.load(io.BytesIO(content))
    except (ValueError, MemoryError):
        raise
    except Exception as error:
        raise BrokenPromise(f"load raised {type(error).__name__}: {error}") from error


# Changes of arrays: `which` counts them, from any number


def array(which: int, way: Callable[[np.ndarray], np.ndarray]) -> Change:
    """One array as `way` makes it; unchanged where its type does not let it."""

    def change(parts: Any) -> None:
        arrays = parts[1]
        if not arrays:
            return
        key = sorted(arrays)[which % len(arrays)]
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            arrays[key] = either(lambda: np.asarray(way(arrays[key])), arrays[key])

    return change


def every_array(way: Callable[[np.ndarray], np.ndarray]) -> Change:
    def change(parts: Any) -> None:
        for which in range(len(parts[1])):
            array(which, way)(parts)

    return change


def entry(at: float, value: Any) -> Callable[[np.ndarray], np.ndarray]:
    def way(a: np.ndarray) -> np.ndarray:
        a = a.copy()
        a.reshape(-1)[int(at * a.size)] = value
        return a

    return way


def shuffled(seed: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda a: np.random.default_rng(seed).permutation(a)


def noisy(size: float, seed: int) -> Callable[[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    return lambda a: (a + size * rng.standard_normal(a.shape)).astype(a.dtype)


def exchanged(first: int, second: int) -> Change:
    def change(parts: Any) -> None:
        arrays = parts[1]
        if arrays:
            a, b = (sorted(arrays)[which % len(arrays)] for which in (first, second))
            arrays[a], arrays[b] = arrays[b], arrays[a]

    return change


def removed(which: int) -> Change:
    def change(parts: Any) -> None:
        if parts[1]:
            del parts[1][sorted(parts[1])[which % len(parts[1])]]

    return change


# Changes of the header


def leaf(which: int, value: Any) -> Change:
    """One value of the header that is not made of others."""

    def change(parts: Any) -> None:
        found = [at for at in places(parts[0]) if not isinstance(_of(at), dict | list)]
        if found:
            holder, key = found[which % len(found)]
            holder[key] = value

    return change


def _at_node(which: int, act: Callable[[Any, Any, Any], object]) -> Change:
    """Act on one node of the model: its holder, its key, and the places of all."""

    def change(parts: Any) -> None:
        found = list(places(parts[0]["model"]))
        if found:
            act(*found[which % len(found)], found)

    return change


def node(which: int, value: Any) -> Change:
    """Another value of one node of any kind."""

    def act(holder: Any, key: Any, _: Any) -> None:
        holder[key] = copy.deepcopy(value)

    return _at_node(which, act)


def moved(which: int, other: int) -> Change:
    """A copy of one node in the place of another."""

    def act(holder: Any, key: Any, found: Any) -> None:
        holder[key] = copy.deepcopy(_of(found[other % len(found)]))

    return _at_node(which, act)


def forgotten(which: int) -> Change:
    def act(holder: Any, key: Any, _: Any) -> None:
        del holder[key]

    return _at_node(which, act)


def places(held: Any) -> Any:
    """All pairs of a holder and a key or number within it."""
    keys = held if isinstance(held, dict) else range(len(held))
    for key in keys:
        yield held, key
        if isinstance(held[key], dict | list):
            yield from places(held[key])


def _of(place: Any) -> Any:
    return place[0][place[1]]
