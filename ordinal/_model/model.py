"""What every model shares: files that hold data only, and read-only arrays.

A model file is an .npz archive, stored without compression, of plain .npy members.
The member `header` holds JSON in ASCII bytes:

    {"format": "ordinal-model", "version": 1, "model": node}

    node = null, a boolean, a number, a string, a list of nodes, or one of
           {"class": name, "fields": {field: node}}    model, kernel or record
           {"array": member}    {"tuple": [node]}    {"status": value}

Reading one runs no code from the file: a name is looked up among the classes known
here, and every value is held against the annotation of its field.
"""

import dataclasses
import io
import json
import math
import os
import types
import typing
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from .. import kernels
from .._input.features import check_features
from .._input.sparse import CSR, frozen
from .._kernel_matrix.choice import NAMED, takes_missing
from .._kernel_matrix.tiles import Evaluator
from .._numerics.rows import take
from .._numerics.threads import resolve_n_threads
from .convergence import Convergence, Status
from .links import CumulativeLink, SoftmaxLink

_FORMAT, _VERSION = "ordinal-model", 1
_ARRAY_KINDS = "biufU"  # whatever needs no pickle: booleans, numbers, strings
_RECORDS: dict[str, type] = {
    cls.__name__: cls for cls in (CSR, Convergence, CumulativeLink, SoftmaxLink)
}
_MODELS: dict[str, type["Model"]] = {}


class Model:
    """Base of the models, which are frozen dataclasses with slots.

    A field may hold an array of numbers, booleans or strings, a CSR, a number, a
    string, a bool, None, a `Convergence`, a kernel of `ordinal.kernels`, a model, or a
    tuple or list of these. A subclass may define `_check(self)`, which raises
    ValueError if its fields contradict each other; `load` calls it.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # dataclass(slots=True) makes a second class: the later one is the real one
        _MODELS[cls.__name__] = cls

    def __reduce__(self):
        # dataclass(frozen=True, slots=True) would shadow __getstate__ of a base, and
        # arrays forget in a pickle that they were read-only
        return _rebuild, (
            type(self),
            {f.name: getattr(self, f.name) for f in dataclasses.fields(self)},
        )

    def _check(self) -> None:
        """Raise ValueError if the fields contradict each other."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that `ordinal.load` reads.

        The file holds no code and no pickle, and the same model gives the same bytes.
        It appears whole or not at all, under exactly the name given.

        Parameters
        ----------
        path : path of the file; one that exists is replaced

        Raises
        ------
        TypeError
            The model holds what a file cannot, such as a function for a kernel;
            nothing is written then.
        """
        arrays: dict[str, Any] = {}
        header = {
            "format": _FORMAT,
            "version": _VERSION,
            "model": _encode(self, "model", arrays),
        }
        _decode_file(header, arrays)  # never write what load would refuse
        as_bytes = np.frombuffer(json.dumps(header).encode("ascii"), dtype=np.uint8)

        path = Path(path)
        temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
        try:
            with open(temporary, "xb") as file:
                np.savez(file, header=as_bytes, **arrays)
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


class ThresholdModel(Model):
    """Base of the models whose ranks are divided by thresholds on one line."""

    __slots__ = ()
    classes: np.ndarray

    @property
    def threshold_names(self) -> tuple[str, ...]:
        """The two labels on the sides of each threshold, such as "low|mid"."""
        return tuple(f"{a}|{b}" for a, b in pairwise(self.classes.tolist()))

    def _check_arrays(self, shapes: dict[str, tuple[int, ...]]) -> None:
        """Raise ValueError unless these fields are float64 of these shapes, and the
        classes a vector."""
        for name, shape in shapes.items():
            values = getattr(self, name)
            if values.shape != shape or values.dtype != np.float64:
                raise ValueError(f"{', '.join(shapes)}: float64 of m and r")
        if self.classes.ndim != 1:
            raise ValueError("classes must be a vector")


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that its `save` method wrote.

    Safe for files from anywhere: nothing is unpickled, and the memory used is in
    proportion to the size of the file.

    Parameters
    ----------
    path : path of the file

    Returns
    -------
    model
        Of the class that was saved, with read-only arrays.

    Raises
    ------
    ValueError
        The file is damaged, of another kind, or written by a newer version.
    OSError
        It cannot be opened.
    """
    with open(path, "rb") as file:
        try:
            return _decode_file(*_read(file))
        except MemoryError:
            raise
        except Exception as error:
            # zipfile, json and numpy raise a dozen types over a file made to break them
            reason = str(error) or type(error).__name__
            raise ValueError(
                f"{path!s} is not an ordinal model file: {reason}"
            ) from error


# Support rows


def support_rows(kernel: Any, X: np.ndarray | CSR, rows: np.ndarray) -> Any:
    """What a kernel model keeps of its training rows: for a precomputed kernel their
    numbers, else the rows."""
    if isinstance(kernel, kernels.Precomputed):
        return frozen(rows.astype(np.int64))
    support = take(X, rows)
    return support if isinstance(support, CSR) else frozen(support)


def decision(model: Any, X: Any) -> np.ndarray:
    """The `decision_function` of a kernel model, from k(X, support) @ coef.

    Raises ValueError or TypeError as `check_features`.
    """
    missing = takes_missing(model.kernel)
    X = check_features(X, model.n_features, missing=missing)
    n_threads = resolve_n_threads(None)
    values = Evaluator(model.kernel, X, model.support, n_threads)
    return model._decided(values.product(_columns(model)))


def decisions(
    models: Sequence[Any], used: Sequence[np.ndarray], X: np.ndarray | CSR, X_test: Any
) -> Sequence[np.ndarray | None]:
    """What each model's `decision_function` gives for `X_test`, or None without it.

    The models are of one kernel, and their support rows the rows `used` of X, so that
    k(X_test, X) serves them all.
    """
    if X_test is None or isinstance(models[0].kernel, kernels.Precomputed):
        return [None] * len(models)
    columns = [_columns(model) for model in models]
    ends = np.cumsum([c.shape[1] for c in columns])
    coef = np.zeros((len(X), ends[-1]))
    for rows, c, end in zip(used, columns, ends, strict=True):
        coef[rows, end - c.shape[1] : end] = c
    some = np.flatnonzero(coef.any(axis=1))
    values = Evaluator(models[0].kernel, X_test, take(X, some))
    sums = np.split(values.product(coef[some]), ends[:-1], axis=1)
    return [model._decided(part) for model, part in zip(models, sums, strict=True)]


def _columns(model: Any) -> np.ndarray:
    """The coefficients as a matrix, which may have no rows."""
    return model.coef[:, None] if model.coef.ndim == 1 else model.coef


def check_support(support: Any, kernel: Any, m: int, n_features: int) -> None:
    """Raise ValueError unless these are m support rows as `support_rows` makes them."""
    if isinstance(kernel, kernels.Precomputed):
        if (
            isinstance(support, CSR)
            or support.shape != (m,)
            or support.dtype.kind != "i"
            or not ((support >= 0) & (support < n_features)).all()
        ):
            raise ValueError("support must number training rows")
    elif support.shape != (m, n_features) or (
        not isinstance(support, CSR) and support.dtype != np.float64
    ):
        raise ValueError("support must be float64 rows of n_features")


def _rebuild(cls: type[Model], fields: dict[str, Any]) -> Model:
    """Unpickle a model."""
    return cls(**{name: _frozen_within(value) for name, value in fields.items()})


def _frozen_within(value: Any) -> Any:
    """The same value with its arrays read-only; models and CSR see to their own."""
    if isinstance(value, np.ndarray):
        return frozen(value)
    if isinstance(value, Convergence | CumulativeLink | SoftmaxLink):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return type(value)(**{k: _frozen_within(v) for k, v in fields.items()})
    if isinstance(value, kernels.ARD | kernels.LinearARD):
        return type(value)(value.gamma)
    if type(value) in (list, tuple):
        return type(value)(_frozen_within(item) for item in value)
    return value


# Values to nodes and back


def _encode(value: Any, where: str, arrays: dict[str, Any]) -> Any:
    """The node of a value; its arrays are collected under names that say where."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in _ARRAY_KINDS:
        arrays[where] = value
        return {"array": where}
    if type(value) in (list, tuple):
        nodes = [_encode(v, f"{where}.{i}", arrays) for i, v in enumerate(value)]
        return nodes if type(value) is list else {"tuple": nodes}
    if isinstance(value, Status):
        return {"status": value.value}
    name = type(value).__name__
    if dataclasses.is_dataclass(value) and _known_class(name) is type(value):
        fields = {
            f.name: _encode(getattr(value, f.name), f"{where}.{f.name}", arrays)
            for f in dataclasses.fields(value)
        }
        return {"class": name, "fields": fields}
    if callable(value):
        raise TypeError(
            f"{where} is {value!r}: a model file holds data only, so its kernel must "
            "come from ordinal.kernels; pickle works where the callable pickles"
        )
    raise TypeError(f"{where} is {value!r}, which a model file cannot hold")


def _decode_file(header: Any, arrays: dict[str, np.ndarray]) -> Model:
    """The model that a header and its arrays describe."""
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise ValueError(f"its header does not name the format {_FORMAT!r}")
    version = header.get("version")
    if type(version) is int and version > _VERSION:
        raise ValueError(
            f"version {version} is newer than this package reads ({_VERSION}); "
            "upgrade the package"
        )
    if version != _VERSION or set(header) != {"format", "version", "model"}:
        raise ValueError("its header is malformed")
    used: set[str] = set()
    model = _decode(header["model"], arrays, used)
    if not isinstance(model, Model):
        raise ValueError("it does not describe a model")
    if used != set(arrays):
        raise ValueError(f"members belong to no field: {sorted(set(arrays) - used)}")
    return model


def _decode(node: Any, arrays: dict[str, np.ndarray], used: set[str]) -> Any:
    """The value of a node; `used` collects the arrays it refers to."""
    if isinstance(node, list):
        return [_decode(item, arrays, used) for item in node]
    if not isinstance(node, dict):
        return node
    match node:
        case {"array": str(member)}:
            if member not in arrays:
                raise ValueError(f"member {member!r} is missing")
            used.add(member)
            return arrays[member]
        case {"tuple": list(items)}:
            return tuple(_decode(item, arrays, used) for item in items)
        case {"status": value}:
            return Status(value)
        case {"class": str(name), "fields": dict(fields)}:
            values = {k: _decode(v, arrays, used) for k, v in fields.items()}
            return _construct(name, values)
    raise ValueError("its header is malformed")


def _construct(name: str, values: dict[str, Any]) -> Any:
    """An instance of a known class, if the values suit its fields."""
    cls = _known_class(name)
    if cls is None:
        raise ValueError(f"unknown class {name!r}")
    wrong = {f.name for f in dataclasses.fields(cls)} ^ set(values)
    if wrong:
        raise ValueError(f"unknown or missing fields of {name}: {sorted(wrong)}")
    hints = typing.get_type_hints(cls)
    for field, value in values.items():
        if not _fits(value, hints[field]):
            raise TypeError(f"{name}.{field} cannot be of type {type(value).__name__}")
        finite = not isinstance(value, float) or math.isfinite(value)
        if name in NAMED and not finite:
            raise ValueError(f"{name}.{field} must be finite, got {value}")
    made = cls(**values)
    if isinstance(made, Model):
        made._check()
    return CSR.from_any(made, "CSR") if isinstance(made, CSR) else made


def _known_class(name: str) -> type | None:
    return _RECORDS.get(name) or NAMED.get(name) or _MODELS.get(name)


def _fits(value: Any, hint: Any) -> bool:
    """Whether the value is of the annotated type, as far as a file could break it."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, arg) for arg in args)
    if origin is typing.Literal:
        return type(value) in map(type, args) and value in args
    if origin in (list, tuple):
        items = [arg for arg in args if arg is not Ellipsis]
        return isinstance(value, origin) and all(
            any(_fits(v, item) for item in items) for v in value
        )
    if getattr(hint, "_is_protocol", False):  # kernels: isinstance needs @runtime
        return callable(value)
    if hint is float and type(value) is int:
        return True
    if hint in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, origin or hint)


# Files


def _read(file: typing.BinaryIO) -> tuple[Any, dict[str, np.ndarray]]:
    """Header and arrays of an archive."""
    import zipfile  # slow to import, and few processes load a model

    size = os.fstat(file.fileno()).st_size
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        # Stored members that together fit the file cannot unpack to more than it,
        # not even where their extents overlap.
        if any(m.compress_type != zipfile.ZIP_STORED for m in members):
            raise ValueError("a member is compressed")
        if sum(m.file_size for m in members) > size:
            raise ValueError("its members claim more bytes than it has")
        arrays: dict[str, np.ndarray] = {}
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name in arrays or name == member.filename:
                raise ValueError(f"member {member.filename!r} is misplaced")
            arrays[name] = _read_array(archive.read(member), name)
    if "header" not in arrays:
        raise ValueError("it has no header")
    return json.loads(arrays.pop("header").tobytes().decode("ascii")), arrays


def _read_array(raw: bytes, name: str) -> np.ndarray:
    """The array of an .npy member, without trusting the size that it claims."""
    stream = io.BytesIO(raw)
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):  # the later ones serve structured types
        raise ValueError(f"member {name!r} is of .npy version {version}")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.kind not in _ARRAY_KINDS or dtype.itemsize == 0:
        raise ValueError(f"member {name!r} has dtype {dtype}")
    start = stream.tell()
    if math.prod(shape) * dtype.itemsize != len(raw) - start:
        raise ValueError(f"member {name!r} does not have the size it claims")
    order: typing.Literal["C", "F"] = "F" if fortran else "C"
    view = np.ndarray(shape, dtype, buffer=raw, offset=start, order=order)
    a = view.astype(dtype.newbyteorder("="), order="C")
    if a.dtype.kind == "U":
        a.tolist()  # raises for characters outside Unicode, which numpy lets pass
    return frozen(a)
