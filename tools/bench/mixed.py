"""Cumulative link mixed models, one thread: beside R's clmm by Laplace's approximation,
at many rows, and in simulations.

  peers     10 000 rows with 500 groups, and crossed factors of 200 and 100 levels
  crossed   InstEval of R's lme4: 73 421 rows of 2972 students and 1128 lecturers
  growth    rows up to a million with 100 rows per group: our seconds and peak memory
  coverage  data sets of 500 rows with 50 groups, by Laplace and ten nodes: shares of
            95 % intervals that hold the truth, and means of the deviation

R runs where Rscript finds it with the package ordinal (r-cran-ordinal); clmm is timed
inside R, with its Hessian, as ours is with standard errors. Seconds are CPU seconds. R
that takes longer than --limit seconds is stopped, and the ratio is then a bound. R's
log likelihood is less than ours by `below`.

    OPENBLAS_NUM_THREADS=1 python tools/bench/mixed.py
"""

import subprocess
import tempfile
from pathlib import Path

import numpy as np
from _common import Table, best_time, limited, parser, resident, run
from peers import by_r

import ordinal


def problem(n, levels, seed=0):
    """(X, y, groups): five ranks of a score of three features, with an intercept of
    deviation 1 for each level of each factor, and logistic noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    score = X @ [1.0, -0.5, 0.0] + rng.logistic(size=n)
    groups = {}
    for name, count in levels.items():
        groups[name] = rng.integers(0, count, n)
        score += rng.standard_normal(count)[groups[name]]
    return X, np.digitize(score, np.quantile(score, [0.2, 0.4, 0.6, 0.8])), groups


def fitted(X, y, groups, nodes=1):
    """Our model, and its standard errors."""
    model = ordinal.fit_clmm(X, y, groups=groups, n_quadrature=nodes, n_threads=1)
    return model, model.standard_errors


def by_clmm(X, y, groups, args):
    """(CPU seconds, log likelihood) of clmm; no log likelihood where it takes longer
    than the limit, nothing without R."""
    columns = [f"X{j + 1}" for j in range(X.shape[1] + len(groups))]
    right = [*columns[: X.shape[1]], *(f"(1 | {c})" for c in columns[X.shape[1] :])]
    fit = f"clmm(y ~ {' + '.join(right)}, data = data)"
    found = by_r(
        args, "ordinal", fit, "m$logLik", np.column_stack([X, *groups.values()]), y
    )
    seconds, values = found or (None, None)
    return seconds, None if values is None else values[0]


def peers(args):
    n = args.rows
    table = Table(
        args, f"{n} rows, 3 features, 5 ranks", "factors:14", "ours:8.3f", "clmm:8.2f",
        "ratio:6.1f", "below:9.1e",
    )  # fmt: skip
    for levels in ({"g": n // 20}, {"a": n // 50, "b": n // 100}):
        X, y, groups = problem(n, levels)
        seconds, _, (model, _) = best_time(args.repeat, fitted, X, y, groups)
        theirs, loglik = by_clmm(X, y, groups, args)
        below = None if loglik is None else model.loglik - loglik
        ratio = None if theirs is None else theirs / seconds
        name = " x ".join(map(str, levels.values()))
        table.row(name, seconds, theirs, ratio, below)


def crossed(args):
    """Ratings from 1 to 5 by service, age of the lecture, semester of the student."""
    with tempfile.TemporaryDirectory() as folder:
        script = 'write.csv(lme4::InstEval, "ratings.csv", row.names = FALSE)'
        subprocess.run(["Rscript", "-e", script], cwd=folder, check=True)
        text = np.loadtxt(
            Path(folder) / "ratings.csv", delimiter=",", skiprows=1, dtype=str
        )
    s, d, student, lecture, service, _, y = np.char.strip(text, '"').astype(int).T
    columns = [service == 1] + [a == k for a in (student, lecture)
                                for k in np.unique(a)[1:]]  # fmt: skip
    X, before = np.array(columns, dtype=float).T, resident("VmRSS")
    seconds, _, (model, _) = best_time(1, fitted, X, y, {"s": s, "d": d})
    table = Table(
        args, f"{len(y)} rows, 9 features, 5 ranks", "ours:8.1f", "steps:5d",
        "step left:9.1e", "log likelihood:15.4f", "MB above X:10.0f",
    )  # fmt: skip
    end, peak = model.convergence, resident("VmHWM") - before
    table.row(seconds, end.n_iter, end.violation, model.loglik, peak)


def growth(args):
    table = Table(
        args, "100 rows per group", "rows:8d", "ours:8.3f", "steps:5.0f",
        "MB above X:10.0f",
    )  # fmt: skip
    for n in (10_000, 100_000, 1_000_000):
        # in a process of its own, whose peak no fit before it has raised
        table.row(n, *limited(None, with_peak, n, 100))


def with_peak(n, per_group):
    """CPU seconds of one fit, its steps, and its peak memory less what was held before
    it, X, y and the groups among it; Linux."""
    X, y, groups = problem(n, {"g": n // per_group})
    fitted(X[:1000], y[:1000], {"g": groups["g"][:1000] % 10})
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    before = resident("VmRSS")
    seconds, _, (model, _) = best_time(1, fitted, X, y, groups)
    return seconds, model.convergence.n_iter, resident("VmHWM") - before


def coverage(args):
    """Wald's intervals of the coefficients, profiles of the deviation; standard errors
    of a share of 200 near 0.95 are 0.015."""
    truth, sets = np.array([1.0, -0.5, 0.0, 1.0]), args.sets
    table = Table(
        args, f"{sets} data sets, true deviation 1", "nodes:5d", "x0:5.3f", "x1:5.3f",
        "x2:5.3f", "deviation:9.3f", "mean sd:7.3f", "variance:8.3f", "left out:8d",
    )  # fmt: skip
    for count in (1, 10):
        held, deviations, left_out = [], [], 0
        for seed in range(sets):
            X, y, groups = problem(500, {"g": 50}, seed)
            model = ordinal.fit_clmm(
                X, y, groups=groups, n_quadrature=count, n_threads=1
            )
            if not model.convergence.converged:
                left_out += 1
                continue
            fixed, sd = model.confint(), model.confint_deviations()
            lower, upper = (
                np.append(fixed[end][-3:], sd[end]) for end in ("lower", "upper")
            )
            held.append((lower <= truth) & (truth <= upper))
            deviations.append(float(sd["estimate"][0]))
        found = np.array(deviations)
        shares = np.mean(held, axis=0)
        table.row(count, *shares, found.mean(), (found**2).mean(), left_out)


PARTS = {"peers": peers, "crossed": crossed, "growth": growth, "coverage": coverage}

if __name__ == "__main__":
    options = parser(__doc__, PARTS)
    options.add_argument("--limit", type=float, default=900, help="seconds of clmm")
    options.add_argument("--rows", type=int, default=10_000, help="of the part peers")
    options.add_argument("--sets", type=int, default=200, help="of the part coverage")
    run(options.parse_args(), PARTS)
