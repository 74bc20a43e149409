"""Models on a basis of rows, for very many rows, beside what scikit-learn's users do.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python tools/bench/scale.py [--only P]

  made        a million made rows of 20 features in 5 ranks, 300 basis rows: SVORIM at
              two costs, with a small cache, on two threads, and NPSVOR
  peers       the same rows by scikit-learn: Nystroem(300) with LogisticRegression and
              with LinearSVC, and HistGradientBoostingClassifier
  linear      the linear kernel at two sizes and costs, LinearSVC beside it
  rows        the cost by the number of rows; the most of them are in a file
  workers     one and two workers of dask in processes on this machine

Every fit but those of dask runs in a fork of this process. `ours` and `CPU s` are
seconds of its processor, `clock` is what passed meanwhile; `MB` is the most memory that
it held during the fit, in all and with the rows, but for pages of files, which the
system can take back. Errors are those on 50 000 other rows. A fit that takes longer
than --limit seconds is stopped.
"""

import tempfile
import threading
import time
import warnings
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from _common import Table, fit_of, limited, parser, resident, run

import ordinal

D, TEST, GAMMA = 20, 50_000, 0.025
_TOUCHED = 1_500_000_000  # bytes: as much as a fit holds
COLUMNS = "gap:8.1e", "steps:5d", "MAE:6.4f", "wrong:6.4f"
MILLION = 1_000_000


def made_features(n: int, seed) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, D)).astype(np.float32)


def score(X: np.ndarray, seed) -> np.ndarray:
    """Return scores from which ranks are cut: bends, a product, a square and noise."""
    noise = np.random.default_rng(seed).normal(size=len(X))
    smooth = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.5 * X[:, 3] ** 2
    return smooth + X[:, 4] + 0.3 * noise


CUTS = np.quantile(score(made_features(100_000, 0), 1), [0.2, 0.4, 0.6, 0.8])


def made(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows in five ranks of equal shares; the same for the same seed and number."""
    X = made_features(n, [seed, 0])
    return X, np.searchsorted(CUTS, score(X, [seed, 1]))


class Peak:
    """The most memory of its own that this process holds within the context, in MB."""

    def __enter__(self) -> "Peak":
        self.megabytes, self._over = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            here = resident("RssAnon") + resident("RssShmem")
            self.megabytes = max(self.megabytes, here)
            if self._over.wait(0.01):
                return


# What is run in a process of its own: (rows, labels, options) -> (predict, facts)


def ours(X, y, method="svorim", **options):
    """Our fit; `facts` are how it ended."""
    fit = fit_of(method)
    model = fit(X, y, tol=1e-3, **{"n_threads": 1, **options})
    return model.predict, facts(model.convergence)


def facts(c) -> dict:
    parts = getattr(c, "parts", ()) or (c,)
    return {
        "gap": float(max(np.max(part.rel_gap) for part in parts)),
        "steps": int(np.sum(c.n_iter)),
        "status": c.status.value,
    }


def nystroem(X, y, C=1.0, then="LogisticRegression"):
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    last = (LinearSVC if then == "LinearSVC" else LogisticRegression)(C=C)
    features = Nystroem(gamma=GAMMA, n_components=300, random_state=0)
    last.fit(features.fit_transform(X), y)
    return lambda rows: last.predict(features.transform(rows)), {}


def linear_svc(X, y, C=1.0):
    from sklearn.svm import LinearSVC

    return LinearSVC(C=C).fit(X, y).predict, {}


def boosting(X, y):
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=0).fit(X, y).predict, {}


JOBS = {f.__name__: f for f in (ours, nystroem, linear_svc, boosting)}


def job(name: str, n: int, on_disk: bool = False, **options) -> tuple[float, dict]:
    """Run one of JOBS here, on made rows: its seconds, and what the tables print."""
    with tempfile.TemporaryDirectory() as folder:
        X, y = rows_on_disk(Path(folder), n) if on_disk else made(n, 0)
        warnings.simplefilter(
            "ignore", ordinal.exceptions.ConvergenceWarning
        )  # tables say it
        JOBS[name](*made(2000, 2), **options)  # what is begun once is not timed
        np.ones(_TOUCHED // 8)  # nor what a virtual machine takes to fetch its memory
        with Peak() as peak:
            cpu, clock = time.process_time(), time.perf_counter()
            predict, found = JOBS[name](X, y, **options)
            cpu, clock = time.process_time() - cpu, time.perf_counter() - clock
        rest, truth = made(TEST, 1)
        off = np.abs(predict(rest) - truth)
    found |= {"clock": clock, "MB": peak.megabytes}
    return cpu, found | {"MAE": float(off.mean()), "wrong": float((off > 0).mean())}


def rows_on_disk(folder: Path, n: int) -> tuple[np.memmap, np.ndarray]:
    """Made rows in a file, written a million at a time."""
    path, y = folder / "rows", np.empty(n, np.int8)
    with path.open("wb") as file:
        for number, start in enumerate(range(0, n, 1_000_000)):
            X, ranks = made(min(1_000_000, n - start), 100 + number)
            file.write(X.tobytes())
            y[start : start + len(X)] = ranks
    return np.memmap(path, np.float32, "r", shape=(n, D)), y


def print_fits(args, title: str, labels, cases, ours: str = "ours") -> None:
    """A row for each case (labels, name of the job, number of rows, options)."""
    columns = f"{ours}:7.2f", "clock:7.2f", "MB:5.0f", *COLUMNS
    table = Table(args, title, *labels, *columns)
    names = [name.split(":")[0] for name in columns[1:]]
    for label, name, n, options in cases:
        seconds, found = limited(args.limit, partial(job, name, n, **options))
        seconds = "stopped" if found is None else seconds
        table.row(*label, seconds, *(found and found.get(name) for name in names))


def made_rows(args) -> None:
    cases = {
        "svorim": {"cache_mb": 1300},
        "svorim, 2 threads": {"n_threads": 2, "cache_mb": 1300},
        "svorim, cache_mb 200": {"cache_mb": 200},
        "npsvor": {"method": "npsvor", "cache_mb": 1300},
    }
    print_fits(
        args, f"A million made rows x {D}, 5 ranks, 300 basis rows, gamma {GAMMA}",
        ("fit:24", "C:4g"),
        [
            ((name, C), "ours", MILLION, {"basis": 300, "gamma": GAMMA, "C": C} | given)
            for (name, given), C in product(cases.items(), (1.0, 100.0))
        ],
    )  # fmt: skip


def peers(args) -> None:
    print_fits(
        args, "A million made rows by scikit-learn", ("fit:24",),
        [
            *[
                ((name,), "nystroem", MILLION, {"then": name})
                for name in ("LogisticRegression", "LinearSVC")
            ],
            (("HistGradientBoosting",), "boosting", MILLION, {}),
        ],
        "CPU s",
    )  # fmt: skip


def linear(args) -> None:
    jobs = ("svorim", "ours", {"kernel": "linear"}), ("LinearSVC", "linear_svc", {})
    print_fits(
        args, f"Linear kernel, made rows x {D}", ("n:7d", "fit:10", "C:4g"),
        [
            ((n, name, C), job, n, {"C": C} | options)
            for n, C in product((200_000, MILLION), (1.0, 100.0))
            for name, job, options in jobs
        ],
    )  # fmt: skip


def rows(args) -> None:
    given = {"basis": 300, "gamma": GAMMA, "C": 1.0}
    on_disk = {"on_disk": True, "cache_mb": 200}
    print_fits(
        args, "By the number of rows, SVORIM, 300 basis rows, C 1", ("n:8d", "in:6"),
        [
            ((100_000, "memory"), "ours", 100_000, given),
            ((MILLION, "memory"), "ours", MILLION, given),
            ((10 * MILLION, "file"), "ours", 10 * MILLION, given | on_disk),
        ],
    )  # fmt: skip


def workers(args) -> None:
    table = Table(
        args, f"Workers of dask in processes, {MILLION} made rows, 300 basis rows, C 1",
        "workers:7d", "ours:6.2f", "gap:8.1e", "steps:5d", "same bytes:10",
    )  # fmt: skip
    found = {count: on_dask(MILLION, count) for count in (1, 2)}
    for count, (clock, facts, model) in found.items():
        same = str(model == found[1][2])
        table.row(count, clock, facts["gap"], facts["steps"], same)


def on_dask(n: int, count: int) -> tuple[float, dict, bytes]:
    """A fit of rows that lie at so many workers, by the clock."""
    import dask.array as da
    from dask import delayed
    from dask.distributed import Client, LocalCluster, wait

    size = n // 16
    blocks = [delayed(made, nout=2)(size, 100 + number) for number in range(16)]
    with LocalCluster(
        n_workers=count, threads_per_worker=1, dashboard_address=None
    ) as cluster, Client(cluster):  # fmt: skip
        X = da.concatenate([da.from_delayed(X, (size, D), "f4") for X, _ in blocks])
        y = da.concatenate([da.from_delayed(y, (size,), "i8") for _, y in blocks])
        X, y = X.persist(), y.persist()
        wait([X, y])
        began = time.perf_counter()
        model = ordinal.fit_svorim(
            X, y, basis=300, gamma=GAMMA, C=1.0, tol=1e-3, cache_mb=1300
        )
        clock = time.perf_counter() - began
    numbers = np.concatenate([model.coef, model.thresholds])
    return clock, facts(model.convergence), numbers.tobytes()


PARTS = {
    "made": made_rows,
    "peers": peers,
    "linear": linear,
    "rows": rows,
    "workers": workers,
}


if __name__ == "__main__":
    options = parser(__doc__, PARTS)
    options.add_argument("--limit", type=float, default=600, help="seconds of a fit")
    run(options.parse_args(), PARTS, ordinal)
