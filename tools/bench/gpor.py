"""GPOR: an evaluation of the evidence with its gradient, and whole fits.

    OPENBLAS_NUM_THREADS=1 python tools/bench/gpor.py --data FOLDER [--only PART ...]

evaluations  Laplace's evidence, and EP's, with gradient, in multiples of the time that
             numpy.linalg.inv takes for the same n: a whole fit divided by the number of
             its evaluations, each of which begins at the posterior of the one before.
             California housing, 5 bins.
binary       r = 2, Laplace, with gradient, beside scikit-learn's
             GaussianProcessClassifier.log_marginal_likelihood, at the same points of
             the kernel and from the same cold start; its likelihood is the logistic.
searches     whole fits to the 1296 training rows of car, 4 ranks, in multiples of
             numpy.linalg.inv: the search for hyperparameters included, RBF and ARD.
fits         whole fits: 1000 rows of Abalone, 10 bins; ARD linear on 12 600 features.
basis        the low-rank posterior up to 100 000 rows, with test errors beside those of
             the whole posterior where it can be had.
large        whole fits to --rows simulated rows of 20 columns on 300 basis rows, with
             the log likelihood of 20 000 other rows.
gpflow       the same by GPflow's SVGP: its ordinal likelihood at thresholds that give
             equal shares, 200 inducing rows, --steps of Adam on batches of 1024 rows;
             and its VGP on 300 of the rows. Needs an environment with gpflow and
             tensorflow-cpu.

`fits` and `basis` have no peer here: the authors' program is in no index.
"""

import time
import warnings
from pathlib import Path

import numpy as np
from _common import (
    Table,
    best_time,
    california,
    exceptions,
    parser,
    resident,
    run,
    table,
    with_basis,
)

import ordinal


def fit(X, y, inference, **options):
    with warnings.catch_warnings():  # of fits that end at max_time
        warnings.simplefilter("ignore", exceptions.ConvergenceWarning)
        options = {"n_threads": 1, **options}
        return ordinal.fit_gpor(X, y, inference=inference, **options)


def evaluations(args):
    table = Table(
        args, "One evaluation of the evidence with its gradient", "n:4", "inference:9",
        "ours:8.4f", "inv:8.4f", "ours/inv:6.2f", "evaluations:6", "max slope:9.1e",
    )  # fmt: skip
    for n in (500, 1000) if args.quick else (500, 1000, 2000):
        X, y, *_ = california(args.data, n)
        K = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(-1)) + np.eye(n)
        inv, *_ = best_time(args.repeat, np.linalg.inv, K)
        for inference in ("laplace", "ep"):
            seconds, _, model = best_time(args.repeat, fit, X, y, inference)
            c = model.convergence
            ours = seconds / c.n_iter
            table.row(n, inference, ours, inv, ours / inv, c.n_iter, c.violation)


def binary(args):
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF

    from ordinal._input.problem import Problem
    from ordinal.gpor.evidence import Evidence, Settings

    table = Table(
        args, "Two ranks, Laplace, beside scikit-learn", "n:4", "ours:8.4f",
        "scikit-learn:8.4f", "theirs/ours:6.1f",
    )  # fmt: skip
    gammas = (0.02, 0.0625, 0.2, 0.6)
    for n in (500, 1000, 2000):
        X, y, *_ = california(args.data, n)
        y = (y > 2).astype(int)
        classifier = GaussianProcessClassifier(RBF(2.0), optimizer=None).fit(X, y)
        evidence = Evidence(
            Problem.from_arrays(X, y), None, Settings("rbf", "laplace", prior="weak")
        )
        theirs, ours = 0.0, 0.0
        for gamma in gammas:
            theta = evidence.hyper.begin.copy()
            theta[0] = np.log(gamma)

            def evaluate(evidence=evidence, theta=theta):
                evidence.state = None
                return evidence.minus(theta)

            ours += best_time(args.repeat, evaluate)[0] / len(gammas)
            theirs += best_time(
                args.repeat, classifier.log_marginal_likelihood,
                [-0.5 * np.log(2 * gamma)], eval_gradient=True,
            )[0] / len(gammas)  # fmt: skip
        table.row(n, ours, theirs, theirs / ours)


def searches(args):
    table_ = Table(
        args, "Whole fits to car", "n:4", "inference:9", "kernel:6", "ours:7.2f",
        "inv:6.3f", "ours/inv:7.1f", "evaluations:6", "log evidence:12.5f",
    )  # fmt: skip
    X, y = table(args.data, "car")
    stored = np.load(Path(args.data) / "splits/car/orreview_30holdout.npz")
    rows = stored["train_idx"][0][:: 3 if args.quick else 1]
    X, y = (X[rows] - X[rows].mean(axis=0)) / X[rows].std(axis=0), y[rows]
    n = len(y)
    K = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(-1)) + np.eye(n)
    inv, *_ = best_time(args.repeat, np.linalg.inv, K)
    for inference in ("ep", "laplace"):
        for kernel in ("rbf", "ard"):
            seconds, _, model = best_time(1, fit, X, y, inference, kernel=kernel)
            table_.row(
                n, inference, kernel, seconds, inv, seconds / inv,
                model.convergence.n_iter, model.log_evidence,
            )  # fmt: skip


def fits(args):
    table = Table(args, "Whole fits", *COLUMNS)
    n = 300 if args.quick else 1000
    X, y, X_test, y_test = abalone(args.data, n)
    for inference in ("laplace", "ep"):
        report(table, args, f"Abalone, {n} rows", inference, X, y, X_test, y_test)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(104, 12_600))
    score = rng.normal(size=104)
    X[:, :40] += score[:, None]  # forty genes tell of it, each a little
    X = (X - X[:52].mean(axis=0)) / X[:52].std(axis=0)
    y = np.searchsorted(np.quantile(score, (0.5, 0.88)), score)
    for inference in ("laplace",) if args.quick else ("laplace", "ep"):
        model = report(
            table, args, "52 rows x 12 600, ARD", inference, X[:52], y[:52], X[52:],
            y[52:], kernel="ard_linear",
        )  # fmt: skip
        top = np.argsort(-model.relevance())[:40]
        table.note(f"{(top < 40).sum()} of the 40 telling features are at the top")


def abalone(folder, n):
    """n training rows, and the test rows, of the GPOR paper's first partition."""
    X, _ = table(folder, "abalone")
    stored = np.load(Path(folder) / "splits/abalone/chu_equallength.npz")
    train, test, y = (stored[k] for k in ("train_idx_10", "test_idx_10", "y10"))
    train, test = train[0][:n], test[0]
    X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    return X[train], y[train], X[test], y[test]


COLUMNS = (
    "what:24", "inference:9", "ours:6.2f", "evaluations:6", "status:9", "MZE:6.3f",
    "MAE:6.3f",
)  # fmt: skip


def report(table, args, what, inference, X, y, X_test, y_test, **options):
    """Fit once, or --repeat times with --quick, and print the row; the model."""
    repeat = args.repeat if args.quick else 1
    seconds, _, model = best_time(repeat, fit, X, y, inference, **options)
    c, miss = model.convergence, np.abs(model.predict(X_test) - y_test)
    table.row(
        what, inference, seconds, c.n_iter, c.status.value, (miss > 0).mean(),
        miss.mean(),
    )  # fmt: skip
    return model


def basis(args):
    table = Table(args, "The low-rank posterior", *COLUMNS)
    X, y, X_test, y_test = california(args.data, 18_000)
    X_test, y_test = X_test[:2000], y_test[:2000]
    cases = [(1500, None), (1500, 200), (18_000, 200), (100_000, 200)]
    for n, m in [(3000, 100)] if args.quick else cases:
        rows = np.arange(n) % len(X)
        noise = np.random.default_rng(0).normal(size=(n, X.shape[1]))
        Z = X[rows] + 1e-3 * noise * (np.arange(n) >= len(X))[:, None]
        report(
            table, args, f"{n} rows, basis {m}", "laplace", Z, y[rows], X_test, y_test,
            max_time=100, **with_basis(ordinal.fit_gpor, m),
        )  # fmt: skip
    table.note(f"peak memory {resident('VmHWM'):.0f} MB")


def simulated(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n rows of 20 columns and their ranks, five of about equal shares."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20))
    score = np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + np.tanh(X[:, 3])
    score += 0.5 * X[:, 4] + 0.5 * rng.normal(size=n)
    return X, np.searchsorted((-1.10, -0.33, 0.33, 1.10), score)


def of_large(args) -> Table:
    return Table(
        args, f"{args.rows} rows of 20 columns", "method:28", "ours:6.1f",
        "evaluations:6", "log evidence:12.2f", "log likelihood:8.4f", "wrong:6.4f",
    )  # fmt: skip


def large(args):
    table = of_large(args)
    X, y = simulated(args.rows, 0)
    X_test, y_test = simulated(20_000, 1)
    for inference in args.inference:
        seconds, _, model = best_time(1, fit, X, y, inference, basis=300, cache_mb=3000)
        table.row(
            inference, seconds, model.convergence.n_iter, model.log_evidence,
            model.score_samples(X_test, y_test).mean(),
            (model.predict(X_test) != y_test).mean(),
        )  # fmt: skip


def gpflow(args):
    import gpflow
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    table = of_large(args)
    X, y = simulated(args.rows, 0)
    X_test, y_test = simulated(20_000, 1)
    cuts = np.sqrt(2) * np.array([-0.842, -0.253, 0.253, 0.842])  # Gaussian quintiles
    # Ranks 1 to 5 of 0 to 6: erf(inf), which the outer two need, is NaN in TensorFlow
    # 2.21.
    edges = np.concatenate([[-1e3], cuts, [1e3]])

    def pair(rows):
        return X[rows], y[rows, None] + 1.0

    def parts():
        kernel = gpflow.kernels.SquaredExponential(lengthscales=np.sqrt(20.0))
        return kernel, gpflow.likelihoods.Ordinal(edges)

    def report(name, began, steps, model):
        seconds = time.process_time() - began
        found = model.predict_log_density((X_test, y_test[:, None] + 1.0))
        median = np.searchsorted(cuts, np.ravel(model.predict_f(X_test)[0]))
        table.row(name, seconds, steps, None, np.mean(found), (median != y_test).mean())

    began = time.process_time()
    model = gpflow.models.VGP(pair(slice(300)), *parts())
    options = {"maxiter": 1000}
    found = gpflow.optimizers.Scipy().minimize(
        model.training_loss, model.trainable_variables, options=options
    )
    report("VGP, 300 rows", began, int(found.nfev), model)
    began = time.process_time()
    model = gpflow.models.SVGP(*parts(), X[:200].copy(), num_data=len(X))
    batches = tf.data.Dataset.from_tensor_slices(pair(slice(None)))
    batches = iter(batches.repeat().shuffle(10_000, seed=0).batch(1024))
    loss = model.training_loss_closure(batches, compile=False)
    adam, variables = tf.optimizers.Adam(0.01), model.trainable_variables

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            value = loss()
        adam.apply_gradients(
            zip(tape.gradient(value, variables), variables, strict=True)
        )

    for steps in range(1, args.steps + 1):
        step()
        if steps in (args.steps // 4, args.steps):
            report("SVGP, 200 inducing rows", began, steps, model)


PARTS = {
    f.__name__: f for f in (evaluations, binary, searches, fits, basis, large, gpflow)
}
QUICK = ("evaluations", "fits", "basis")


def main():
    arguments = parser(__doc__, PARTS)
    arguments.add_argument("--rows", type=int, default=100_000, help="of `large`")
    arguments.add_argument("--steps", type=int, default=4000, help="of Adam")
    arguments.add_argument("--inference", nargs="+", default=["laplace", "ep"])
    run(arguments.parse_args(), PARTS, QUICK, ordinal)


if __name__ == "__main__":
    main()
