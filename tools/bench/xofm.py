"""XOFM: loss and gradient, whole fits, and the pair updates of SGD, beside PyTorch.

    OPENBLAS_NUM_THREADS=1 python tools/bench/xofm.py [--only PART ...]

fit       a whole fit at 100 000 rows, with its peak memory; before what needs more.
gradient  one loss and gradient at d = 20, 10 intervals, 8 factors, 5 ranks, by number
          of rows; time over n log n should not grow.
sgd       pair updates a second at d = 10, 4 factors.
peer      the same model in PyTorch on explicit pairs, one thread, at sizes where the
          pairs still fit: seconds and values of loss and gradient.

The data are drawn: a smooth score of all features and a few pairs, cut in 5 ranks.
"""

import argparse
import sys
import time

import numpy as np
from _common import best_time, header, resident

import ordinal
from ordinal._input.problem import Problem
from ordinal._pieces.layout import Layout, make_knots
from ordinal._pieces.objective import (
    Bounds,
    Objective,
    PairLoss,
    Rows,
    initial_pieces,
)


def sample(n, d, r=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d))
    score = np.sin(2 * X).sum(axis=1) + X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]
    score += 0.3 * rng.standard_normal(n)
    return X, np.searchsorted(np.quantile(score, np.arange(1, r) / r), score)


def objective(X, y, n_intervals, n_factors):
    """The private object whose `at` is one loss and gradient, and a point W."""
    order = np.argsort(y, kind="stable")
    problem = Problem.from_arrays(X[order], y[order])
    n, d = problem.X.shape
    weight, is_number = np.ones(n), [True] * d
    knots = make_knots(problem.X, weight, is_number, [n_intervals] * d, "equal")
    layout = Layout.of(knots, [None] * d, np.zeros(d, bool))
    rows = Rows(*layout.locate(problem.X), problem.rank, weight)
    bounds = Bounds.of(layout, np.zeros(d, np.int8))
    rng = np.random.default_rng(1)
    W = initial_pieces(layout, rows, bounds, n_factors, 0.1, rng)
    W[:, 0] = 0.1 * rng.standard_normal(len(W))
    penalty = np.full(W.shape[1], 1e-3)
    return Objective(layout, PairLoss(rows, 1.0, 1), bounds, penalty), W


def gradient(args):
    print("      n  seconds  1e9 s / (n log2 n)")
    for n in (10_000, 100_000, 300_000, 1_000_000):
        X, y = sample(n, 20)
        f, W = objective(X, y, 10, 8)
        seconds, *_ = best_time(args.repeat, f.at, W)
        print(f"{n:7} {seconds:8.3f} {1e9 * seconds / (n * np.log2(n)):19.1f}")


def fit(args):
    X, y = sample(100_000, 20)
    X_test, y_test = sample(20_000, 20, seed=1)
    before = resident("VmRSS")
    began = time.process_time()
    model = ordinal.fit_xofm(X, y, n_intervals=10, n_factors=8, n_threads=1)
    seconds, c = time.process_time() - began, model.convergence
    miss = np.abs(model.predict(X_test) - y_test)
    print(
        f"100 000 x 20: {seconds:.1f} s, {c.n_iter} steps, {c.status.value}; peak "
        f"{resident('VmHWM'):.0f} MB, {before:.0f} before; accuracy "
        f"{(miss == 0).mean():.3f}, MAE {miss.mean():.3f}"
    )


def sgd(args):
    X, y = sample(20_000, 10)
    for batch in (1, 16, 64, 256):
        n_epochs = 4e6 / 1.6e8
        seconds, _, model = best_time(
            args.repeat, ordinal.fit_xofm, X, y, solver="sgd", n_factors=4,
            batch_size=batch, n_epochs=n_epochs, tol=1e3, n_threads=1,
        )  # fmt: skip
        pairs = model.convergence.n_iter
        print(f"batch {batch:4}: {pairs / seconds / 1e6:5.2f} million pairs a second")


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
    print(f"torch {torch.__version__}")
    print("     n     pairs  torch (s)  ours (s)  ratio  rel. difference")
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
        print(f"{n:6} {len(high):9} {a:10.4f} {b:9.5f} {a / b:6.0f} {off:16.1e}")
    return None


PARTS = {f.__name__: f for f in (fit, gradient, sgd, peer)}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=3, help="the least time counts")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    args = parser.parse_args()
    print(header(ordinal))
    for name in args.only:
        print(f"\n## {name}")
        PARTS[name](args)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
