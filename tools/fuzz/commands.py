"""Names for sources with the `ordinal` command: those of subjects.py and `command`."""

# ruff: noqa: F401, F403, F405
import contextlib
import gzip
import io
import shutil
from pathlib import Path

from subjects import *

from ordinal._command.main import main


def table(n: int = 24, header: str = "a,b,c,grade", labels: str = "1,2,3") -> bytes:
    """The plain rows and labels as comma-separated values; without labels if that is
    empty."""
    lines = [header] if header else []
    for x, y in zip(rows(n).tolist(), ranks(n), strict=True):
        last = [labels.split(",")[y - 1]] if labels else []
        lines.append(",".join([*map(repr, x), *last]))
    return "\n".join([*lines, ""]).encode()


@functools.cache
def model(name: str = "svorim") -> bytes:
    """A file of a model of the plain rows."""
    path = Path(tempfile.mkdtemp(dir=".")) / "model.npz"
    options = {} if name == "gpor" else {"probability": True}
    fitted = grouped() if name == "clmm" else fit(name, **options)
    fitted.save(path)
    return path.read_bytes()


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def splits(n: int = 24, **others: Any) -> bytes:
    i = np.arange(n)
    return npz(**{"train_idx": i[None, ::2], "test_idx": i[None, 1::2], **others})


def command(*argv: str, **files: bytes) -> int:
    """Run the command in a new folder that holds these files; `_` in the name of a file
    is a dot. Raises ValueError with the one line that the command says of an error."""
    folder, back = tempfile.mkdtemp(dir="."), Path.cwd()
    out, errors = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    try:
        for name, content in files.items():
            (Path(folder) / name.replace("_", ".")).write_bytes(content)
        contextlib.chdir(folder).__enter__()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            try:
                code = main(argv)
            except SystemExit as end:  # --help
                code = int(end.code or 0)
    finally:
        contextlib.chdir(back).__enter__()
        shutil.rmtree(folder)
    said = errors.getvalue()
    last = said.splitlines()[-1] if said else ""
    if "Traceback" in said or code not in (0, 2):
        raise BrokenPromise(f"exit code {code}: {said}")
    if (code == 2) != last.startswith("ordinal: error: ") or (code == 2 and out.tell()):
        raise BrokenPromise(
            f"exit code {code}, printed {out.tell()} characters, said {said}"
        )
    if code == 2:
        raise ValueError(last)
    return code
