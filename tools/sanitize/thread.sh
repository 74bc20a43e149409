#!/usr/bin/env bash
# Runs a command, or else the tests of the kernels that use threads, on a build with
# ThreadSanitizer and Cython's index checks:
#
#   tools/sanitize/thread.sh
#   tools/sanitize/thread.sh python-thread tools/fuzz --memory 0 --calls 1000
#   OPENMP=disabled tools/sanitize/thread.sh     # a pool's threads instead of OpenMP's
#
# Prints the reports of the command and of all processes it started, and fails if there
# is one. Needs clang with its sanitizer runtimes, LLVM's OpenMP with Archer, which tells
# the sanitizer of OpenMP's barriers (Debian: clang libomp-dev libclang-rt-dev), and a
# Python with a shared library. The build is installed into an environment of its own;
# VENV names one to use and to keep, and BUILT=1 says that the build is in it already.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PIP_DISABLE_PIP_VERSION_CHECK=1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
venv=${VENV:-$scratch/venv}
[ -d "$venv" ] || python3 -m venv "$venv"
PATH=$venv/bin:$PATH

if [ -z "${BUILT:-}" ]; then
  CC=clang pip install -q -Csetup-args=-Dbuildtype=debug -Csetup-args=-Doptimization=1 \
    -Csetup-args=-Db_sanitize=thread -Csetup-args=-Db_lundef=false \
    -Csetup-args=-Dopenmp="${OPENMP:-enabled}" '.[test]'

  # The runtime cannot be loaded before a Python that is built without it. This one is
  # linked with it, and is otherwise the same interpreter.
  echo '#include <Python.h>
    int main(int argc, char **argv) { return Py_BytesMain(argc, argv); }' \
    >"$scratch/python.c"
  library=$(python -c 'import sysconfig; print(sysconfig.get_config_var("LIBDIR"))')
  clang -fsanitize=thread "$scratch/python.c" -o "$venv/bin/python-thread" \
    -I"$(python -c 'import sysconfig; print(sysconfig.get_path("include"))')" \
    -L"$library" -Wl,-rpath,"$library" \
    -l"$(python -c 'import sysconfig; print("python" + sysconfig.get_config_var("LDVERSION"))')"
fi

archer=$(dirname "$(readlink -f "$(command -v clang)")")/../lib/libarcher.so
[ -f "$archer" ] || { echo "there is no $archer"; exit 1; }
# What is built without the sanitizer (Python, numpy, its BLAS) is not looked at: the C
# library's functions are therefore not either where they are called from there.
run=(env OMP_TOOL_LIBRARIES="$archer" OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1
  TSAN_OPTIONS="ignore_noninstrumented_modules=1:log_path=$scratch/report:exitcode=0")

found() { compgen -G "$scratch/report*" >/dev/null; }

clang -fsanitize=thread -fopenmp -shared -fPIC tools/sanitize/broken.c \
  -o "$scratch/broken.so"
"${run[@]}" python-thread -c "import ctypes; ctypes.CDLL('$scratch/broken.so').race()"
found || { echo "no report of the fault 'race'"; exit 1; }
rm "$scratch"/report*

if [ $# -eq 0 ]; then
  # of all that `threads` names: every method, and the kernels by themselves
  set -- python-thread -P -m pytest -q -m "" -p no:faulthandler -k "(threads or byte or side or parts) and not forked" \
    tests/test_{methods,ep,kernels,laplace,linalg,ordinal_probit,pair_smo,parts}.py
fi
status=0
"${run[@]}" "$@" || status=$?
if found; then
  cat "$scratch"/report*
  exit 1
fi
exit "$status"
