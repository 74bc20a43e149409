#!/usr/bin/env bash
# Do the tests notice? mutmut changes the input layer or the metrics in one place at a
# time, and runs the tests that reach this place:
#
#   tools/mutants.sh OUT metrics
#   tools/mutants.sh OUT input [ordinal._input.checks.*]
#
# Takes an hour and several; what is done is kept in OUT, so that the command goes on
# where it ended. OUT/survivors.txt has the changes that no test has noticed;
# docs/reliability.md says which of them change nothing. mutmut imports what it has
# changed from a folder of its own, to which the compiled modules are copied.
set -euo pipefail
cd "$(dirname "$0")/.."
export PIP_DISABLE_PIP_VERSION_CHECK=1 OPENBLAS_NUM_THREADS=1
mkdir -p "$1"
out=$(realpath "$1")
part=$2
shift 2
case $part in
  metrics) mutated='ordinal/metrics/*' tests='metrics comparison' ;;
  input) mutated='ordinal/_input/*' tests='problem refused messages frames unnamed_columns table sources data
    basis_choice designs dask fields methods_input preprocessing table_preprocessor pom_sparse' ;;
  *) echo "metrics or input, not $part"; exit 2 ;;
esac

if [ ! -d "$out/venv" ]; then
  python3 -m venv "$out/venv"
  "$out/venv/bin/pip" install -q '.[test]' mutmut==3.8.1
fi
PATH=$out/venv/bin:$PATH
work=$out/$part
if [ ! -d "$work" ]; then
  mkdir "$work"
  cp -r tests pyproject.toml "$work"
  cp -r "$(cd tests && python -c 'import ordinal; print(ordinal.__path__[0])')" "$work"
  {
    printf '[mutmut]\nsource_paths=\n    ordinal\nonly_mutate=\n    %s\n' "$mutated"
    printf 'track_dependencies=False\npytest_add_cli_args=\n'
    printf '    %s\n' -q -p no:xdist -p no:cacheprovider --hypothesis-profile=sanitized
    printf 'pytest_add_cli_args_test_selection=\n'
    for name in $tests; do printf '    tests/test_%s.py\n' "$name"; done
  } >"$work/setup.cfg"
fi
cd "$work"
mutmut run --max-children "$(nproc)" "$@"
mutmut results >results.txt
grep -E 'survived|no tests' results.txt | sed 's/:.*//; s/^ *//' | while read -r name; do
  mutmut show "$name"
done >"$out/survivors.txt"
echo "$(grep -c survived results.txt) survived; see $out/survivors.txt"
