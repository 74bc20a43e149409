"""Arguments with which every public callable works, by the names of its parameters.

An instance of a class whose methods are to be called has its source in INSTANCES, and a
parameter that has no default its plain source in PLAIN, or in SPECIAL where the name
alone does not tell; tests/test_fuzz.py says what is missing. OPTIONS holds values that
are allowed for parameters that have a default.
"""

import random

INSTANCES = {
    "BoostingModel": [
        "fit('boosting', n_rounds=5)",
        "fit('boosting', n_rounds=5, structure='scores', link='cauchit')",
    ],
    "ClmmModel": ["grouped()", "grouped('slope')", "grouped('nodes')"],
    "CnnorModel": ["fit('cnnor', n_filters=2, n_hidden=3, max_iter=30)"],
    "ElmorModel": [
        "fit('elmor', n_hidden=9, probability=True)",
        "fit('elmor', n_hidden=9, ridge=0.1, probability=True)",
    ],
    "GporModel": [
        "fit('gpor', kernel='ard', max_iter=3)",
        "fit('gpor', kernel='ard_linear', inference='laplace', max_iter=3)",
    ],
    "KdlorModel": [
        "fit('kdlor', probability=True)",
        "fit('kdlor', kernel='linear', probability=True)",
    ],
    "LinearThresholdModel": [
        "fit('lit', probability=True)",
        "fit('lat', probability=True)",
    ],
    "NnorModel": ["fit('nnor', n_hidden=3)", "fit('nnor', loss='squared', l2=0.1)"],
    "NnpomModel": ["fit('nnpom', n_hidden=3)"],
    "NpsvorModel": ["fit('npsvor', solver='admm', probability=True)"],
    "OfmhsModel": ["fit('ofmhs')"],
    "OpbeModel": ["fit('opbe')"],
    "PomModel": ["likely()", "likely(nominal=(0,))"],
    "PomPath": ["fit('pom_path', n_lambdas=3)"],
    "SvmModel": [
        "fit('svc', probability=True)",
        "fit('svc', decomposition='one_vs_all', probability=True)",
        "fit('svmop', kernel='linear', probability=True)",
    ],
    "SvorModel": [
        "fit('svorim', probability=True)",
        "fit('redsvm', kernel='linear', probability=True)",
    ],
    "SvrModel": ["fit('svr', thresholds='fitted', probability=True)"],
    "TlsSvorModel": ["fit('tlssvor', probability=True)"],
    "XofmModel": [
        "fit('xofm', probability=True)",
        "fit('xofm', solver='sgd', probability=True)",
    ],
    "Standardizer": ["preprocessing.Standardizer.fit(rows())"],
    "PreprocessedModel": ["standardized()", "preprocessed()"],
    "TablePreprocessor": [
        "preprocessing.TablePreprocessor()",
        "preprocessing.TablePreprocessor(impute='mean', standardize=False)",
    ],
    "TableCoding": ["preprocessing.TablePreprocessor().fit(table())"],
    "Binning": ["preprocessing.Binning([0.0, 1.0])"],
    "RankIntervals": ["ordinal.RankIntervals([0, 1, 2], [0, 2, 2])"],
    "Grid": ["model_selection.Grid(C=[1.0, 2.0])"],
    "CoarseToFine": ["model_selection.CoarseToFine()"],
    "UniformDesign": ["model_selection.UniformDesign()"],
    "Selection": ["selection()"],
    "Nested": ["nesting()"],
    "ConformalModel": ["conformal_sets()", "cross_conformal_sets()"],
    "Comparison": ["ordinal.compare(rows(), ranks(), methods=['pom', 'lit'], cv=2)"],
    "Convergence": ["fit('svorim').convergence"],
    "Explanation": ["likely().explain(rows())"],
    "RBF": ["kernels.RBF(0.5)"],
    "ARD": ["kernels.ARD([0.5, 1.0, 2.0])"],
    "Linear": ["kernels.Linear()"],
    "LinearARD": ["kernels.LinearARD([0.5, 1.0, 2.0])"],
    "Polynomial": ["kernels.Polynomial(2)"],
    "Pearson": ["kernels.Pearson()"],
}

PLAIN = {
    "A": "rows()",
    "B": "rows(5)",
    "X": "rows()",
    "y": "ranks()",
    "y_true": "ranks()",
    "y_pred": "ranks()[::-1]",
    "y_score": "rows()[:, 0]",
    "explanation": "likely().explain(rows())",
    "proba": "proba()",
    "values": "rows()[:, 0]",
    "k": "0",
    "n_bins": "3",
    "edges": "[0.0, 1.0]",
    "preprocessor": "preprocessing.Standardizer.fit(rows())",
    "model": "fit('xofm')",
    "outputs": "fit('elmor', n_hidden=9).decision_function(rows())",
    "path": "'model.npz'",
    "n": "7",
    "d": "2",
    "points": "[{'C': 1.0}, {'C': 2.0}]",
    "search": "model_selection.Grid(C=[1.0, 2.0])",
    "fit": "ordinal.fit_svorim",
    "feature": "0",
    "found": "selection()",
    "scores": "rows(6, 3)",
    "a": "0",
    "b": "1",
    "sizes": "[10, 20]",
    "names": "['a', 'b', 'c']",
    "result": "comparison.friedman(rows(6, 3))",
    "x": "rows()[0]",
    "gamma": "1.0",
    "parts": "[fit('svorim').convergence]",
    "solver": "'fit'",
    "scale": "[1.0, 1.0, 1.0]",
}

# (end of the callable's source, parameter) -> source
SPECIAL = {
    ("RankIntervals", "lower"): "[0, 1, 2]",
    ("RankIntervals", "upper"): "[0, 2, 2]",
    (".ranks", "classes"): "np.arange(3)",
    ("inference.predictions", "model"): "likely()",
    ("plot.simulated_residuals", "model"): "likely()",
    ("for_marginaleffects", "table"): "rows()",
    (".add1", "base"): "[]",
    (".refit", "method"): "'pom'",
    (".equality_test", "names"): "['x2', 'x3']",
    ("plot.residuals", "model"): "likely()",
    ("plot.random_effects", "model"): "grouped()",
    ("rank_sum", "a"): "rows(6, 3)[:, 0]",
    ("rank_sum", "b"): "rows(6, 3)[:, 1]",
    ("wilcoxon", "a"): "rows(6, 3)[:, 0]",
    ("wilcoxon", "b"): "rows(6, 3)[:, 1]",
    ("win_draw_loss", "scores"): "[rows(6, 3), rows(7, 3)]",
    ("centred_discrepancy", "points"): "proba(6, 2)",
    ("learning_curve", "found"): "learning()",
    ("reliability", "model"): "fit('svorim', probability=True)",
    ("relevance", "model"): "fit('gpor', kernel='ard', max_iter=3)",
    ("boxplots_by_size", "scores"): "[rows(6, 3), rows(6, 3)]",
    ("errors_by_method", "scores"): "{'a': rows(6, 3), 'b': rows(6, 3)}",
    ("PreprocessedModel", "model"): "fit('svorex', probability=True)",
    ("Standardizer", "mean"): "np.zeros(3)",
    ("Standardizer", "scale"): "np.ones(3)",
    (".ARD", "gamma"): "[0.5, 1.0, 2.0]",
    (".LinearARD", "gamma"): "[0.5, 1.0, 2.0]",
    ("load", "path"): "stored()",
    ("blocks", "path"): "written()",
    ("write_predictions", "path"): "'predictions.csv'",
    ("predictions", "model"): "fit('svorim', probability=True)",
    ("prediction_sets", "sets"): "conformal_sets()",
    ("conformal", "model"): "fit('svorim', probability=True)",
    ("fit('xofm', probability=True).link_input", "like"): "fit('xofm')",
    ("fit('xofm', solver='sgd', probability=True).link_input", "like"): "fit('xofm')",
    ("kernel='linear', probability=True).rank_values", "f"): "rows()[:, :2]",
    (".rank_values", "f"): "rows()",
    ("link_input", "like"): "fit('svorim')",
    ("coefficients", "model"): "likely()",
    ("inference.contrasts", "feature"): "'x1'",
    ("lr_test", "smaller"): "likely(2)",
    ("lr_test", "larger"): "likely()",
    ("stratified_holdout", "n_splits"): "3",
}

# What calls with plain arguments raise, by a part of their sources: some methods are
# not for models with random effects, and plain models have no categorical terms.
REFUSED = {
    "grouped(": "not available (with|for models with) random effects|rows to average"
    "|for models of fit_pom|not available for a singular model|again without cluster"
    "|fit without robust and cluster|icc is defined for"
    "|odds_ratios are defined for",
    ".monotone_effects": "has no monotone effect",
    ".contrasts": "needs a categorical variable",
    ".for_marginaleffects": "needs marginaleffects",
    ".jeffreys": "is for models (without|of)",
    "inference.anova": "needs two models or more",
    "ordinal.fit_clmm": "groups must map names to labels",
}

# Named for a callable that takes any name.
ANY_NAME = {"values": {"C": "[1.0, 2.0]"}, "options": {"max_time": "1.0"}}

# Given whenever the callable takes it, so that calls take no longer than they need; and
# which of these nothing takes the place of.
ALWAYS = {"max_time": "1.0", "outer": "2", "cv": "2"}
KEPT = ("max_time",)

OPTIONS = {
    "C": ["0.1", "1", "100.0"],
    "C2": ["2.0"],
    "alpha": ["0.1", "0.01"],
    "basis": ["5", "0.1", "[0, 5, 9, 20]"],
    "batch_size": ["4", "24"],
    "breakpoints": ["'equal'", "'quantile'"],
    "cache_mb": ["0.001", "10"],
    "callback": ["lambda state: False", "lambda state: True"],
    "categorical": ["[]", "[0]"],
    "by_class": ["True"],
    "choose": ["'best'", "'one_se'"],
    "cluster": ["np.arange(24) // 3"],
    "class_weight": ["'balanced'", "{1: 2.0, 2: 0.5}"],
    "classes": ["[1, 2, 3]", "[1, 2, 3, 4]"],
    "coef0": ["0.0", "2.0"],
    "cost": ["cost()"],
    "coverage": ["0.5", "0.9"],
    "cv": ["2", "3"],
    "degree": ["1", "2"],
    "diagonal": ["np.ones(24)"],
    "e_abs": ["1e-3"],
    "e_rel": ["1e-3"],
    "early_stopping": ["0.2"],
    "epsilon": ["0.0", "0.1"],
    "eta": ["0.01", "1.0"],
    "gamma": ["'scale'", "'auto'", "0.3", "10.0"],
    "greater_is_better": ["False", "None"],
    "effects": ["'new'", "'average'", "'known'", "'known_or_new'"],
    "groups": [
        "ranks()", "np.arange(24) // 3", "list('abcdefgh') * 3",
        "{'group': np.arange(24) % 6}", "{'group': np.arange(24) // 3}",
    ],
    "impute": ["'median'", "'mean'", "'most_frequent'"],
    "indicator": ["False"],
    "inference": ["'ep'", "'laplace'"],
    "init_scale": ["0.01", "1.0"],
    "interactions": ["[[0, 1], [2]]", "[['x1', 'x3']]", "[[0], [1], [2]]"],
    "kernel": [
        "'rbf'", "'linear'", "'polynomial'", "kernels.RBF(0.3)", "kernels.Linear()",
        "kernels.ARD([0.5, 1.0, 2.0])", "kernels.Pearson()",
        "lambda A, B: np.asarray(A) @ np.asarray(B).T",
    ],
    "labels": ["[1, 2, 3]"],
    "level": ["0.5", "0.9"],
    "l2_main": ["1e-2"],
    "l2_pair": ["1e-2"],
    "learning_rate": ["0.1"],
    "max_iter": ["1", "30"],
    "monotone": ["[1, 0, -1]"],
    "n_compared": ["5"],
    "n_epochs": ["1.0"],
    "n_factors": ["0", "2"],
    "n_filters": ["1", "3"],
    "n_hidden": ["1", "30"],
    "n_intervals": ["1", "3", "[1, 2, 3]"],
    "n_places": ["1", "3"],
    "n_quadrature": ["3"],
    "n_restarts": ["0", "1"],
    "n_triplets": ["1", "300"],
    "n_threads": ["1", "2", "3"],
    "noise": ["0.0", "1.0"],
    "nonconformity": ["'rps'", "None"],
    "normalize": ["True"],
    "objective": ["'evidence'", "'bound'"],
    "optimize": ["False"],
    "order": ["{}", "{2: ['low', 'mid', 'high']}"],
    "polish": ["True"],
    "preprocess": [
        "preprocessing.TablePreprocessor()", "preprocessing.Standardizer", "None",
    ],
    "prior": ["None", "'weak'"],
    "probability": ["True"],
    "proba": ["True"],
    "missing_labels": ["'drop'", "'error'"],
    "progress": ["False"],
    "refit": ["False", "'one_se'"],
    "ridge": ["'loo'", "0.1"],
    "rho": ["0.5"],
    "robust": ["True"],
    "rng": ["0", "7", "np.random.default_rng(3)"],
    "rule": ["'mode'", "'median'", "'cost'", "'threshold'", "'nearest'"],
    "sample_weight": ["weights()"],
    "scoring": ["'mae'", "'mze'", "'rps'", "('mae', 'kappa')", "metrics.mae"],
    "slopes": ["{'group': [0]}"],
    "solver": ["'smo'", "'admm'", "'lbfgs'", "'sgd'"],
    "separator": ["','", "';'"],
    "standardize": ["False"],
    "start": ["None"],
    "store": ["'store'"],
    "tau": ["0.5"],
    "test_size": ["0.5", "6"],
    "tol": ["1e-2", "1e-8"],
    "top": ["1", "None"],
    "u": ["1.5", "np.inf"],
    "unseen": ["'missing'", "'error'"],
    "weights": ["'linear'", "'quadratic'"],
}  # fmt: skip


def needed(source: str, parameter: str) -> str | None:
    """An argument with which the callable of this source works; None if unknown."""
    for (end, name), argument in SPECIAL.items():
        if name == parameter and source.endswith(end):
            return argument
    if source.startswith("inference.") and parameter == "model":
        return "likely()"
    return PLAIN.get(parameter)


def allowed(rng: random.Random, source: str, parameter: str) -> str | None:
    """An argument that is allowed, as far as the parameter's name tells."""
    choices = OPTIONS.get(parameter)
    return rng.choice(choices) if choices else needed(source, parameter)
