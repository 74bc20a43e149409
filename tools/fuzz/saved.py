"""Names for sources with model files: those of subjects.py, `damaged` and `forged`, and
the changes that these make to a file."""

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


class BrokenPromise(Exception):
    """A file that is neither refused, nor the same, nor good for predictions."""


def _fitted(method: str, X: Any, y: Any = None, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = function_of(method)
        return fit(X, ranks() if y is None else y, n_threads=1, **options)


def _with_gaps() -> np.ndarray:
    return np.where(rows() > 1.2, np.nan, rows())


def _sparse() -> Any:
    return sparse.csr_array(np.where(np.abs(rows()) > 0.5, rows(), 0.0))


# A saved object of every class and kind of field, and rows that it can judge.
SUBJECTS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "npsvor": lambda: (_fitted("npsvor", rows(), probability=True), rows()),
    "npsvor csr": lambda: (_fitted("npsvor", _sparse(), kernel="linear"), _sparse()),
    "npsvor normalize": lambda: (
        _fitted("npsvor", rows(), normalize=True, cost=cost(), probability=True),
        rows(),
    ),
    "npsvor words": lambda: (
        _fitted(
            "npsvor", rows(), np.array(_NAMES)[ranks() - 1], classes=_NAMES,
            probability=True,
        ),
        rows(),
    ),
    "svorim": lambda: (_fitted("svorim", rows(), probability=True), rows()),
    "svorim words": lambda: (
        _fitted(
            "svorim", rows(), np.array(_NAMES)[ranks() - 1], classes=_NAMES,
            probability=True,
        ),
        rows(),
    ),
    "svorex": lambda: (_fitted("svorex", gram(), kernel="precomputed"), gram()),
    "redsvm": lambda: (
        _fitted("redsvm", _with_gaps(), kernel=kernels.Pearson()), _with_gaps()
    ),
    "shashua_levin": lambda: (
        _fitted("shashua_levin", rows(), kernel="polynomial"), rows()
    ),
    "svc": lambda: (_fitted("svc", rows(), probability=True), rows()),
    "svr": lambda: (
        _fitted("svr", rows(), thresholds="fitted", probability=True), rows()
    ),
    "cssvc": lambda: (_fitted("cssvc", gram(), kernel="precomputed"), gram()),
    "svmop": lambda: (_fitted("svmop", _sparse(), probability=True), _sparse()),
    "opbe": lambda: (_fitted("opbe", gram(), kernel="precomputed"), gram()),
    "kdlor": lambda: (_fitted("kdlor", rows(), probability=True), rows()),
    "tlssvor": lambda: (_fitted("tlssvor", rows(), probability=True), rows()),
    "gpor": lambda: (_fitted("gpor", rows(), kernel="ard", max_iter=5), rows()),
    "gpor basis": lambda: (
        _fitted("gpor", rows(), basis=5, inference="laplace", kernel="ard_linear",
                max_iter=5),
        rows(),
    ),
    "pom": lambda: (_fitted("pom", rows(), nominal=[0], scale=[1], l2=0.1), rows()),
    "pom_path": lambda: (_fitted("pom_path", rows(), nominal=[0], n_lambdas=3), rows()),
    "pom words": lambda: (_fitted("pom", table()[:, 2:], l2=0.1), table()[:, 2:]),
    "lit": lambda: (_fitted("lit", _sparse()), _sparse()),
    "lat": lambda: (_fitted("lat", rows(), probability=True), rows()),
    "cnnor": lambda: (
        _fitted("cnnor", rows(), n_filters=2, n_hidden=3, n_compared=5), rows()
    ),
    "elmor": lambda: (
        _fitted("elmor", rows(), n_hidden=9, probability=True), rows()
    ),
    "nnor": lambda: (_fitted("nnor", rows(), n_hidden=3), rows()),
    "nnpom": lambda: (_fitted("nnpom", _sparse(), n_hidden=3), _sparse()),
    "ofmhs": lambda: (_fitted("ofmhs", rows()), rows()),
    "boosting": lambda: (
        _fitted("boosting", _with_gaps(), n_rounds=4, monotone=[1, 0, 0]), _with_gaps()
    ),
    "boosting words": lambda: (
        _fitted("boosting", np.column_stack([rows(), ranks()]), categorical=[3],
                n_rounds=4, structure="scores"),
        np.column_stack([rows(), ranks()]),
    ),
    "xofm": lambda: (
        _fitted("xofm", _with_gaps(), monotone=[1, 0, 0], probability=True),
        _with_gaps(),
    ),
    "xofm words": lambda: (
        _fitted("xofm", np.column_stack([rows(), ranks()]), categorical=[3]),
        np.column_stack([rows(), ranks()]),
    ),
    "standardized": lambda: (standardized(), rows()),
    "preprocessed": lambda: (preprocessed(), table()),
    "coding": lambda: (
        preprocessing.TablePreprocessor(order={2: ["low", "mid", "high"]}).fit(table()),
        table(),
    ),
    "standardizer": lambda: (preprocessing.Standardizer.fit(rows()), rows()),
    "binning": lambda: (
        preprocessing.Binning.equal_frequency(rows()[:, 0], 4), rows()[:, 0]
    ),
    "selection": lambda: (selection(), rows()),
    "nested": lambda: (nesting(), rows()),
    "conformal": lambda: (conformal_sets(), rows()),
    "cross conformal": lambda: (cross_conformal_sets(), rows()),
}  # fmt: skip


@functools.cache
def subject(name: str) -> tuple[bytes, Any, dict[str, np.ndarray]]:
    """The bytes of a file, rows, and what the model says of them."""
    model, X = SUBJECTS[name]()
    return _bytes_of(model), X, judged(model, X)


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


def damaged(name: str, *changes: Change) -> str:
    """Load a file some of whose bytes have changed: it is refused or still the same."""
    content, X, before = subject(name)
    for change in changes:
        content = change(content)
    model = _loaded(content)
    after = judged(model, X)
    same = before.keys() == after.keys() and all(
        np.array_equal(before[key], after[key], equal_nan=before[key].dtype.kind == "f")
        for key in before
    )
    if not same:
        raise BrokenPromise("a damaged file was taken for another model")
    return "the same"


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
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


# Changes of bytes, at a place from 0 (the beginning) to 1 (the end) of the file


def flip(at: float, mask: int) -> Change:
    def change(content: bytes) -> bytes:
        changed = bytearray(content)
        if changed:
            changed[int(at * len(changed))] ^= mask
        return bytes(changed)

    return change


def splice(at: float, size: int, into: float, insert: bool) -> Change:
    """Some bytes again at another place: between others, or in their stead."""

    def change(content: bytes) -> bytes:
        a, b = int(at * len(content)), int(into * len(content))
        end = b if insert else b + size
        return content[:b] + content[a : a + size] + content[end:]

    return change


def blank(at: float, size: int, value: int) -> Change:
    def change(content: bytes) -> bytes:
        a = int(at * len(content))
        b = min(a + size, len(content))
        return content[:a] + bytes([value]) * (b - a) + content[b:]

    return change


def drop(at: float, size: int) -> Change:
    def change(content: bytes) -> bytes:
        a = int(at * len(content))
        return content[:a] + content[a + size :]

    return change


def cut(at: float) -> Change:
    return lambda content: content[: int(at * len(content))]


def graft(name: str, at: float, size: int) -> Change:
    """The bytes that the file of another object has at this place."""

    def change(content: bytes) -> bytes:
        a = int(at * len(content))
        return content[:a] + subject(name)[0][a : a + size] + content[a + size :]

    return change


# Changes of arrays: `which` counts them, from any number


def array(which: int, way: Callable[[np.ndarray], np.ndarray]) -> Change:
    """One array as `way` makes it; unchanged where its type does not let it."""

    def change(parts: Any) -> None:
        arrays = parts[1]
        if not arrays:
            return
        key = sorted(arrays)[which % len(arrays)]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
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
        if not arrays:
            return
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
        places = [
            at for at in _places(parts[0]) if not isinstance(_of(at), dict | list)
        ]
        if not places:
            return
        holder, key = places[which % len(places)]
        holder[key] = value

    return change


def node(which: int, value: Any) -> Change:
    """Draw one node of any kind."""

    def change(parts: Any) -> None:
        places = list(_places(parts[0]["model"]))
        if not places:
            return
        holder, key = places[which % len(places)]
        holder[key] = copy.deepcopy(value)

    return change


def moved(which: int, other: int) -> Change:
    """A copy of one node in the place of another."""

    def change(parts: Any) -> None:
        places = list(_places(parts[0]["model"]))
        if not places:
            return
        holder, key = places[which % len(places)]
        holder[key] = copy.deepcopy(_of(places[other % len(places)]))

    return change


def forgotten(which: int) -> Change:
    def change(parts: Any) -> None:
        places = list(_places(parts[0]["model"]))
        if not places:
            return
        holder, key = places[which % len(places)]
        del holder[key]

    return change


def _places(held: Any) -> Any:
    """All pairs of a holder and a key or number within it."""
    keys = held if isinstance(held, dict) else range(len(held))
    for key in keys:
        yield held, key
        if isinstance(held[key], dict | list):
            yield from _places(held[key])


def _of(place: Any) -> Any:
    return place[0][place[1]]
