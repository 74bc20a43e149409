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

if [ $# -gt 0 ]; then mkdir -p "$1" && cp "$work"/first/* "$1"; fi
cd "$work"
sums() { (cd "$1" && sha256sum -- *); }
sums first
diff <(sums first) <(sums second) && exit
for side in first second; do  # which members of the wheels have another time or content
  python -m zipfile -l "$side"/*.whl > "$side.members"
  python -m zipfile -e "$side"/*.whl "files of $side"
done
diff first.members second.members || true
diff -rq files\ of\ * || true
exit 1
