"""Fits beside other implementations of the same problem, one thread.

    OPENBLAS_NUM_THREADS=1 python tools/bench/peers.py --data FOLDER [--only PART ...]

  svor    SVORIM, SVOREX and REDSVM on California housing, beside skordinal, which holds
          the C code of the authors and libsvm-rank
  svm     NPSVOR, one-vs-one SVC and SVR on the same rows, beside scikit-learn (LIBSVM)
          and, for SVC, beside scikit-learn-intelex (oneDAL)
  linear  the proportional odds model with standard errors, 100 000 rows of 10 features,
          beside packages of R and Python; then 1000 ranks of 2000 rows, and a rank
          per row beside `orm`: of 4000 rows, because its cost is linear in the ranks
          only since rms 8.0
  ranks   a rank per row: our seconds beside the goals, memory and model files
  ratio   stopping ratio and adjacent categories models beside `vglm` of R

Packages of Python come with the extra `[bench]`; those of R run where Rscript finds
them (r-cran-mass, r-cran-ordinal, r-cran-vgam, r-cran-rms) and are timed inside R.
Seconds are CPU seconds of the quickest of --repeat runs. A peer that takes longer than
--limit seconds is stopped, and the ratio is then a bound.

`rel_gap` is ours, and `excess` by how much the objective of a peer of SVOR lies above
the optimum of the kernel that it solved for: the authors' code adds 1e-3 to the
diagonal, and libsvm-rank has a free intercept. `below` is by how much a log likelihood
lies below the best one, `differs` the largest difference of an estimate from ours, in
standard errors, and `errors` the largest relative one of the standard errors. All are
computed by us. mord minimises another loss; it and skordinal's POM have no standard
errors.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from io import BytesIO
from itertools import product
from pathlib import Path

import numpy as np
from _common import Table, best_time, california, fit_of, limited, parser, resident, run
from own import scored
from scipy.special import expit

import ordinal

GAMMA = 0.5


def shown(theirs: float, ours: float, ended: bool) -> tuple:
    """Return the seconds of a peer and their ratio to ours, as bounds if it did not."""
    if ended:
        return theirs, theirs / ours
    return f">{theirs:.0f}", f">{theirs / ours:.0f}"


def svor(args) -> None:
    table = Table(
        args, f"Against skordinal, gamma {GAMMA:g}, 5 ranks, tol 1e-3", "method:7",
        "C:4g", "n:5", "ours:6.3f", "theirs:8.1f", "theirs/ours:8.0f", "rel_gap:8.1e",
        "excess:8.1e",
    )  # fmt: skip
    options = {"gamma": GAMMA, "n_threads": 1}
    for name, C, n in product(
        ("svorim", "svorex", "redsvm"), (100.0, 1000.0), (2000, 4000)
    ):
        X, y, *_ = california(args.data, n)
        fit = fit_of(name)
        ours, _, model = best_time(args.repeat, fit, X, y, C=C, **options)
        theirs, found = limited(args.limit, of_skordinal, name, X, y, C)
        excess = None if found is None else above_optimum(name, X, y, C, *found)
        table.row(
            name, C, n, ours, *shown(theirs, ours, found is not None),
            np.max(model.convergence.rel_gap), excess,
        )  # fmt: skip


def of_skordinal(method, X, y, C):
    """(CPU seconds of the fit, (scores, coefficients of the rows, thresholds))."""
    from skordinal.classifiers import REDSVM, SVOR  # not in the memory of our own fits

    if method == "redsvm":
        peer = REDSVM(C=C, gamma=GAMMA, cache_size=1000)
    else:
        constraints = "implicit" if method == "svorim" else "explicit"
        peer = SVOR(C=C, gamma=GAMMA, constraints=constraints)
    start = time.process_time()
    peer.fit(X, y)
    seconds = time.process_time() - start
    K = ordinal.kernels.RBF(GAMMA)(X, X)
    if method != "redsvm":
        beta = np.array(peer.model_["alpha"])
        return seconds, (K @ beta, beta, peer.thresholds_)
    support = np.array([[x["value"] for x in row] for row in peer.model_["SV"]])
    where = {row.tobytes(): i for i, row in enumerate(X)}
    beta = np.zeros(len(X))
    for row, value in zip(support, peer.model_["sv_coef"][0], strict=True):
        beta[where[row.tobytes()]] += value
    f = K @ beta
    intercept = (peer.predict_projection(X) - f).mean()
    return seconds, (f, beta, peer.thresholds_ - intercept)


def above_optimum(method, X, y, C, f, beta, b) -> float:
    """Relative excess of a peer's (P) over the optimum, on the kernel it solved for."""
    ridge = 0.0 if method == "redsvm" else 1e-3
    f = f + ridge * beta
    rank, T = y - y.min(), b.size
    s = np.where(rank > np.arange(T)[:, None], 1.0, -1.0)
    margins = np.ones(s.shape, bool)
    if method == "svorex":
        j = np.arange(T)[:, None]
        margins = (rank == j) | (rank == j + 1)
    slack = np.maximum(0, 1 - s * (f - b[:, None]))
    value = 0.5 * beta @ f + C * slack[margins].sum()
    if method == "redsvm":
        value += 0.5 * ((b - b.mean()) ** 2).sum()
    K = ordinal.kernels.RBF(GAMMA)(X, X) + ridge * np.eye(len(X))
    exact = fit_of(method)(K, y, C=C, kernel="precomputed", n_threads=1)
    return value / exact.convergence.dual - 1


def svm(args) -> None:
    import daal4py
    from sklearn.svm import SVC, SVR
    from sklearnex.svm import SVC as OneDAL

    daal4py.daalinit(1)  # thread
    table = Table(
        args, f"Against scikit-learn, gamma {GAMMA:g}, C 100, tol 1e-3; NPSVOR beside "
        "SVC", "method:6", "peer:6", "n:5", "ours:6.3f", "theirs:7.2f",
        "theirs/ours:6.1f", "rel_gap:8.1e",
    )  # fmt: skip
    pairs = ("npsvor", SVC), ("svc", SVC), ("svc", OneDAL), ("svr", SVR)
    for (name, peer), n in product(pairs, (2000, 4000, 8000, 16000)):
        if n > 8000 and peer is not OneDAL:
            continue
        X, y, *_ = california(args.data, n)
        options = {"C": 100.0, "gamma": GAMMA}
        fit = fit_of(name)
        ours, _, model = best_time(args.repeat, fit, X, y, n_threads=1, **options)
        theirs, *_ = best_time(1, peer(cache_size=1000, **options).fit, X, y)
        c = model.convergence
        gap = max(np.max(part.rel_gap) for part in c.parts or (c,))
        label = "oneDAL" if peer is OneDAL else "libsvm"
        table.row(name, label, n, ours, theirs, theirs / ours, gap)


PACKAGE = {"clm": "ordinal", "polr": "MASS", "vglm": "VGAM", "orm": "rms"}
# a fit with its covariance; its thresholds and coefficients, in the signs of (P)
FITS = {
    "clm": ("clm(y ~ ., data = data)", "m$alpha, m$beta"),
    "polr": ("polr(y ~ ., data = data, Hess = TRUE)", "m$zeta, m$coefficients"),
    "vglm": (
        "vglm(y ~ ., cumulative(parallel = TRUE), data)",
        "ifelse(grepl('^X', names(coef(m))), -1, 1) * coef(m)",
    ),
    "orm": ("orm(y ~ X)", "ifelse(grepl('^X', names(coef(m))), 1, -1) * coef(m)"),
}
ERRORS = "sqrt(diag(V))[grepl('^X', colnames(V))]"  # of the coefficients
VERSIONS = """
for (p in c({packages})) if (requireNamespace(p, quietly = TRUE)) {{
  when <- packageDescription(p)[["Date/Publication"]]
  cat("#", p, packageDescription(p)$Version, "of", substr(when, 1, 4), "\\n")
}}
"""
R = """
suppressPackageStartupMessages(library({package}))
X <- matrix(readBin("X", "double", {n} * {d}), {n}, {d}, byrow = TRUE)
y <- factor(readBin("y", "integer", {n}), ordered = TRUE)
data <- data.frame(y = y, X)
best <- Inf
for (i in 1:{repeat}) {{
  t <- system.time({{m <- {fit}; V <- vcov(m)}})
  best <- min(best, t[["user.self"]] + t[["sys.self"]])
  if (best > 10) break
}}
writeBin(as.double(c(best, {out})), "out")
"""


def by_r(args, package, fit, out, X, y):
    """(CPU seconds, what R puts out of the fit), which is None where it takes longer
    than the limit; None without R or the package."""
    n, d = X.shape
    script = R.format(package=package, n=n, d=d, fit=fit, out=out, repeat=args.repeat)
    with tempfile.TemporaryDirectory() as folder:
        X.tofile(Path(folder) / "X")
        y.astype(np.int32).tofile(Path(folder) / "y")
        try:
            done = subprocess.run(
                ["Rscript", "-e", script], cwd=folder, capture_output=True,
                timeout=args.limit,
            )  # fmt: skip
        except FileNotFoundError:
            return None
        except subprocess.TimeoutExpired:
            return args.limit, None
        if done.returncode:
            return None
        found = np.fromfile(Path(folder) / "out")
    return found[0], found[1:]


def by_statsmodels(X, y):
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    model = OrderedModel(y, X, distr="logit")
    found = model.fit(method="bfgs", disp=0, maxiter=1000)
    assert np.isfinite(found.bse).all()
    thresholds = model.transform_threshold_params(found.params)[1:-1]
    return thresholds, found.params[: X.shape[1]]


def by_skordinal(X, y):
    from skordinal.classifiers import POM

    found = POM().fit(X, y)
    return found.thresholds_, found.coef_


def by_mord(X, y):
    from mord import LogisticAT

    found = LogisticAT(alpha=0).fit(X, y)
    return found.theta_, found.coef_


PYTHON = {
    "OrderedModel": by_statsmodels,
    "skordinal POM": by_skordinal,
    "mord LogisticAT": by_mord,
}


def by_python(args, name, X, y):
    """The same of a package of Python."""
    try:
        seconds, _, found = best_time(args.repeat, PYTHON[name], X, y)
    except ImportError:
        return None
    return seconds, np.concatenate(found)


def log_likelihood(estimates, X, y):
    """Return the value of (P), from thresholds and coefficients."""
    T = y.max()
    f = X @ estimates[T:]
    ends = np.concatenate([[-np.inf], estimates[:T], [np.inf]])
    a, b = ends[y + 1] - f, ends[y] - f
    # of both tails the one that is not near 1
    P = np.where(b > 0, expit(-b) - expit(-a), expit(a) - expit(b))
    return float(np.log(P).sum())


def with_errors(X, y):
    """Our model, and its standard errors."""
    model = ordinal.fit_pom(X, y, n_threads=1)
    return model, model.standard_errors


def print_versions() -> None:
    """Print the versions of the packages of R, and their years."""
    code = VERSIONS.format(packages=str([*PACKAGE.values()])[1:-1])
    if shutil.which("Rscript"):
        subprocess.run(["Rscript", "-e", code], check=True)


def linear(args) -> None:
    print_versions()
    for (n, d, r), peers in {
        (100_000, 10, 5): (*FITS, *PYTHON), (2000, 5, 1000): ("orm", "clm", "polr"),
        (4000, 5, 4000): ("orm",),
    }.items():  # fmt: skip
        X, y = scored(n, d, r)
        ours, _, (model, errors) = best_time(args.repeat, with_errors, X, y)
        mine = np.concatenate([model.thresholds, model.coef])
        found, apart = {"fit_pom": (ours, mine)}, {}
        for name in peers:
            if name not in FITS:
                result = by_python(args, name, X, y)
            else:
                fit, out = FITS[name]
                result = by_r(args, PACKAGE[name], fit, f"{out}, {ERRORS}", X, y)
            if result is None:
                continue
            found[name] = result
            if name in FITS and result[1] is not None:
                x, theirs = np.split(result[1], [-d])
                found[name] = result[0], x
                apart[name] = float(np.abs(theirs / errors[-d:] - 1).max())
        levels = {
            name: log_likelihood(x, X, y)
            for name, (_, x) in found.items()
            if x is not None
        }
        table = Table(
            args, f"{n} rows, {d} features, {r} ranks", "fit:22.0f", "seconds:8.3f",
            "by ours:8.1f", "below:8.1e", "differs:8.1e", "errors:8.1e",
        )  # fmt: skip
        for name, (spent, x) in found.items():
            ends = (None, None)
            if x is not None:
                differs = float((np.abs(x - mine) / errors).max())
                ends = max(levels.values()) - levels[name], differs
            table.row(name, *shown(spent, ours, x is not None), *ends, apart.get(name))


def ranks(args) -> None:
    table = Table(
        args, "A rank per row, with standard errors", "fit:12", "rows:8d",
        "seconds:8.2f", "goal:6.1f", "MB:6.0f", "file MB:8.1f",
    )  # fmt: skip
    goals = {10_000: None, 100_000: 0.5, 1_000_000: 6.0}
    for n, goal in goals.items():
        X, y = scored(n, 5, n)
        before, file = resident("VmRSS"), BytesIO()
        spent, _, (model, _) = best_time(args.repeat, with_errors, X, y)
        model.save(file)
        peak, size = resident("VmHWM") - before, len(file.getvalue()) / 1e6
        table.row("fit_pom", n, spent, goal, peak, size)
    X, y = scored(3000, 5, 3000)
    path = {"n_lambdas": 10, "n_threads": 1}
    spent, *_ = best_time(args.repeat, ordinal.fit_pom_path, X, y, **path)
    table.row("fit_pom_path", 3000, spent, 1.0, None, None)
    X, y = scored(2000, 5, 2000)
    groups = {"g": np.random.default_rng(0).integers(0, 400, 2000)}
    laplace = {"groups": groups, "n_quadrature": 1, "n_threads": 1}
    spent, *_ = best_time(args.repeat, ordinal.fit_clmm, X, y, **laplace)
    table.row("fit_clmm", 2000, spent, 1.0, None, None)


VGLM = {
    "stopping": "sratio(parallel = {parallel})",
    "backward": "cratio(reverse = TRUE, parallel = {parallel})",
    "adjacent": "acat(parallel = {parallel})",
}


def ratio(args) -> None:
    table = Table(
        args, "100 000 rows, 10 features, 5 ranks, beside vglm", "family:8",
        "effects:8", "ours:6.2f", "vglm:6.2f", "ratio:6.0f", "apart:8.1e",
        "steps:5d",
    )  # fmt: skip
    X, y = scored(100_000, 10, 5)
    for family, effects in product(VGLM, ("parallel", "nominal")):
        nominal = [] if effects == "parallel" else list(range(10))
        ours, _, model = best_time(
            args.repeat, ordinal.fit_ratio, X, y, family=family, nominal=nominal,
            n_threads=1,
        )  # fmt: skip
        of = VGLM[family].format(parallel=str(not nominal).upper())
        theirs = by_r(args, "VGAM", f"vglm(y ~ ., {of}, data)", "logLik(m)", X, y)
        cells = (None, None, None)
        if theirs is not None and theirs[1] is not None:
            apart = abs(model.loglik / theirs[1][0] - 1)
            cells = theirs[0], theirs[0] / ours, apart
        table.row(family, effects, ours, *cells, model.convergence.n_iter)


PARTS = {f.__name__: f for f in (svor, svm, linear, ranks, ratio)}

if __name__ == "__main__":
    options = parser(__doc__, PARTS)
    options.add_argument("--limit", type=float, default=300, help="seconds of a peer")
    sys.exit(run(options.parse_args(), PARTS, ordinal))
