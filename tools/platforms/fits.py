"""A fit of every method, to compare platforms with one another and threads with none.

    python tools/platforms/fits.py write FILE.npz
    python tools/platforms/fits.py compare HERE.npz THERE.npz
    python tools/platforms/fits.py threads N

The methods and variants are those of tests/registry.py, which needs pytest, hypothesis
and scipy. `write` fits each to the same rows of three ranks, with the options under
which two fits of one problem agree where it has such, and keeps how the fit ended, the
labels and the numbers that it gives the rows. `compare` prints both sides and fails
where a fit ended otherwise, a label differs, or numbers differ by more than the
registry lets two fits of one problem. `threads` fits every method in N threads at once,
and fails unless each gives the bytes of a fit alone.
"""

import argparse
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import registry
from strategies import sample

import ordinal

ROWS = 60


def fitted(method: registry.Method) -> dict[str, np.ndarray]:
    """The fields that are compared, by name."""
    X, y = sample(ROWS, 3)
    model = method.cut_short(X, y, **(method.precise or {}))
    return {
        "status": np.array(model.convergence.status.value),
        "labels": np.asarray(model.predict(X)),
        "numbers": np.asarray(method.numbers(model, X)),
    }


def write(path: Path) -> int:
    out = {}
    for method in registry.METHODS:
        started = time.perf_counter()
        for name, values in fitted(method).items():
            out[f"{method.name}/{name}"] = values
        status = out[f"{method.name}/status"]
        print(
            f"{method.name:20} {status} {time.perf_counter() - started:.1f} s",
            flush=True,
        )
    np.savez(path, **out)
    print(ordinal.show_config())
    return 0


def compare(here: Path, there: Path) -> int:
    failed = 0
    print(
        "| method | here | there | labels that differ | greatest difference | allowed |"
    )
    print("|---|---|---|---|---|---|")
    with np.load(here) as a, np.load(there) as b:
        for method in registry.METHODS:
            status, labels, numbers = (
                [side[f"{method.name}/{name}"] for side in (a, b)]
                for name in ("status", "labels", "numbers")
            )
            apart = float(np.max(np.abs(numbers[0] - numbers[1]), initial=0.0))
            differ = int(np.sum(labels[0] != labels[1]))
            failed += status[0] != status[1] or differ > 0 or not apart <= method.atol
            print(
                f"| {method.name} | {status[0]} | {status[1]} | {differ} | {apart:.1e} "
                f"| {method.atol:.0e} |"
            )
    print(f"\n{failed} of {len(registry.METHODS)} differ")
    return int(failed > 0)


def in_threads(count: int) -> int:
    """All methods in each thread, each thread beginning with another one."""
    methods = registry.METHODS
    alone = [fitted(method) for method in methods]
    wrong: list[str] = []
    begin = threading.Barrier(count)

    def work(first: int) -> None:
        try:
            begin.wait()
            for k in range(len(methods)):
                at = (first + k) % len(methods)
                got = fitted(methods[at])
                wrong.extend(
                    f"{methods[at].name} {name}"
                    for name, values in alone[at].items()
                    if got[name].tobytes() != values.tobytes()
                )
        except BaseException as error:
            wrong.append(f"{type(error).__name__}: {error}")
            raise

    # filters of warnings belong to the whole process: threads may not change them
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        crowd = [
            threading.Thread(target=work, args=(i * len(methods) // count,))
            for i in range(count)
        ]
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()
    lock = getattr(sys, "_is_gil_enabled", lambda: True)()
    print(f"{count} threads, {len(methods)} methods each, lock held: {lock}")
    print(f"wrong: {wrong}")
    return int(bool(wrong))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    todo = parser.add_subparsers(dest="todo", required=True)
    todo.add_parser("write").add_argument("path", type=Path)
    both = todo.add_parser("compare")
    both.add_argument("here", type=Path)
    both.add_argument("there", type=Path)
    todo.add_parser("threads").add_argument("count", type=int)
    args = parser.parse_args()
    if args.todo == "write":
        return write(args.path)
    if args.todo == "compare":
        return compare(args.here, args.there)
    return in_threads(args.count)


if __name__ == "__main__":
    sys.exit(main())
