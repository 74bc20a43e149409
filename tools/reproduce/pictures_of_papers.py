"""Figures 3 and 4 of the SVOR paper and Figure 1 of the GPOR paper, as pictures.

    OPENBLAS_NUM_THREADS=1 python tools/reproduce/pictures_of_papers.py --data FOLDER \\
        --png docs/pictures/papers

Figure 3: contours of the discriminant function at the thresholds, on the 24 students of
Johnson and Albert's grades with the grades D, C and B; kappa = 1/2 and C = 1.

Figure 4: processor seconds of one fit by the number of training rows of California
housing with 5 and 10 equal-frequency bins, kappa = 1 and C = 100, on axes of
logarithms, with the slope of a line through the points. The paper has 28 sizes from 100
to 5000.

GPOR's Figure 1: the likelihood of three ranks with sigma = 1 and thresholds at -3 and
3, and the first and second derivative of its negative logarithm.
"""

import warnings
from functools import partial
from pathlib import Path

import numpy as np
from _protocol import best_time, california, header, options, table

import ordinal
from ordinal._solvers import _ordinal_probit

ROWS = (100, 200, 400, 800, 1600, 3000, 5000)
ALGORITHMS = {
    "Shashua and Levin": ordinal.companions.fit_shashua_levin,
    "SVOREX": ordinal.fit_svorex,
    "SVORIM": ordinal.fit_svorim,
}
TIMED = {
    "SVR": partial(ordinal.companions.fit_svr, epsilon=0.1),
    "SVOREX": ordinal.fit_svorex,
    "SVORIM": ordinal.fit_svorim,
}
HEADINGS = (
    "algorithm          b1       b2",
    f"bins method {''.join(f'{n:>8}' for n in ROWS)}  exponent",
    "rank   f = -6      -3       0       3       6",
)


def grading(args, plt):
    """Figure 3 of the SVOR paper."""
    X, y = table(args.data, "johnson_albert_grades")
    kept = (y > 1) & (y < 5)
    X, y = X[kept], y[kept].astype(int)
    mean, spread = X.mean(axis=0), X.std(axis=0)
    axes = [np.linspace(lo - 1, hi + 1, 120) for lo, hi in ((440, 690), (1, 5))]
    grid = np.stack(np.meshgrid(*axes), axis=-1)
    figure, panels = plt.subplots(
        1, 3, figsize=(9, 3.1), layout="constrained", sharey=True
    )
    print(f"\n## Figure 3 of SVOR\n{HEADINGS[0]}")
    for (name, fit), panel in zip(ALGORITHMS.items(), panels, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", ordinal.exceptions.DisorderedThresholdsWarning
            )
            model = fit((X - mean) / spread, y, gamma=0.25, C=1.0)
        print("{:17} {:7.4f}  {:7.4f}".format(name, *model.thresholds))
        scores = model.decision_function((grid.reshape(-1, 2) - mean) / spread)
        scores = scores.reshape(grid.shape[:2])
        for b, line in zip(model.thresholds, ("solid", "dashed"), strict=True):
            panel.contour(*axes, scores, levels=[b], colors="black", linestyles=line)
        for rank, grade, marker in ((2, "D", "o"), (3, "C", "."), (4, "B", "s")):
            panel.scatter(*X[y == rank].T, marker=marker, label=f"grade {grade}")
        panel.set(title=name, xlabel="SAT, mathematics")
    panels[0].set(ylabel="grade in the prerequisite course")
    panels[2].legend(fontsize="small", bbox_to_anchor=(1.01, 1), loc="upper left")
    return figure


def seconds(args, plt):
    """Figure 4 of the SVOR paper."""
    figure, panels = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
    print("\n## Figure 4 of SVOR: CPU seconds, and their exponent of the rows")
    print(f"bins method {''.join(f'{n:>8}' for n in args.rows)}  exponent")
    for bins, panel in zip((5, 10), panels, strict=True):
        for (name, fit), marker in zip(TIMED.items(), "^os", strict=True):
            took = []
            for n in args.rows:
                X, y, *_ = california(args.data, n, bins)
                call = partial(fit, X, y, C=100.0, gamma=0.5, n_threads=1)
                took.append(best_time(args.repeat, call)[0])
            slope, at = np.polyfit(np.log(args.rows), np.log(took), 1)
            values = "".join(f"{t:8.4f}" for t in took)
            print(f"{bins:4} {name:7}{values}  {slope:8.2f}", flush=True)
            line = panel.loglog(args.rows, took, marker, label=f"{name}: {slope:.2f}")
            fitted = np.exp(at) * np.array(args.rows) ** slope
            panel.loglog(args.rows, fitted, color=line[0].get_color(), linewidth=1)
        panel.set(title=f"{bins} ranks", xlabel="training rows", ylabel="CPU seconds")
        panel.legend(title="exponent", fontsize="small")
    return figure


def likelihood(args, plt):
    """Figure 1 of the GPOR paper, from the kernel of `fit_gpor`."""
    f, b, gap = np.linspace(-9, 9, 361), np.array([-3.0, 3.0]), [np.inf, 6.0, np.inf]
    figure, panels = plt.subplots(1, 3, figsize=(9, 2.8), layout="constrained")
    print(f"\n## Figure 1 of GPOR\n{HEADINGS[2]}")
    for k in range(3):
        rank, out = np.full(f.size, k, np.int32), np.empty((3, f.size))
        _ordinal_probit.loss(f, np.ones(f.size), rank, b, np.array(gap), out, 1)
        curves = np.exp(out[0]), -out[1], out[2]
        for panel, curve in zip(panels, curves, strict=True):
            panel.plot(f, curve, "-", label=f"rank {k + 1}")
        at = np.searchsorted(f, [-6, -3, 0, 3, 6])
        print(f"{k + 1:4}", "".join(f"{p:8.4f}" for p in curves[0][at]))
    titles = "likelihood", "first derivative of -ln", "second derivative of -ln"
    for panel, title in zip(panels, titles, strict=True):
        panel.set(title=title, xlabel="f(x)")
    panels[0].legend(fontsize="small")
    return figure


FIGURES = {
    "svor_grading": grading,
    "svor_seconds": seconds,
    "gpor_likelihood": likelihood,
}


def main():
    parser = options(__doc__, figures=FIGURES)
    parser.add_argument("--rows", nargs="+", type=int, default=ROWS)
    parser.add_argument("--repeat", type=int, default=3, help="the least time counts")
    parser.add_argument("--png", metavar="FOLDER", help="write the pictures there")
    args = parser.parse_args()

    from matplotlib import pyplot as plt
    from pictures import save, use_style

    use_style()
    print(header(ordinal))
    for name in args.figures:
        figure = FIGURES[name](args, plt)
        if args.png:
            save(figure, Path(args.png, f"{name}.png"))


if __name__ == "__main__":
    main()
