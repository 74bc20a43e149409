"""Write what docstrings share into all of them: parameters, and "See Also" sections.

    python tools/docstrings.py           print the sources whose text is not current
    python tools/docstrings.py --write   write it into the sources

The text of a parameter that several `fit_*` functions share is written once, in the
function that `INHERITED` names; `help`, editors and the site then show plain
docstrings. A function states what it lists as its own, and whatever the other function
does not have. `SEE_ALSO` names related functions, which are described by the first line
of their docstrings.
"""

import argparse
import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ordinal._model.registry import parameters

# function: where its other parameters are described, and those that it describes itself
INHERITED: dict[str, tuple[str, str]] = {
    "fit_svorex": ("fit_svorim", "C cost"),
    "companions.fit_shashua_levin": ("fit_svorim", "C tol cost"),
    "companions.fit_redsvm": ("fit_svorim", "cost"),
    "fit_npsvor": ("fit_svorim", "tol cost classes basis max_iter max_time"),
    "fit_npsvor_path": ("fit_npsvor", ""),
    "companions.fit_svc": ("fit_svorim", "tol basis max_iter"),
    "companions.fit_svr": ("companions.fit_svc", "cost"),
    "companions.fit_cssvc": ("companions.fit_svc", "cost"),
    "companions.fit_svmop": ("companions.fit_svc", "cost"),
    "companions.fit_opbe": ("fit_svorim", "tol basis rng max_iter"),
    "companions.fit_kdlor": (
        "fit_svorim",
        "C basis tol sample_weight class_weight rng max_iter max_time callback",
    ),
    "fit_tlssvor": (
        "fit_svorim",
        "X C basis tol sample_weight probability rng cache_mb max_iter max_time "
        "callback",
    ),
    "fit_gpor": (
        "fit_svorim",
        "X kernel basis start tol max_iter max_time sample_weight classes cache_mb rng "
        "callback",
    ),
    "fit_xofm": (
        "fit_svorim",
        "X cache_mb sample_weight probability rng tol max_iter max_time callback",
    ),
    "companions.fit_nnor": ("fit_svorim", "X y tol rng max_iter max_time callback"),
    "companions.fit_nnpom": ("companions.fit_nnor", "l2"),
    "companions.fit_elmor": (
        "companions.fit_nnor",
        "n_hidden tol probability rng max_iter max_time callback",
    ),
    "companions.fit_cnnor": (
        "companions.fit_nnor",
        "X n_hidden l2 tol sample_weight rng max_iter",
    ),
    "companions.fit_lit": (
        "fit_svorim",
        "X tol preprocess probability rng max_iter max_time callback",
    ),
    "companions.fit_lat": ("companions.fit_lit", ""),
    "companions.fit_ofmhs": ("companions.fit_lit", "X y preprocess tol max_iter"),
    "fit_boosting": (
        "fit_xofm",
        "X y learning_rate monotone sample_weight rng n_threads tol max_iter max_time "
        "callback",
    ),
    "fit_pom": (
        "fit_svorim",
        "X y sample_weight class_weight preprocess tol max_iter max_time callback",
    ),
    "fit_pom_path": (
        "fit_pom",
        "X y link threshold offset tol max_iter max_time",
    ),
    "fit_clmm": (
        "fit_pom",
        "X y link offset sample_weight missing tol max_iter max_time",
    ),
}
# public function: functions that a reader may want instead of it, or next
SEE_ALSO: dict[str, str] = {
    # methods
    "fit_svorim": "fit_svorex fit_npsvor fit_gpor select compare",
    "fit_svorex": "fit_svorim companions.fit_shashua_levin select",
    "companions.fit_shashua_levin": "fit_svorex fit_svorim",
    "companions.fit_redsvm": "fit_svorim fit_svmop select",
    "fit_npsvor": "fit_npsvor_path fit_svorim companions.fit_opbe select",
    "fit_npsvor_path": "fit_npsvor select",
    "fit_tlssvor": "fit_svorim fit_svorex select",
    "companions.fit_svc": "fit_cssvc fit_svmop fit_svorim",
    "companions.fit_cssvc": "fit_svc fit_svmop",
    "companions.fit_svmop": "fit_cssvc fit_redsvm fit_nnor",
    "companions.fit_svr": "fit_svorim fit_svc",
    "companions.fit_opbe": "fit_npsvor fit_svorim",
    "companions.fit_kdlor": "fit_svorim fit_tlssvor select",
    "fit_gpor": "fit_svorim fit_pom conformal",
    "fit_xofm": "fit_boosting plot.score_functions plot.interaction",
    "companions.fit_ofmhs": "fit_xofm fit_pom_path fit_pom",
    "fit_boosting": "fit_xofm fit_svorim select plot.importance",
    "companions.fit_nnor": "fit_nnpom fit_elmor fit_lat",
    "companions.fit_nnpom": "fit_nnor fit_pom",
    "companions.fit_elmor": "fit_nnor fit_kdlor",
    "companions.fit_cnnor": "fit_nnor fit_gpor",
    "companions.fit_lit": "fit_lat fit_pom fit_svorex",
    "companions.fit_lat": "fit_lit fit_pom fit_svorim",
    "fit_pom": "fit_pom_path fit_clmm fit_ratio inference.anova",
    "fit_pom_path": "fit_pom fit_ratio companions.fit_ofmhs select",
    "fit_clmm": "fit_pom fit_ratio inference.lr_test plot.random_effects",
    "fit_ratio": "fit_pom fit_clmm fit_pom_path inference.anova inference.lr_test",
    # selection, comparison, prediction sets, files
    "select": "compare model_selection.nested cross_conformal plot.search",
    "compare": "select comparison.wilcoxon plot.errors_by_method",
    "model_selection.nested": "select compare",
    "model_selection.stratified_kfold": "stratified_holdout learning_splits",
    "model_selection.stratified_holdout": "stratified_kfold learning_splits",
    "model_selection.learning_splits": "stratified_holdout plot.learning_curve",
    "model_selection.gamma_range": "uniform_design select",
    "model_selection.uniform_design": "centred_discrepancy gamma_range",
    "model_selection.centred_discrepancy": "uniform_design",
    "comparison.friedman": "wilcoxon win_draw_loss plot.critical_difference",
    "comparison.wilcoxon": "friedman win_draw_loss compare",
    "comparison.win_draw_loss": "wilcoxon friedman",
    "conformal": "cross_conformal plot.prediction_sets",
    "cross_conformal": "conformal select plot.prediction_sets",
    "inference.anova": "lr_test fit_pom",
    "inference.lr_test": "anova fit_pom fit_clmm",
    "inference.add1": "drop1 step",
    "inference.augment": "residuals influence",
    "inference.predictions": "marginal_effects contrasts",
    "inference.confint": "tidy simultaneous_intervals",
    "inference.contrasts": "wald_test equality_test predictions",
    "inference.drop1": "add1 step anova",
    "inference.equality_test": "wald_test contrasts",
    "inference.glance": "tidy augment",
    "inference.for_marginaleffects": "predictions marginal_effects",
    "inference.goodness_of_fit": "hosmer_lemeshow proportional_odds_test",
    "inference.hosmer_lemeshow": "goodness_of_fit residuals proportional_odds_test",
    "inference.influence": "augment residuals",
    "inference.jeffreys": "confint fit_pom",
    "inference.marginal_effects": "predictions",
    "inference.monotone_effects": "tidy",
    "inference.negative_rows": "proportional_odds_test fit_ratio",
    "inference.odds_ratios": "confint marginal_effects",
    "inference.proportional_odds_test": "scale_test lr_test",
    "inference.residuals": "augment hosmer_lemeshow plot.residuals",
    "inference.scale_test": "proportional_odds_test lr_test",
    "inference.simulate": "residuals simulated_residuals",
    "inference.simulated_residuals": "residuals simulate plot.simulated_residuals",
    "inference.simultaneous_band": "simultaneous_intervals",
    "inference.simultaneous_intervals": "simultaneous_band confint",
    "inference.step": "drop1 add1",
    "inference.summary": "tidy glance",
    "inference.table": "tidy summary",
    "inference.tidy": "glance augment",
    "inference.wald_test": "equality_test drop1 lr_test",
    "load": "select conformal data.write_predictions",
    "show_config": "load",
    "data.blocks": "predictions write_predictions",
    "data.predictions": "write_predictions blocks",
    "data.write_predictions": "predictions blocks load",
    "sklearn.scorer": "select metrics.mae metrics.rps",
    "preprocessing.impute_low_rank": "select",
    "datasets.load_houses": "load_election compare",
    "datasets.load_election": "load_houses load_wine make_gaussians",
    "datasets.load_wine": "load_election fit_clmm",
    "datasets.make_gaussians": "make_tlssvor load_election",
    "datasets.make_tlssvor": "make_gaussians fit_tlssvor",
    # metrics
    "metrics.mae": "amae mmae mze rps confidence_interval",
    "metrics.amae": "mae mmae",
    "metrics.mmae": "mae amae ms",
    "metrics.mze": "accuracy accuracy_off mae",
    "metrics.accuracy": "mze accuracy_off gm",
    "metrics.accuracy_off": "accuracy mae",
    "metrics.gm": "ms gmsec accuracy",
    "metrics.ms": "gm mmae",
    "metrics.gmsec": "gm ms",
    "metrics.cem": "mae oci",
    "metrics.oci": "cem kappa",
    "metrics.kappa": "confidence_interval kendall oci",
    "metrics.kendall": "spearman gamma somers_d",
    "metrics.spearman": "kendall",
    "metrics.gamma": "somers_d c_index confidence_interval",
    "metrics.somers_d": "c_index gamma confidence_interval",
    "metrics.c_index": "somers_d gamma confidence_interval",
    "metrics.confidence_interval": "kappa somers_d gamma c_index",
    "metrics.confusion_matrix": "plot.confusion_matrix mze",
    "metrics.rps": "log_loss mae plot.reliability",
    "metrics.log_loss": "rps plot.reliability",
    # figures
    "plot.scores": "confusion_matrix reliability",
    "plot.confusion_matrix": "scores metrics.confusion_matrix",
    "plot.reliability": "scores metrics.rps metrics.log_loss",
    "plot.prediction_sets": "conformal cross_conformal",
    "plot.partial_dependence": "importance score_functions relevance",
    "plot.importance": "partial_dependence relevance contributions",
    "plot.relevance": "importance fit_gpor",
    "plot.coefficients": "random_effects residuals fit_pom",
    "plot.random_effects": "coefficients fit_clmm",
    "plot.residuals": "coefficients fit_pom",
    "plot.simulated_residuals": "residuals inference.simulated_residuals",
    "plot.score_functions": "interaction contributions fit_xofm",
    "plot.interaction": "score_functions contributions fit_xofm",
    "plot.contributions": "score_functions importance",
    "plot.search": "learning_curve select model_selection.nested",
    "plot.learning_curve": "search model_selection.learning_splits",
    "plot.errors_by_method": "boxplots_by_size critical_difference compare",
    "plot.boxplots_by_size": "errors_by_method critical_difference",
    "plot.critical_difference": "errors_by_method comparison.friedman",
}
ROOT = Path(__file__).parents[1]
_AFTER = re.compile(r"^(Notes|References|Examples)\n-+$", re.MULTILINE)
_SECTION = re.compile(r"See Also\n-+\n(.+(\n|$))+\n?")
_WIDTH = 84  # of the lines of a docstring, which the source indents by 4


def source_of(name: str) -> Path:
    """Return the source that defines a public function such as "metrics.mae"."""
    module, _, attribute = name.rpartition(".")
    function = getattr(
        importlib.import_module(f"ordinal.{module}".rstrip(".")), attribute
    )
    path = ROOT.joinpath(*function.__module__.split("."))
    package = path / "__init__.py"
    return package if package.exists() else path.with_suffix(".py")


class Function(NamedTuple):
    """Function of a source, with its docstring as the source has it."""

    node: ast.FunctionDef
    written: str  # escapes are not resolved

    @property
    def docstring(self) -> str:
        """Return the docstring without indentation."""
        return inspect.cleandoc(self.written)


Functions = dict[str, Function]


def functions(source: str) -> Iterator[Function]:
    """Yield the functions of a source that have docstrings."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node):
            literal = ast.get_source_segment(source, node.body[0]) or ""
            yield Function(node, literal.removeprefix('"""').removesuffix('"""'))


def entries_of(name: str, found: Functions) -> list[str]:
    """Return the entries of a function's parameters in the order of its signature."""
    node, entries = found[name].node, parameters(found[name].docstring)
    other, own = INHERITED.get(name, ("", ""))
    if other:
        shared = {
            key: entry
            for entry in entries_of(other, found)
            if (key := entry.partition(" : ")[0]) not in own.split()
        }
        entries = {**entries, **shared}
    by_name = {arg: entry for key, entry in entries.items() for arg in key.split(", ")}
    given = [arg.arg for arg in (*node.args.args, *node.args.kwonlyargs)]
    missing = [arg for arg in given if arg not in by_name]
    if missing:
        raise SystemExit(f"{name} does not describe {', '.join(missing)}")
    return list(dict.fromkeys(by_name[arg] for arg in given))


def with_parameters(docstring: str, name: str, found: Functions) -> str:
    """Return the docstring of a `fit_*` function with current shared parameters."""
    begin = docstring.index("Parameters\n----------\n")
    end = docstring.index("\n\nReturns\n")
    entries = "\n".join(entries_of(name, found))
    return f"{docstring[:begin]}Parameters\n----------\n{entries}{docstring[end:]}"


def with_related(docstring: str, name: str, summaries: dict[str, str]) -> str:
    """Return a docstring with a current section "See Also"."""
    module = name.rpartition(".")[0]
    lines = ["See Also", "--------"]
    for related in SEE_ALSO[name].split():
        if (near := f"{module}.{related}") in SEE_ALSO:
            full, shown = near, related
        else:  # the functions of `ordinal` itself need no module among themselves
            plain = not module and "." not in related
            full, shown = related, related if plain else f"ordinal.{related}"
        entry = f"{shown} : {summaries[full]}"
        lines += textwrap.wrap(entry, _WIDTH, subsequent_indent="    ")
    docstring = _SECTION.sub("", docstring)
    section = "\n".join(lines)
    if after := _AFTER.search(docstring):
        begin, end = docstring[: after.start()], docstring[after.start() :]
        return f"{begin}{section}\n\n{end}"
    return f"{docstring.rstrip()}\n\n{section}"


def main() -> None:
    """Compare the sources with what they should be, or write them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the sources")
    args = parser.parse_args()
    places = {name: source_of(name) for name in SEE_ALSO}
    sources = {path: path.read_text() for path in sorted({*places.values()})}
    read = {
        (path, function.node.name): function
        for path, text in sources.items()
        for function in functions(text)
    }
    found = {name: read[path, name.rpartition(".")[2]] for name, path in places.items()}
    summaries = {
        name: " ".join(function.docstring.split("\n\n")[0].split())
        for name, function in found.items()
    }
    stale = []
    for path, text in sources.items():
        new = text
        for name in (name for name in found if places[name] == path):
            docstring = found[name].docstring
            if name in INHERITED:
                docstring = with_parameters(docstring, name, found)
            docstring = with_related(docstring, name, summaries)
            indented = textwrap.indent(docstring, "    ").lstrip() + "\n    "
            new = new.replace(f'"""{found[name].written}"""', f'"""{indented}"""', 1)
        if new == text:
            continue
        stale.append(path)
        print(path.relative_to(ROOT))
        if args.write:
            path.write_text(new)
    if stale and not args.write:
        raise SystemExit("run python tools/docstrings.py --write")


if __name__ == "__main__":
    main()
