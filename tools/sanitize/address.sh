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

flags='-fsanitize=float-cast-overflow -fno-sanitize-recover=all -fno-omit-frame-pointer'
if [ -z "${BUILT:-}" ]; then
  # -O1 takes half the time to compile, and leaves stack traces that one can read
  CC=gcc pip install -q -Csetup-args=-Dbuildtype=debug -Csetup-args=-Doptimization=1 \
    -Csetup-args=-Db_sanitize=address,undefined -Csetup-args=-Db_lundef=false \
    -Csetup-args=-Dc_args="$flags" '.[test]'
fi

# The runtime has to be there before Python, which is built without it, and C++'s beside
# it, or an exception of C++ (matplotlib throws some) ends the process. Python leaves
# memory to the system when it ends, so leaks are not looked for; blocks come from the
# C library rather than from Python's pools, so that their ends are guarded. An array
# that is too large is a MemoryError, as without the sanitizer. Files take the reports of
# the first sanitizer, as a test may expect its child to fail; the second one knows only
# the standard error, which pytest must not keep to itself.
run=(env PYTHONMALLOC=malloc OMP_WAIT_POLICY=passive
  LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libstdc++.so)"
  ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4000:log_path=$scratch/report"
  UBSAN_OPTIONS=print_stacktrace=1)
sanitized() { "${run[@]}" "$@" 2>&1 | tee "$scratch/said"; }
found() { grep -qsE "ERROR: AddressSanitizer|AddressSanitizer: CHECK|^[^ ]+: runtime error:" "$scratch"/{said,report*}; }

(cd tests && "${run[@]}" python -c '
import ordinal
assert ordinal.show_config()["index_checks"]')
gcc -fsanitize=address,undefined $flags -shared -fPIC tools/sanitize/broken.c \
  -o "$scratch/broken.so"
for fault in overrun overflow; do
  sanitized python -c "import ctypes; ctypes.CDLL('$scratch/broken.so').$fault()" \
    >/dev/null || true
  found || { echo "no report of the fault '$fault'"; exit 1; }
  rm -f "$scratch"/report*
done

if [ $# -eq 0 ]; then
  # The tests of kernels and of the methods that drive them. Slow tests run the same
  # kernels for more methods and options; .ci/long runs all of them on this build.
  set -- pytest -q -n "$(nproc)" --dist worksteal -p no:faulthandler --capture=sys \
    --hypothesis-profile=sanitized -k "not (cnnor or elmor or kdlor or probability)"
  for name in active_set covariance cumulative edges ep gpor kernels laplace lbfgs linalg lit_lat \
      many_groups methods npsvor ofmhs ordinal_probit pair_smo parts proximal pom_path pom_sparse \
      svm_programs svor tlssvor xofm; do
    set -- "$@" "tests/test_$name.py"
  done
fi
status=0
sanitized "$@" || status=$?
if found; then
  cat "$scratch"/report* 2>/dev/null || true
  status=1
fi
exit "$status"
