"""The models of every `fit_*` as values: frozen, copied, saved, loaded, shown."""

import contextlib
import copy
import dataclasses
import functools
import itertools
import json
import pickle
import typing

import numpy as np
import pandas as pd
import pytest
from files import assert_same_fields, copies, load_edited, replaced_once, saved_members
from numpy.testing import assert_array_equal
from registry import METHODS, every_method, marks_of, which
from scipy import sparse
from strategies import raises, sample

import ordinal
from ordinal import kernels
from ordinal._input.fields import Array, check_fields

NAMES = np.array(["low", "mid", "top"])
FORMS = ["dense", "strings", "csr", "precomputed", "polynomial", "probability"]


def offered(slow=()):
    """Every method with every form that it takes; some forms are slow."""
    needs = {"strings": None, "dense": None, "probability": "probability"}
    for method in METHODS:
        for form in FORMS:
            need = needs.get(form, "kernel")
            if need is None or method.can(need):
                many = pytest.mark.slow("many forms of the same rule")
                marks = many if form in slow else marks_of(method)
                yield pytest.param(method, form, id=f"{method}-{form}", marks=marks)


every_form = pytest.mark.parametrize(("method", "form"), list(offered()))
# without the forms whose arrays are those of "dense"
few_forms = list(offered(slow=("strings", "polynomial")))
every_array = pytest.mark.parametrize(("method", "form"), few_forms)


@functools.cache
def example(method, form):
    """A model, rows that it can judge, and options that judging them takes."""
    X, y = sample(40, 3)
    match form:
        case "csr":
            X = sparse.csr_array(np.where(np.abs(X) > 1, X, 0))
            return method(X, y, kernel="linear"), X, {}
        case "precomputed":
            K = kernels.RBF(0.5)(X, X)
            diagonal = {"diagonal": np.ones(40)} if method.needs_diagonal else {}
            return method(K, y, kernel="precomputed"), K, diagonal
        case "strings":
            frame = pd.DataFrame(X, columns=["size", "age", "a b"])
            return method(frame, NAMES[y], classes=[*NAMES, "never"]), frame, {}
        case "polynomial":
            return method(X, y, kernel=kernels.Polynomial(2)), X, {}
        case "probability":
            return method(X, y, probability=True), X, {}
    return method(X, y), X, {}


@every_form
def test_a_model_survives_file_and_pickle_read_only(method, form, tmp_path):
    model, X, options = example(method, form)
    assert type(model) is method.model
    assert isinstance(model, ordinal.Model)
    assert model.n_features == X.shape[1]
    labels, numbers = model.predict(X, **options), method.numbers(model, X, **options)
    for same in copies(model, tmp_path):
        assert_array_equal(method.numbers(same, X, **options), numbers)
        assert_array_equal(same.predict(X, **options), labels)
        assert same.predict(X, **options).dtype == model.classes.dtype
        if form == "probability":
            assert_array_equal(same.predict_proba(X), model.predict_proba(X))
    model, _, _ = example(method, form)
    protocols = range(2, pickle.HIGHEST_PROTOCOL + 1)
    pickled = [pickle.loads(pickle.dumps(model, protocol)) for protocol in protocols]
    for same in (model, *pickled, copy.deepcopy(model), copy.copy(model)):
        assert_same_fields(model, same)  # looks at every writeable flag
    with pytest.raises(ValueError, match="read-only"):
        model.classes[0] = model.classes[1]


@every_method
def test_the_same_model_gives_the_same_file_and_has_its_attributes(method, tmp_path):
    model, _, _ = example(method, "dense")
    for name in "ab":
        model.save(tmp_path / name)
    ordinal.load(tmp_path / "a").save(tmp_path / "c")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes() == (tmp_path / "c").read_bytes()
    assert {p.name for p in tmp_path.iterdir()} == {"a", "b", "c"}
    missing = {name for name in dir(model) if not hasattr(model, name)}
    of_likelihood = {"aic", "bic", "dof", "p_values", "standard_errors", "z"}
    assert missing <= of_likelihood | {"coef_by_feature"}  # of a linear kernel


LARGEST = np.finfo(np.float64).max


def fields_of(model):
    return {f.name: getattr(model, f.name) for f in dataclasses.fields(model)}


def declared(cls):
    """Return the rules of the fields of a class beside their types."""
    for hint in typing.get_type_hints(cls, include_extras=True).values():
        for alternative in (hint, *typing.get_args(hint)):
            yield from getattr(alternative, "__metadata__", ())


def put(a, value, at=0):
    """A copy with one entry replaced."""
    a = a.copy()
    a.ravel()[at] = value
    return a


def arrays_of(model):
    """The arrays of the model's file, by name."""
    return {k.removeprefix("model."): a for k, a in saved_members(model)[1].items()}


ANOTHER_SHAPE = {
    "one entry less": lambda a: a[:-1],
    "one column less": lambda a: a[:, :-1] if a.ndim == 2 else a,
    "one more axis": lambda a: a[:, None],
    "none": lambda a: a[:0],
    "no axis": lambda a: a.ravel()[0] if a.size else np.array(0.0),
}


@pytest.mark.slow("every array of every form of model")
@every_array
def test_arrays_of_another_shape_are_refused(method, form, tmp_path):
    model, _, _ = example(method, form)
    arrays, edits = arrays_of(model).items(), ANOTHER_SHAPE.values()
    for (name, a), edit in itertools.product(arrays, edits):
        fewer_factors = name == "V" and edit(a).ndim == 2 and len(edit(a)) == len(a)
        fewer_digests = name.endswith("training_rows") and edit(a).ndim == 1
        fewer_folds = name == "scores" and edit(a).ndim == 2 and len(edit(a)) == len(a)
        if edit(a).shape == a.shape or fewer_factors or fewer_digests or fewer_folds:
            continue  # nothing was taken away, or another model is left
        with pytest.raises(ValueError, match="is not an ordinal model file"):
            load_edited(model, tmp_path, {name: edit})


@every_array
def test_arrays_of_another_type_are_refused(method, form, tmp_path):
    """Values of CSR rows are numbers of any type, which are converted."""
    model, _, _ = example(method, form)
    for name, a in arrays_of(model).items():
        if name.endswith("classes"):
            continue
        kinds = [np.str_, np.float32 if a.dtype.kind == "f" else np.float64]
        for kind in kinds[: 1 if name == "support.data" else 2]:
            with pytest.raises(ValueError, match="is not an ordinal model file"):
                load_edited(model, tmp_path, {name: lambda a: a.astype(kind)})  # noqa: B023


@every_form
def test_rows_of_another_number_of_features_are_refused(method, form, tmp_path):
    """A precomputed kernel may know more rows than the support names."""
    model, _, _ = example(method, form)
    found = f'"n_features": {model.n_features}'
    for n in (-1, 2, *[model.n_features + 1] * (form != "precomputed")):
        if found not in json.dumps(saved_members(model)[0]):
            continue  # it is the length of an array
        other = f'"n_features": {n}'
        edits = {"header": lambda text: text.replace(found, other, 1)}  # noqa: B023
        with pytest.raises(ValueError, match="is not an ordinal model file"):
            load_edited(model, tmp_path, edits)


SUPPORT = {  # form: the edits of its support, with what the refusal says
    "dense": [("support", lambda a: a[:, :-1], "support must have 3 columns")],
    "csr": [
        ("support.indices", lambda a: a + 100, "holds column"),
        ("support.indptr", lambda a: a + 1, r"\.indptr must have"),
        ("support.data", lambda a: a[:-1], "must agree with the stored entries"),
        ("support.data", lambda a: a * np.nan, "must be finite"),
        ("header",
         replaced_once('"Linear", "fields": {}', '"Precomputed", "fields": {}'),
         "is not an ordinal model file"),
    ],
    "precomputed": [
        ("support", lambda a: a + 1000, "support must number training rows"),
        ("support", lambda a: -a - 1, "support must number training rows"),
        ("support", lambda a: a[:, None], "support must number training rows"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("form", SUPPORT)
@which(takes="kernel")
def test_a_support_that_names_no_training_rows_is_refused(method, form, tmp_path):
    model, _, _ = example(method, form)
    for name, edit, message in SUPPORT[form]:
        raises(ValueError, message, load_edited, model, tmp_path, {name: edit})


@pytest.mark.usefixtures("counted_clock")
@pytest.mark.parametrize("size", [1e-150, 1e-100, 1e20, 1e100])
@every_method
def test_fields_are_as_declared_for_features_of_any_size(method, size, tmp_path):
    X, y = sample(30, 3)
    model = method.cut_short(size * X, y, max_time=200.0)
    check_fields(type(model), fields_of(model))
    model.save(tmp_path / "m")
    loaded = ordinal.load(tmp_path / "m")
    assert np.isfinite(method.numbers(loaded, size * X)).all()
    assert_array_equal(loaded.predict(size * X), model.predict(size * X))


def test_a_model_has_a_kernel_of_the_package(tmp_path):
    """A link can be called, too, and stands in the same header."""
    model, _, _ = example(METHODS[0], "probability")

    def link_for_kernel(header):
        text = json.loads(header)
        text["model"]["fields"]["kernel"] = text["model"]["fields"]["link"]
        return json.dumps(text)

    with pytest.raises(ValueError, match="kernel cannot be of type SoftmaxLink"):
        load_edited(model, tmp_path, {"header": link_for_kernel})


NO_MODEL = {
    "nan": lambda a: put(a, np.nan),
    "inf": lambda a: put(a, np.inf, at=a.size // 2),
    "minus inf": lambda a: put(a, -np.inf, at=a.size // 2),
}


ABSENT = "intercept", "thresholds", "link.offsets"  # of ranks without rows


@every_array
def test_numbers_that_are_not_finite_are_refused(method, form, tmp_path):
    model, _, _ = example(method, form)
    for (name, a), edit in itertools.product(arrays_of(model).items(), NO_MODEL):
        absent = edit == "inf" and name.endswith(ABSENT)
        absent |= name == "scores" and edit != "nan"  # log_loss of a lost rank
        absent |= name.endswith("scale") and edit == "inf"  # of a constant column
        if a.dtype.kind == "f" and a.size > 2 and not absent:
            with pytest.raises(ValueError, match="is not an ordinal model file"):
                load_edited(model, tmp_path, {name: NO_MODEL[edit]})


HUGE = {
    "largest": lambda a: np.where(np.isfinite(a), LARGEST * np.sign(a), a),
    "large": lambda a: a * 1e200,
    "tiny": lambda a: a * 1e-200,
    "subnormal": lambda a: a * 1e-320,
    "infinite": lambda a: np.full_like(a, np.inf),  # a scale, of constant columns
}


@pytest.mark.slow("draws of files of every form of model")
@every_form
def test_a_model_of_any_size_is_refused_or_predicts_finitely(method, form, tmp_path):
    model, X, options = example(method, form)
    for (name, a), edit in itertools.product(arrays_of(model).items(), HUGE.values()):
        if a.dtype.kind != "f" or name == "classes":
            continue
        with np.errstate(all="ignore"):
            changed = edit(a)
        with contextlib.suppress(ValueError):
            bad = load_edited(model, tmp_path, {name: lambda _: changed})  # noqa: B023
            assert np.isin(bad.predict(X, **options), model.classes).all()
            assert np.isfinite(method.numbers(bad, X, **options)).any(axis=-1).all()
            if getattr(bad, "link", True) is not None:
                assert np.isfinite(bad.predict_proba(X, **options)).all()


@every_form
def test_a_model_shows_a_summary_of_fields_as_declared(method, form):
    model, _, _ = example(method, form)
    text = repr(model)
    assert text.startswith(type(model).__name__)
    assert len(text) <= 1000
    assert len(text.splitlines()) <= 12
    assert model.convergence.status.value in text
    assert form != "strings" or ("'size', 'age'" in text and "low" in text)
    assert str(model) == text
    check_fields(type(model), fields_of(model))
    sizes = [size for size in declared(type(model)) if isinstance(size, Array)]
    assert sizes  # there is something to be held against
