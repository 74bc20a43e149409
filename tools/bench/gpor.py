"""GPOR: an evaluation of the evidence with its gradient, and whole fits.

    OPENBLAS_NUM_THREADS=1 python tools/bench/gpor.py --data FOLDER [--only PART ...]

evaluations  Laplace's evidence, and EP's, with gradient, in multiples of the time that
             numpy.linalg.inv takes for the same n: warm is the mean over the points a
             search visits, each from the posterior of the last, as in a fit; cold is
             the first of them. California housing, 5 bins.
binary       r = 2, Laplace, with gradient, beside scikit-learn's
             GaussianProcessClassifier.log_marginal_likelihood, at the same points of
             the kernel and from the same cold start; its likelihood is the logistic.
fits         whole fits: 1000 rows of Abalone, 10 bins; ARD linear on 12 600 features.
inducing     the low-rank posterior up to 100 000 rows, with test errors beside those of
             the whole posterior where it can be had.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import sklearn
from _common import best_time, california, header, parser, resident, table
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF

import ordinal
from ordinal import gpor
from ordinal._input.problem import Problem
from ordinal._model.monitor import Monitor
from ordinal._numerics.lbfgs import minimize


def search(X, y, inference, **options):
    """The private object whose `evaluate` is one evaluation."""
    arguments = {"kernel": "rbf", "objective": "evidence", "prior": "weak"}
    arguments |= {"start": None, "inducing": None, "n_threads": 1}
    problem = Problem.from_arrays(X, y)
    return gpor._prepare(problem, inference=inference, **(arguments | options))


def visited(s):
    """CPU seconds of every evaluation of a search, and how it ended."""
    seconds = []

    def timed(theta):
        began = time.process_time()
        out = s._minus(theta)
        seconds.append(time.process_time() - began)
        return out

    found = minimize(
        timed, s.begin, tol=1e-3, max_iter=200, monitor=Monitor("bench", 1e-3),
        max_step=gpor._MAX_STEP,
    )  # fmt: skip
    return np.array(seconds), found


def evaluations(args):
    print("   n inference  inv (s)  cold/inv  warm/inv  evaluations  max slope")
    for n in (500, 1000, 2000):
        X, y, *_ = california(args.data, n)
        K = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(-1)) + np.eye(n)
        inv, *_ = best_time(args.repeat, np.linalg.inv, K)
        for inference in ("laplace", "ep"):
            seconds, found = visited(search(X, y, inference))
            print(
                f"{n:4} {inference:9}  {inv:7.4f} {seconds[0] / inv:9.2f} "
                f"{seconds[1:].mean() / inv:9.2f} {found.n_eval:12} "
                f"{found.violation:10.1e}"
            )


def binary(args):
    print("   n  scikit-learn (s)  ours (s)  ratio")
    for n in (500, 1000, 2000):
        X, y, *_ = california(args.data, n)
        y = (y > 2).astype(int)
        s = search(X, y, "laplace")
        classifier = GaussianProcessClassifier(RBF(2.0), optimizer=None).fit(X, y)
        theirs, ours = 0.0, 0.0
        for log_gamma in np.log([0.02, 0.0625, 0.2, 0.6]):
            theta = s.begin.copy()
            theta[0] = log_gamma

            def evaluate(s=s, theta=theta):
                s.state = None
                return s._minus(theta)

            log_scale = [-0.5 * np.log(2 * np.exp(log_gamma))]
            call = classifier.log_marginal_likelihood
            theirs += best_time(args.repeat, call, log_scale, eval_gradient=True)[0]
            ours += best_time(args.repeat, evaluate)[0]
        print(f"{n:4} {theirs / 4:17.3f} {ours / 4:9.3f} {theirs / ours:6.1f}")


def fits(args):
    print(
        "what                     inference  CPU s  evaluations  status     MZE    MAE"
    )
    X, _ = table(args.data, "abalone")
    stored = np.load(Path(args.data) / "splits/abalone/chu_equallength.npz")
    train, test, y = (stored[k] for k in ("train_idx_10", "test_idx_10", "y10"))
    X = (X - X[train[0]].mean(axis=0)) / X[train[0]].std(axis=0)
    for inference in ("laplace", "ep"):
        began = time.process_time()
        model = ordinal.fit_gpor(X[train[0]], y[train[0]], inference=inference)
        seconds = time.process_time() - began
        miss = np.abs(model.predict(X[test[0]]) - y[test[0]])
        report("Abalone, 1000 rows", inference, seconds, model, miss)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(104, 12_600))
    score = rng.normal(size=104)
    X[:, :40] += score[:, None]  # forty genes tell of it, each a little
    X = (X - X[:52].mean(axis=0)) / X[:52].std(axis=0)
    y = np.searchsorted(np.quantile(score, (0.5, 0.88)), score)
    for inference in ("laplace", "ep"):
        began = time.process_time()
        model = ordinal.fit_gpor(
            X[:52], y[:52], kernel="ard_linear", inference=inference
        )
        seconds = time.process_time() - began
        miss = np.abs(model.predict(X[52:]) - y[52:])
        report("52 rows x 12 600, ARD", inference, seconds, model, miss)
        top = np.argsort(-model.relevance())[:40]
        print(f"  {(top < 40).sum()} of the 40 telling features are the most relevant")


COLUMNS = (
    f"{'what':24} inference  CPU s  evaluations  {'status':9} {'MZE':>6} {'MAE':>6}"
)


def report(what, inference, seconds, model, miss):
    c = model.convergence
    print(
        f"{what:24} {inference:9} {seconds:6.1f} {c.n_iter:12}  {c.status.value:9} "
        f"{(miss > 0).mean():6.3f} {miss.mean():6.3f}"
    )


def inducing(args):
    print(
        "what                     inference  CPU s  evaluations  status     MZE    MAE"
    )
    X, y, X_test, y_test = california(args.data, 18_000)
    X_test, y_test = X_test[:2000], y_test[:2000]
    cases = [(1500, None), (1500, 200), (18_000, 200), (100_000, 200)]
    for n, m in cases:
        rows = np.arange(n) % len(X)
        noise = np.random.default_rng(0).normal(size=(n, X.shape[1]))
        Z = X[rows] + 1e-3 * noise * (np.arange(n) >= len(X))[:, None]
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ordinal.ConvergenceWarning)  # printed
            model = ordinal.fit_gpor(
                Z, y[rows], inference="laplace", inducing=m, max_time=100
            )
        seconds = time.process_time() - began
        miss = np.abs(model.predict(X_test) - y_test)
        report(f"{n} rows, inducing {m}", "laplace", seconds, model, miss)
    print(f"peak memory {resident('VmHWM'):.0f} MB")


PARTS = {f.__name__: f for f in (evaluations, binary, fits, inducing)}


def main():
    out = parser(__doc__)
    out.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    args = out.parse_args()
    print(header(ordinal, sklearn))
    for name in args.only:
        print(f"\n## {name}")
        PARTS[name](args)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
