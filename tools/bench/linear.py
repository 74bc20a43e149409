"""The proportional odds model beside other implementations of it, one thread.

  peers     100 000 rows, 10 features, 5 ranks, with standard errors
  rows      a million rows of 20 features, and the memory above them
  ranks     1000 ranks (a continuous outcome), 2000 rows, 5 features
  path      penalties of absolute values: the tables of `linear_path.py`

R's packages run where Rscript finds them (r-cran-mass, r-cran-ordinal, r-cran-vgam,
r-cran-rms) and are timed inside R, fit and covariance, as ours; the others come with
the extra `[bench]`. Seconds are CPU seconds. A peer that takes longer than --limit
seconds is stopped, and the ratio is then a bound.

Faster is nothing where the fit is another one: `below` is by how much the log
likelihood of the estimates, which we compute, lies below the best one of the table, and
`differs` the largest difference of an estimate from ours, in standard errors. mord
minimises the logistic loss of all thresholds, another model, and skordinal's POM and
mord have no standard errors.

    OPENBLAS_NUM_THREADS=1 python tools/bench/linear.py
"""

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import linear_path
import numpy as np
from _common import Table, best_time, parser, resident, run
from scipy.special import expit

import ordinal

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
R = """
suppressPackageStartupMessages(library({package}))
X <- matrix(readBin("X", "double", {n} * {d}), {n}, {d}, byrow = TRUE)
y <- factor(readBin("y", "integer", {n}), ordered = TRUE)
data <- data.frame(y = y, X)
best <- Inf
for (i in 1:{repeat}) {{
  t <- system.time({{m <- {fit}; V <- vcov(m)}})
  best <- min(best, t[["user.self"]] + t[["sys.self"]])
}}
writeBin(as.double(c(best, {estimates})), "out")
"""


def problem(n, d, ranks, seed=0):
    """(X, y): ranks of equal size of a score with logistic noise. Nothing of the size
    of X is made beside it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    f = X @ rng.standard_normal(d) * (2 / np.sqrt(d)) + rng.logistic(size=n)
    return X, np.digitize(f, np.quantile(f, np.arange(1, ranks) / ranks))


def fitted(X, y):
    """Our model, and its standard errors."""
    model = ordinal.fit_pom(X, y, n_threads=1)
    return model, model.standard_errors


def by_r(name, X, y, args):
    """(CPU seconds, thresholds and coefficients) of R; no estimates where it takes
    longer than the limit, nothing without it."""
    (n, d), (fit, estimates) = X.shape, FITS[name]
    script = R.format(
        package=PACKAGE[name], n=n, d=d, repeat=args.repeat, fit=fit,
        estimates=estimates,
    )  # fmt: skip
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
        out = np.fromfile(Path(folder) / "out")
    return out[0], out[1:]


def by_statsmodels(X, y):
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    model = OrderedModel(y, X, distr="logit")
    found = model.fit(method="bfgs", disp=0, maxiter=1000)
    assert np.isfinite(found.bse).all()
    thresholds = model.transform_threshold_params(found.params)[1:-1]
    return thresholds, found.params[: X.shape[1]]


def by_skordinal(X, y, **options):
    from skordinal.classifiers import POM

    found = POM(**options).fit(X, y)
    return found.thresholds_, found.coef_


def by_mord(X, y):
    from mord import LogisticAT

    found = LogisticAT(alpha=0).fit(X, y)
    return found.theta_, found.coef_


PYTHON = {
    "OrderedModel": by_statsmodels,
    "skordinal POM": by_skordinal,
    "  with tol=1e-8": partial(by_skordinal, tol=1e-8),  # to errors nearer to ours
    "mord LogisticAT": by_mord,
}


def by_python(name, X, y, args):
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


COLUMNS = (
    "fit:22.0f", "seconds:8.3f", "by ours:8.1f", "below:8.1e", "differs:8.1e",
)  # fmt: skip


def compare(args, title, X, y, peers):
    """A table of fits to the same rows."""
    seconds, _, (model, errors) = best_time(args.repeat, fitted, X, y)
    if args.quick:
        table = Table(args, title, "fit:22.0f", "ours:8.3f")
        table.row("fit_pom", seconds)
        return
    mine = np.concatenate([model.thresholds, model.coef])
    found = {"fit_pom": (seconds, mine)}
    for name in peers:
        fit = by_r if name in FITS else by_python
        result = fit(name, X, y, args)
        if result is not None:
            found[name] = result
    levels = {
        name: log_likelihood(x, X, y) for name, (_, x) in found.items() if x is not None
    }
    table = Table(args, title, *COLUMNS)
    for name, (spent, x) in found.items():
        if x is None:
            bound = f">{spent / seconds:.0f}"
            table.row(name, f">{spent:.0f}", bound, None, None)
            continue
        differs = float((np.abs(x - mine) / errors).max())
        below = max(levels.values()) - levels[name]
        table.row(name, spent, spent / seconds, below, differs)


def peers(args):
    n = 20_000 if args.quick else 100_000
    names = "clm", "polr", "vglm", "orm", *PYTHON
    compare(args, f"{n} rows, 10 features, 5 ranks", *problem(n, 10, 5), names)


def ranks(args):
    r = 100 if args.quick else 1000
    compare(
        args, f"2000 rows, 5 features, {r} ranks", *problem(2000, 5, r),
        ("orm", "clm", "polr"),
    )  # fmt: skip


def rows(args):
    table = Table(
        args, "Many rows, 20 features, 5 ranks", "n:8d", "ours:8.2f", "MB above X:10.0f"
    )
    for n in (200_000,) if args.quick else (100_000, 1_000_000):
        # in a process of its own, whose peak no fit before it has raised
        command = [sys.executable, __file__, "--peak", str(n), str(args.repeat)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        seconds, above = map(float, done.stdout.split())
        table.row(n, seconds, above)


def print_peak(n, repeat):
    """Seconds, and the peak of the memory of the first fit less what was held before
    it, X and y among it; Linux."""
    X, y = problem(n, 20, 5)
    fitted(X[:1000], y[:1000])
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    before = resident("VmRSS")
    fitted(X, y)
    above = resident("VmHWM") - before
    print(best_time(repeat, fitted, X, y)[0], above)


def path(args):
    for part in linear_path.PARTS.values():
        part(args)


PARTS = {"peers": peers, "rows": rows, "ranks": ranks, "path": path}

if __name__ == "__main__":
    options = parser(__doc__, PARTS)
    options.add_argument("--limit", type=float, default=300, help="seconds of a peer")
    args = options.parse_args()
    if args.peak:
        print_peak(*map(int, args.peak))
    else:
        run(args, PARTS, tuple(PARTS))
