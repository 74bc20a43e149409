#!/usr/bin/env bash
# Which lines and branches the tests run, of Python, Cython and C:
#
#   tools/coverage/run.sh OUT [-k npsvor tests/test_npsvor.py ...]
#
# All tests by default. OUT/python.txt, kernels.txt and branches.txt have the figures by
# file and the lines that did not run, OUT/unreached.txt the public functions that no test
# has run. Needs gcc, and twice the time of the tests. The build is installed into an
# environment of its own; VENV names one to use and to keep.
#
# The kernels are compiled to count what runs by gcc's --coverage, so that lines within
# `nogil` are counted, too, for little time; they are optimised as ever, without which the
# tests would take hours. gcc counts before it vectorises; some conditions have become
# minima and maxima by then. Branches are those of lines with a condition or a loop.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PIP_DISABLE_PIP_VERSION_CHECK=1
mkdir -p "$1"
out=$(realpath "$1")
shift
venv=${VENV:-$out/venv}
[ -d "$venv" ] || python3 -m venv "$venv"
PATH=$venv/bin:$PATH

CC=gcc pip install -q -Cbuild-dir="$out/build" -Csetup-args=-Db_coverage=true \
  -Csetup-args=-Dc_args=-fprofile-update=atomic '.[test]' 'coverage>=7.10' 'gcovr>=8.3'
find "$out" -name '*.gcda' -delete -o -name '.coverage*' -delete

# A press of Ctrl-C that falls into coverage's own code leaves a lock of it held, and
# -W error makes errors of its warnings: tests of these cannot end, or fail.
not=(test_methods_control.py::test_ctrl_c_ends_a_fit
  test_pool.py::test_no_press_is_lost_and_nobody_waits_for_ever
  test_embedding.py::test_fits_in_another_package)

export COVERAGE_FILE=$out/.coverage COVERAGE_RCFILE=$PWD/tools/coverage/coverage.ini
status=0
# -P: python would find the source tree first, which is not compiled
python -P -m coverage run "$venv/bin/pytest" -q -m "" -p no:cacheprovider \
  -n "$(nproc)" --dist worksteal "${not[@]/#/--deselect=tests/}" "$@" || status=$?
coverage combine -q
coverage json -q -o "$out/python.json"
coverage report --show-missing >"$out/python.txt"
python -P tools/coverage/unreached.py "$out/python.json" >"$out/unreached.txt" || true
# a line that is compiled for several vector widths has run if it has for any of them
kernels() {
  gcovr --filter ordinal --include-internal-functions --merge-lines \
    --gcov-ignore-errors=all --exclude-branches-by-pattern \
    '(?!.*(\b(if|elif|else|while|for|and|or)\b|&&|\|\||\?))' "$@" "$out/build"
}
kernels --txt "$out/kernels.txt"
kernels --txt "$out/branches.txt" --txt-metric branch
tail -qn 2 "$out"/{python,kernels,branches}.txt
exit "$status"
