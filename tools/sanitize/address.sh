#!/usr/bin/env bash
# Runs a command, or else the tests that run kernels, on a build with AddressSanitizer,
# UndefinedBehaviorSanitizer and Cython's index checks:
#
#   tools/sanitize/address.sh
#   tools/sanitize/address.sh pytest tests/test_xofm.py
#   tools/sanitize/address.sh python tools/fuzz --memory 0 --calls 20000
#
# Prints the reports of the command and of all processes it started, and fails if there
# is one. Needs gcc with its libasan and libubsan. The build is installed into an
# environment of its own; VENV names one to use and to keep, and BUILT=1 says that the
# build is in it already.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PIP_DISABLE_PIP_VERSION_CHECK=1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
venv=${VENV:-$scratch/venv}
[ -d "$venv" ] || python3 -m venv "$venv"
PATH=$venv/bin:$PATH

if [ -z "${BUILT:-}" ]; then
  # -O1: half the time to compile, a quarter more to run, and stack traces one can read
  CC=gcc pip install -q -Csetup-args=-Dbuildtype=debug -Csetup-args=-Doptimization=1 \
    -Csetup-args=-Db_sanitize=address,undefined -Csetup-args=-Db_lundef=false \
    -Csetup-args=-Dc_args='-fsanitize=float-cast-overflow -fno-sanitize-recover=all -fno-omit-frame-pointer' \
    '.[test]' pytest-xdist
fi

# The runtime has to be there before Python, which is built without it. Python leaves
# memory to the system when it ends, so leaks are not looked for; blocks come from the
# C library rather than from Python's pools, so that their ends are guarded. An array
# that is too large is a MemoryError, as without the sanitizer. Files take the reports, as
# pytest keeps what is printed and a test may expect its child to fail.
run=(env LD_PRELOAD="$(gcc -print-file-name=libasan.so)" PYTHONMALLOC=malloc
  ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4000:log_path=$scratch/report"
  UBSAN_OPTIONS="print_stacktrace=1:log_path=$scratch/report")
(cd tests && "${run[@]}" python -c '
import ordinal
assert ordinal.show_config()["index_checks"]')

if [ $# -eq 0 ]; then
  # all but the tests of what runs no kernel, and of how long a call takes
  set -- pytest -q -n "$(nproc)" -p no:faulthandler
  for name in architecture cli comparison datasets designs docs frames fuzz messages \
      methods_control methods_files methods_frames methods_input metrics model_files \
      model_selection plot problem search table threads writing; do
    set -- "$@" "--ignore=tests/test_$name.py"
  done
fi
status=0
"${run[@]}" "$@" || status=$?
if reports=$(grep -lE "ERROR: AddressSanitizer|runtime error:" "$scratch"/report* 2>/dev/null); then
  cat $reports
  exit 1
fi
exit "$status"
