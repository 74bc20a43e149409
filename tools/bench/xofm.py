"""XOFM: loss and gradient, whole fits, and the pair updates of SGD, beside PyTorch.

    OPENBLAS_NUM_THREADS=1 python tools/bench/xofm.py [--only PART ...]

fit       whole fits up to 100 000 rows, with their peak memory; before what needs more.
million   whole fits of a million rows of two kinds at the defaults, on one and two
          threads, and without the samples that such a fit begins with; `clock` is what
          passes, `ours` CPU time.
gradient  one loss and gradient at d = 20, 10 intervals, 8 factors, 5 ranks, by number
          of rows; time over n log n should not grow.
sgd       pair updates a second at d = 10, 4 factors.
peer      the same model in PyTorch on explicit pairs, one thread, at sizes where the
          pairs still fit: seconds and values of loss and gradient.

We know of no public program that fits XOFM, so that `fit`, `gradient` and `sgd` say
what a size costs, and `peer` writes it down in PyTorch; `ebm.py` has another model that
explains itself.

The data are drawn: a smooth score of all features and a few pairs, cut in 5 ranks.
"""

import time
import warnings

import numpy as np
from _common import Table, best_time, exceptions, parser, resident, run
from scale import made

import ordinal
from ordinal.xofm import fit as xofm_fit


def sample(n, d, r=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d))
    score = np.sin(2 * X).sum(axis=1) + X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]
    score += 0.3 * rng.standard_normal(n)
    return X, np.searchsorted(np.quantile(score, np.arange(1, r) / r), score)


def objective(X, y, n_intervals, n_factors):
    """The private object whose `at` is one loss and gradient, and a point W."""
    from ordinal._input.problem import Problem
    from ordinal.xofm.layout import Layout, make_knots
    from ordinal.xofm.objective import (
        Bounds,
        LocatedRows,
        Objective,
        PairLoss,
        initial_pieces,
        packed,
    )

    order = np.argsort(y, kind="stable")
    problem = Problem.from_arrays(X[order], y[order])
    n, d = problem.X.shape
    weight, is_number = np.ones(n), [True] * d
    knots = make_knots(problem.X, weight, is_number, [n_intervals] * d, "equal")
    layout = Layout.from_knots(knots, [None] * d, np.zeros(d, bool))
    rows = LocatedRows(*layout.locate(problem.X), problem.rank, weight)
    bounds = Bounds.from_signs(layout, np.zeros(d, np.int8))
    rng = np.random.default_rng(1)
    penalty = packed(np.full(1, 1e-3), np.full((1, n_factors), 1e-3))[0]
    objective = Objective(layout, PairLoss(rows, 1.0, 1), bounds, penalty)
    W = initial_pieces(objective, n_factors, 0.1, rng)
    W[:, 0] = 0.1 * rng.standard_normal(len(W))
    return objective, W


def gradient(args):
    table = Table(
        args, "One loss and gradient", "n:7", "ours:8.3f", "1e9 s / (n log2 n):6.1f"
    )
    for n in (10_000, 100_000, 300_000, 1_000_000):
        X, y = sample(n, 20)
        f, W = objective(X, y, 10, 8)
        seconds, *_ = best_time(args.repeat, f.at, W)
        table.row(n, seconds, 1e9 * seconds / (n * np.log2(n)))


def fit(args):
    table = Table(
        args, "Whole fits of 20 features, 10 intervals, 8 factors", "n:7", "ours:7.2f",
        "steps:5", "status:9", "accuracy:6.3f", "MAE:6.3f", "peak MB:6.0f",
        "MB before:6.0f",
    )  # fmt: skip
    X_test, y_test = sample(20_000, 20, seed=1)
    for n in (1000, 10_000, 100_000):
        X, y = sample(n, 20)
        before = resident("VmRSS")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", exceptions.ConvergenceWarning)
            seconds, _, model = best_time(
                args.repeat if args.quick else 1, ordinal.fit_xofm, X, y,
                n_intervals=10, n_factors=8, n_threads=1,
                max_iter=30 if args.quick else None,
            )  # fmt: skip
        c, miss = model.convergence, np.abs(model.predict(X_test) - y_test)
        table.row(
            n, seconds, c.n_iter, c.status.value, (miss == 0).mean(), miss.mean(),
            resident("VmHWM"), before,
        )  # fmt: skip


def million(args):
    n = 100_000 if args.quick else 1_000_000
    table = Table(
        args, f"Whole fits of {n} rows of 20 features", "data:8", "threads:7",
        "samples:7", "ours:6.2f", "clock:6.2f", "steps:5", "objective:10.7f",
        "violation:9.1e",
    )  # fmt: skip
    for name, (X, y) in {"uniform": sample(n, 20), "normal": made(n, 0)}.items():
        for threads, samples in ((1, True), (2, True), (1, False), (2, False)):
            least = xofm_fit._LEAST
            xofm_fit._LEAST = least if samples else n
            cpu, clock = time.process_time(), time.perf_counter()
            c = ordinal.fit_xofm(X, y, n_threads=threads).convergence
            cpu, clock = time.process_time() - cpu, time.perf_counter() - clock
            xofm_fit._LEAST = least
            shown = "yes" if samples else "no"
            table.row(
                name, threads, shown, cpu, clock, c.n_iter, c.primal, c.violation
            )  # fmt: skip


def sgd(args):
    table = Table(
        args, "Steps of SGD, 20 000 rows of 10 features", "batch:5", "ours:6.3f",
        "million pairs a second:6.2f",
    )  # fmt: skip
    X, y = sample(20_000, 10)
    for batch in (1, 16, 64, 256):
        n_epochs = 4e6 / 1.6e8
        seconds, _, model = best_time(
            args.repeat, ordinal.fit_xofm, X, y, solver="sgd", n_factors=4,
            batch_size=batch, n_epochs=n_epochs, tol=1e3, n_threads=1,
        )  # fmt: skip
        table.row(batch, seconds, model.convergence.n_iter / seconds / 1e6)


def encoded(layout, rows):
    """Phi of every row, (n, P), which the package never makes."""
    n, d = rows.node.shape
    Phi = np.zeros((n, layout.n_pieces))
    for j in range(d):
        first = layout.first[j]
        at = rows.node[:, j] - layout.node[j]
        piece = np.arange(layout.first[j + 1] - first - 1)
        here = np.where(piece == at[:, None], rows.share[:, [j]], 0.0)
        Phi[:, first + piece] = np.where(piece < at[:, None], 1.0, here)
    return Phi


def peer(args):
    try:
        import torch
    except ImportError:
        return print("needs torch: pip install torch")
    torch.set_num_threads(1)
    table = Table(
        args, f"Beside torch {torch.__version__}", "n:6", "ours:8.5f", "pairs:9",
        "torch:8.4f", "torch/ours:6.0f", "rel. difference:8.1e",
    )  # fmt: skip
    for n in (1000, 2000, 4000):
        X, y = sample(n, 10)
        f, W = objective(X, y, 10, 4)
        layout, rows = f.layout, f.loss.rows
        Phi = torch.tensor(encoded(layout, rows))
        rank = torch.tensor(rows.rank.astype(np.int64))
        high, low = torch.nonzero(rank[:, None] > rank[None, :], as_tuple=True)
        feature = np.repeat(np.arange(X.shape[1]), np.diff(layout.first))
        of_feature = torch.tensor(np.eye(X.shape[1])[feature])  # (P, d)
        u = torch.tensor(W[:, 0], requires_grad=True)
        V = torch.tensor(W[:, 1:5].copy(), requires_grad=True)

        def theirs(Phi=Phi, high=high, low=low, of_feature=of_feature, u=u, V=V):
            u.grad = V.grad = None
            S = Phi @ V
            own = torch.einsum("np,pj,pf->njf", Phi, of_feature, V)
            U = Phi @ u + 0.5 * ((S**2).sum(1) - (own**2).sum((1, 2)))
            short = torch.clamp(1.0 - U[high] + U[low], min=0)
            value = 0.5 * (short**2).mean() + 1e-3 * ((u**2).sum() + (V**2).sum())
            value.backward()
            return value.item()

        a, _, value = best_time(args.repeat, theirs)
        b, _, (ours, dW) = best_time(args.repeat, f.at, W)
        off = max(
            abs(value - ours) / ours,
            float(np.abs(V.grad.numpy() - dW[:, 1:5]).max() / np.abs(dW).max()),
        )
        table.row(n, b, len(high), a, a / b, off)
    return None


PARTS = {f.__name__: f for f in (fit, million, gradient, sgd, peer)}
QUICK = ("fit", "sgd")


def main():
    run(parser(__doc__, PARTS).parse_args(), PARTS, QUICK, ordinal)


if __name__ == "__main__":
    main()
