"""Model files: what goes in comes out, and no file does anything else."""

import contextlib
import copy
import hashlib
import io
import json
import math
import os
import pickle
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pytest
from files import assert_same_fields, members_of, write_members
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from internals import CSR, checksum, read_features
from numpy.testing import assert_array_equal
from scipy import sparse
from strategies import raises

from ordinal import kernels
from ordinal._model.model import load
from ordinal._model.storage import Storable
from ordinal._watch.convergence import Convergence, Status


@dataclass(frozen=True, slots=True, eq=False)
class Scale(Storable):
    factor: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Toy(Storable):
    """One field of every kind that a file can hold."""

    support: np.ndarray | CSR
    coef: np.ndarray
    classes: np.ndarray
    kernel: Callable
    convergence: Convergence
    C: float = 1.0
    n_features: int = 2
    note: str | None = None
    mode: Literal["a", "b"] = "a"
    exact: bool = True
    names: tuple[str, ...] = ()
    parts: list[Scale] | None = None
    scaler: Scale | None = None

    def _check(self):
        if self.coef.shape != (len(self.support),):
            raise ValueError(f"coef has shape {self.coef.shape}")


@dataclass(frozen=True, slots=True, eq=False)
class Box(Storable):
    anything: Any


def toy(**changes):
    parts = (
        Convergence(Status.CONVERGED, 3, 1e-4, 1e-3, 1.5, -math.inf, 0.25),
        Convergence(Status.MAX_ITER, 4, 0.1, 1e-3, 2.5, 1.0, 0.25),
    )
    model = Toy(
        support=np.array([[0.1, -1.0], [2.0, 1 / 3]]), coef=np.array([0.1, 1e-300]),
        classes=np.array(["low", "höher"]), kernel=kernels.RBF(0.1),
        convergence=Convergence.of_parts(parts), C=0.1, names=("a", "b"),
        parts=[Scale(np.array([1.0])), Scale(np.array(True))],
        scaler=Scale(np.arange(3, dtype=np.int32)),
    )  # fmt: skip
    return replace(model, **changes)


def through_file(model, path):
    model.save(path)
    return load(path)


def sparse_support():
    X = sparse.csr_array(np.array([[0, 1.5], [0, 0], [2, 3]]))
    return read_features(X).rows([0, 1])


MODELS = [
    toy(),
    toy(support=sparse_support()),
    toy(kernel=kernels.Linear(), parts=None, scaler=None, names=()),
    toy(kernel=kernels.Polynomial(3, 0.5, 1.0), parts=[], C=2),
    toy(kernel=kernels.Precomputed(), note="ünï\ud800\n"),
    toy(kernel=kernels.Pearson(), support=np.array([[0.1, np.nan], [np.nan, 3.0]])),
    toy(classes=np.array([3, 200], dtype=np.uint8), mode="b", exact=False),
]


@pytest.mark.parametrize("model", MODELS)
def test_files_pickles_and_copies_hold_the_same_model(model, tmp_path):
    assert_same_fields(model, through_file(model, tmp_path / "m"))
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert_same_fields(model, pickle.loads(pickle.dumps(model, protocol)))
    copied = copy.deepcopy(model)
    assert_same_fields(model, copied)
    assert not np.shares_memory(copied.coef, model.coef)


def double(A, B):
    """A kernel of the user's own."""
    return 2 * A @ B.T


def test_a_kernel_of_the_users_own_can_be_pickled_but_not_saved(tmp_path):
    model = toy(kernel=double)
    assert pickle.loads(pickle.dumps(model)).kernel is double
    with pytest.raises(TypeError, match=r"^model.kernel is .*kernels, or use pickle "):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text()
)
arrays = st.one_of(
    hnp.arrays(kind, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0))
    for kind in ("f8", ">f4", "i8", "u2", "?", "U3")
)
values = st.recursive(
    st.one_of(scalars, arrays, arrays.map(np.asfortranarray), arrays.map(Scale)),
    lambda item: (
        st.lists(item, max_size=3)
        | st.lists(item, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2) | st.just("name"), item, max_size=3)
    ),
    max_leaves=5,
)


def native(value):
    """The value as load returns it: in the byte order of this machine, read-only."""
    if isinstance(value, np.ndarray):
        value = value.astype(value.dtype.newbyteorder("="))
        value.flags.writeable = False
    elif isinstance(value, Scale):
        value = Scale(native(value.factor))
    elif isinstance(value, list | tuple):
        value = type(value)(native(item) for item in value)
    elif isinstance(value, dict):
        value = {key: native(item) for key, item in value.items()}
    return value


one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@one_folder
@given(value=values)
def test_every_value_comes_back_exactly(value, tmp_path):
    assert_same_fields(native(value), through_file(Box(value), tmp_path / "m").anything)


def test_the_path_is_used_as_given_and_arrays_in_the_order_of_kernels(tmp_path):
    for path in (tmp_path / "plain", str(tmp_path / "dotted.model")):
        assert_same_fields(toy(), through_file(toy(), path))
    assert sorted(os.listdir(tmp_path)) == ["dotted.model", "plain"]
    factor = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    assert through_file(Scale(factor), tmp_path / "m").factor.flags.c_contiguous
    model = Scale(np.ones(2))
    model.save(tmp_path / "m")
    assert model.factor.flags.writeable


def test_the_format_is_as_documented(tmp_path, path):
    toy().save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz", allow_pickle=False) as members:
        header = json.loads(members["header"].tobytes())
        assert_array_equal(members["model.coef"], toy().coef)
    assert (header["format"], header["version"]) == ("ordinal-model", 3)
    assert header["model"]["class"] == "Toy"
    # else the refusals below could have any reason
    assert_array_equal(load(write(path, **{"model.factor": FACTOR})).factor, [1, 2])
    Scale(np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3))).save(path)
    header, _ = members_of(path)
    digest = hashlib.blake2b(json.dumps(header["model"]).encode(), digest_size=16)
    digest.update(b"\nmodel.factor <i4 (2, 3)\n")
    digest.update(np.arange(6, dtype="<i4").tobytes())
    assert header["checksum"] == digest.hexdigest()


@dataclass(frozen=True)
class Unknown:
    """A dataclass that is neither a model nor a kernel."""

    gamma: float = 1.0


@pytest.mark.parametrize(("value", "where"), [
    (np.array([None]), "model.anything"),
    (np.array([1j]), "model.anything"),
    (np.zeros(1, "M8[s]"), "model.anything"),
    ({1: "a"}, "model.anything"),
    ([1, (2, Unknown())], "model.anything.1.1"),
    (np.datetime64("2001-01-01"), "model.anything"),
])  # fmt: skip
def test_values_that_a_file_cannot_hold_are_refused(value, where, tmp_path):
    with pytest.raises(TypeError, match=f"^{where} is .*, which a model file cannot"):
        Box(value).save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("change", "error", "message"), [
    ({"coef": np.ones(3)}, ValueError, r"^coef has shape \(3,\)"),
    ({"C": "large"}, TypeError, r"^Toy\.C cannot be of type str"),
    ({"names": ("a", 1)}, TypeError, r"^Toy\.names\[1\] cannot be of type int"),
])  # fmt: skip
def test_what_load_would_refuse_is_not_written(change, error, message, tmp_path):
    raises(error, message, toy(**change).save, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "m"
    toy().save(path)
    before = path.read_bytes()

    def full_disk(file, **members):
        file.write(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    raises(OSError, "No space left", toy(C=3.0).save, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def npy(array):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), allow_pickle=True)
    return stream.getvalue()


def as_header(header):
    return npy(np.frombuffer(json.dumps(header).encode(), dtype=np.uint8))


def header_of(model, **changes):
    head = {"format": "ordinal-model", "version": 3, "checksum": "", "model": model}
    return head | changes


SCALE = {"class": "Scale", "fields": {"factor": {"array": "model.factor"}}}
FACTOR = npy([1.0, 2.0])


def write(path, header=None, compression=zipfile.ZIP_STORED, **members):
    """An archive made by hand; members are bytes under their names without .npy."""
    header = header_of(SCALE) if header is None else header
    if isinstance(header, dict) and header.get("checksum") == "":
        with contextlib.suppress(ValueError, MemoryError):  # members that are no arrays
            read = np.lib.format.read_array
            arrays = {k: read(io.BytesIO(m)) for k, m in members.items()}
            header = header | {"checksum": checksum(header["model"], arrays)}
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("header.npy", as_header(header))
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


def refused(path, reason=""):
    raises(ValueError, f"m is not an ordinal model file: {reason}", load, path)


def damaged(path, reason=""):
    raises(ValueError, f"m is a damaged ordinal model file: {reason}", load, path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m"


def test_archives_that_are_none_are_refused(path):
    with pytest.raises(FileNotFoundError):
        load(path)
    for content in (b"", b"not a zip", FACTOR, pickle.dumps([1])):
        path.write_bytes(content)
        refused(path, "File is not a zip file")
    with open(path, "wb") as file:
        np.savez(file, X=np.ones(2))
    refused(path, "it has no header")
    with open(path, "wb") as file:
        np.savez(file, header=np.ones(2))
    refused(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    refused(path, "member 'readme.txt' is misplaced")
    write(path, **{"model.factor": FACTOR, "more": FACTOR})
    refused(path, r"members belong to no field: \['more'\]")
    with zipfile.ZipFile(path, "w") as archive:
        text = b"[" * 200_000
        archive.writestr("header.npy", npy(np.frombuffer(text, dtype=np.uint8)))
    refused(path, "(maximum recursion depth|Stack overflow)")
    write(path, **{"model.factor": FACTOR})
    with zipfile.ZipFile(path, "a") as archive:
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("model.factor.npy", FACTOR)
    damaged(path, "member 'model.factor.npy' is misplaced")


def kernel(name, **parameters):
    return {"class": name, "fields": parameters}


def box(node):
    return header_of({"class": "Box", "fields": {"anything": node}})


@pytest.mark.parametrize(("header", "reason"), [
    ([], "its header does not name the format 'ordinal-model'"),
    ({"format": "npz"}, "its header does not name the format"),
    (header_of(SCALE, version=4),
     "its format has version 4, this package reads 3; upgrade the package"),
    (header_of(SCALE, version=1),
     "its format has version 1, this package reads 3; fit and save it again"),
    (header_of(SCALE, version="1"), "its header is malformed"),
    (header_of(SCALE, version=True), "its header is malformed"),
    (header_of(SCALE, more=1), "its header is malformed"),
    (header_of(None), "it does not describe a model"),
    (header_of([SCALE]), "it does not describe a model"),
    (header_of({"array": "model.factor"}), "it does not describe a model"),
    (header_of(kernel("RBF", gamma=1.0)), "it does not describe a model"),
    (header_of({"class": "os.system", "fields": {}}), "unknown class 'os.system'"),
    (header_of({"class": "Model", "fields": {}}), "unknown class 'Model'"),
    (header_of({"class": "Scale"}), "its header is malformed"),
    (header_of({"class": "Scale", "fields": {}}), r".* of Scale: \['factor'\]"),
    (header_of(kernel("Scale", factor=1, b=2)), r".* of Scale: \['b'\]"),
    (header_of(kernel("Scale", factor=1)), r"Scale\.factor cannot be of type int"),
    (header_of(kernel("Scale", factor={"array": "no"})), "member 'no' is missing"),
    (box({"array": ["no"]}), "its header is malformed"),
    (box({}), "its header is malformed"),
    (box({"mapping": [1]}), "its header is malformed"),
    (box({"status": "done"}), "'done' is not a valid Status"),
    (box(kernel("Gauss", gamma=1.0)), "unknown class 'Gauss'"),
    (box(kernel("RBF", gamma=math.nan)), "gamma must be .*, got nan"),
    (box(kernel("RBF", gamma=math.inf)), "gamma must be .*, got inf"),
    (box(kernel("RBF", gamma=[1.0])), r"RBF\.gamma cannot be of type list"),
    (box(kernel("RBF", gamma=-1.0)), "gamma must be"),
    (box(kernel("RBF", kappa=1.0)), r".* fields of RBF: \['gamma', 'kappa'\]"),
])  # fmt: skip
def test_other_headers_are_refused(header, reason, path):
    refused(write(path, header, **{"model.factor": FACTOR}), reason)


def test_sparse_arrays_that_do_not_fit_are_refused(path):
    parts = {"data": np.ones(2), "indices": np.array([0, 7], dtype=np.int32)}
    parts["indptr"] = np.array([0, 2])
    members = {name: npy(array) for name, array in parts.items()}
    node = kernel("CSR", **{name: {"array": name} for name in parts})
    node["fields"]["shape"] = {"tuple": [1, 3]}
    write(path, box(node), **members)
    refused(path, "CSR has 3 columns, but row 0 holds column 7")
    node["fields"]["shape"] = {"tuple": [1]}
    refused(write(path, box(node), **members), "CSR.shape must have 2 items, got 1")


class Payload:
    """Unpickling this leaves a file behind."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (str(self.trace),)


def test_pickled_members_are_not_run(path, tmp_path):
    trace = tmp_path / "trace"
    array = np.array([Payload(trace)], dtype=object)
    pickle.loads(pickle.dumps(array))  # the payload works
    trace.rmdir()
    write(path, **{"model.factor": npy(array)})
    damaged(path, "member 'model.factor' has dtype object")
    with open(path, "wb") as file:
        np.savez(file, header=array)
    refused(path, "member 'header' has dtype object")
    path.write_bytes(pickle.dumps(array))
    refused(path)
    assert not trace.exists()


def described(descr, shape, content=b""):
    """An .npy member that claims this dtype and shape."""
    stream = io.BytesIO()
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue() + content


@pytest.mark.parametrize(("member", "reason"), [
    (described("<f8", (2**40,)), "member 'model.factor' does not have the size"),
    (described("<f8", (1,), bytes(16)), "member 'model.factor' does not have the"),
    (described("<f8", (-1, -1), bytes(8)), ""),
    (described("<U0", (2**40,)), "member 'model.factor' has dtype"),
    (described("<c16", (1,), bytes(16)), "member 'model.factor' has dtype complex"),
    (described([("a", "<f8")], (1,), bytes(8)), "member 'model.factor' has dtype"),
    (described("<U1", (1,), b"\xff\xff\xff\x7f"), ""),
    (described("<f8", (1,), bytes(8))[:20], ""),
    (FACTOR[:6] + b"\x09" + FACTOR[7:], ""),
    (b"", ""),
])  # fmt: skip
def test_members_that_lie_are_refused(member, reason, path):
    damaged(write(path, **{"model.factor": member}), reason)


def test_members_cannot_unpack_to_more_than_the_file(path):
    members = {"model.factor": npy(np.zeros(100_000))}
    write(path, compression=zipfile.ZIP_DEFLATED, **members)
    refused(path, "a member is compressed")
    # many entries of the directory may point at the same bytes
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.npy", as_header(header_of(SCALE)))
        archive.writestr("model.factor.npy", members["model.factor"])
        for i in range(20):
            overlapping = copy.copy(archive.filelist[1])
            overlapping.filename = f"{i}.npy"
            archive.filelist.append(overlapping)
    damaged(path, "its members claim more bytes than it has")


def test_a_changed_entry_is_damage_unless_the_checksum_is_computed_anew(path):
    model = toy()
    model.save(path)
    header, arrays = members_of(path)
    arrays["model.coef"] = arrays["model.coef"] + 1
    with open(path, "wb") as file:
        as_bytes = np.frombuffer(json.dumps(header).encode(), np.uint8)
        np.savez(file, header=as_bytes, **arrays)  # whose own checksums are right
    damaged(path, "its content does not have the checksum that it states")
    write_members(path, header, arrays)
    assert_array_equal(load(path).coef, model.coef + 1)


def load_or_refuse(path):
    """The model, or None for a ValueError that says so; anything else is a failure."""
    try:
        return load(path)
    except ValueError as error:
        if " ordinal model file: " not in str(error):
            raise
        return None


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "m"
    toy(support=sparse_support()).save(path)
    return path.read_bytes(), load(path)


@one_folder
@given(data=st.data())
def test_flipped_bytes_are_noticed_or_harmless_and_lost_ones_noticed(saved, path, data):
    content, model = saved
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    assert load_or_refuse(path) is None
    damaged = bytearray(content)
    directory = content.index(b"PK\x01\x02")
    where = st.integers(0, len(content) - 1) | st.integers(directory, len(content) - 1)
    for at in data.draw(st.lists(where, min_size=1, max_size=4)):
        damaged[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(damaged)
    got = load_or_refuse(path)
    if got is not None:
        assert_same_fields(model, got)


header_nodes = st.recursive(
    scalars | st.just({"array": "model.factor"}) | st.just(SCALE),
    lambda node: (
        st.lists(node, max_size=3)
        | st.builds(lambda n: {"tuple": n}, node)
        | st.builds(lambda n: {"array": n}, node)
        | st.builds(lambda n: {"mapping": n}, node)
        | st.builds(lambda k, n: {"mapping": {k: n}}, st.text(max_size=2), node)
        | st.builds(lambda n: {"status": n}, node)
        | st.builds(
            lambda name, n, m: {"class": name, "fields": {n: m}},
            st.sampled_from(["Scale", "Box", "RBF", "Linear", "CSR", "Convergence"]),
            st.sampled_from(["factor", "anything", "gamma", "data"]),
            node,
        )
    ),
    max_leaves=8,
)


@one_folder
@given(node=header_nodes)
def test_any_header_gives_a_model_or_a_refusal(node, path):
    write(path, header_of(node), **{"model.factor": FACTOR})
    model = load_or_refuse(path)
    if model is not None:
        assert isinstance(model, Scale | Box)
        model.save(path)
        assert_same_fields(model, load(path))
