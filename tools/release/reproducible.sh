#!/usr/bin/env bash
# Builds the source archive and the wheel for the limited API of the last commit twice and
# compares their bytes. What may not matter differs: the source and the build folder, the
# time of day, its zone, the language, and the number of compilers at once. What does
# matter is the same for both: compilers, versions of what builds, and the permissions of
# new files (umask 022), which a wheel takes over from the source.
#
#   tools/release/reproducible.sh [FOLDER]
#
# leaves the first archive and wheel in FOLDER, if one is given. PIP_FLAGS are those of
# `pip wheel`, as --no-build-isolation where meson-python and Cython are installed; else
# the newest ones are taken, for both builds the same if no release comes between them.
# 100 s of processor time for both; 8 to 13 minutes on two processors with much else to do.
set -euo pipefail
root=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
read -ra flags <<< "${PIP_FLAGS:-}"

# of the commit: for the times of files in the archives
commit=$(git -C "$root" rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct "$commit")
export SOURCE_DATE_EPOCH PIP_DISABLE_PIP_VERSION_CHECK=1

made() { # NAME SOURCE JOBS
  local out=$work/$1 source=$work/$2
  mkdir -p "$out" "$(dirname "$source")"
  git clone -q --no-hardlinks "$root" "$source"
  git -C "$source" checkout -q --detach "$commit"
  (cd "$source" && python -c "
import sys, mesonpy
print(mesonpy.build_sdist(sys.argv[1]))" "$out" > /dev/null)
  (cd "$work" && python -m pip wheel -q --no-deps ${flags[@]+"${flags[@]}"} -w "$out" "$source" \
    -Cbuild-dir="$work/build-of-$1" -Ccompile-args="-j$3" \
    -Csetup-args=-Dpython.allow_limited_api=true)
}

umask 022
(TZ=UTC LC_ALL=C made first src 2)
(TZ=Asia/Kathmandu LC_ALL=C.UTF-8 made second another/folder/with/a/longer/name 1)

python - "$work/first" "$work/second" <<'PYTHON'
import hashlib
import sys
import zipfile
from pathlib import Path

first, second = map(Path, sys.argv[1:])
names = sorted(path.name for path in first.iterdir())
assert names == sorted(path.name for path in second.iterdir()) and len(names) == 2, names
different = False
for name in names:
    a, b = (first / name).read_bytes(), (second / name).read_bytes()
    print(hashlib.sha256(a).hexdigest(), len(a), name, "same" if a == b else "DIFFERS")
    different |= a != b
    if a != b and name.endswith(".whl"):
        with zipfile.ZipFile(first / name) as x, zipfile.ZipFile(second / name) as y:
            if x.namelist() != y.namelist():
                print("  order or names of members")
            for member in sorted(set(x.namelist()) & set(y.namelist())):
                if x.read(member) != y.read(member):
                    print("  content of", member)
                i, j = x.getinfo(member), y.getinfo(member)
                if (i.date_time, i.external_attr) != (j.date_time, j.external_attr):
                    print("  time or permissions of", member)
sys.exit(different)
PYTHON
if [ $# -gt 0 ]; then mkdir -p "$1" && cp "$work"/first/* "$1"; fi
