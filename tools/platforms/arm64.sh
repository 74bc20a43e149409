#!/usr/bin/env bash
# Fits every method, or runs a command, on an emulated arm64 processor:
#
#   tools/platforms/arm64.sh ROOT FITS.npz
#   tools/platforms/arm64.sh ROOT FITS.npz pytest -q tests/test_kernels.py
#
# ROOT is a folder with Debian for arm64, which is made if it does not exist; FITS.npz is
# what tools/platforms/fits.py compares with that of another platform. Needs root's
# rights, Debian's debootstrap and qemu-user-static, and what cross.py needs. Kernels are
# compiled by zig for the limited API, without OpenMP; wheels come from the index.
set -euo pipefail
root=$(realpath -m "$1") fits=$(realpath -m "$2")
shift 2
cd "$(dirname "$0")/../.."

# the kernel has to know what runs programs of that processor, in a new root as well
if [ ! -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ]; then
  [ -e /proc/sys/fs/binfmt_misc/register ] || mount -t binfmt_misc binfmt /proc/sys/fs/binfmt_misc
  cat /usr/lib/binfmt.d/qemu-aarch64.conf > /proc/sys/fs/binfmt_misc/register
fi

# Debian's packages are unpacked rather than installed: their scripts would run emulated,
# for many minutes, and Python needs none of them.
if [ ! -d "$root" ]; then
  debootstrap --foreign --arch=arm64 --variant=minbase --include=python3,libgomp1 trixie "$root"
  for package in "$root"/var/cache/apt/archives/*.deb; do dpkg -x "$package" "$root"; done
fi
version=$(basename "$(find "$root/usr/bin" -name 'python3.[0-9]*' | head -1)")
version=${version#python}

there=$root/opt/ordinal
rm -rf "$there" && mkdir -p "$there/site" "$there/wheels"
platforms=(--platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64
  --platform manylinux2014_aarch64)
python -m pip download -q -d "$there/wheels" "${platforms[@]}" --python-version "$version" \
  --only-binary=:all: numpy scipy scikit-learn pytest hypothesis
for wheel in "$there"/wheels/*.whl; do python -m zipfile -e "$wheel" "$there/site"; done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
built=${BUILT:-$scratch} # a folder that cross.py has kept
target=aarch64-linux-gnu.2.17
[ -d "$built/$target" ] || python tools/platforms/cross.py --keep "$built" --targets $target \
  --setup=-Dpython.allow_limited_api=true
cp -r ordinal "$there/site/"
cp "$built/$target"/*.so "$there/site/ordinal/_solvers/"
cp -r tests tools docs pyproject.toml "$there/"

inside() {
  chroot "$root" env PYTHONPATH=/opt/ordinal/site HOME=/tmp sh -c 'cd /opt/ordinal && exec "$@"' sh "$@"
}
if [ $# = 0 ]; then
  inside "python$version" tools/platforms/fits.py write /tmp/fits.npz
  cp "$root/tmp/fits.npz" "$fits"
elif [ "$1" = pytest ]; then
  shift
  inside "python$version" -m pytest -p no:cacheprovider "$@"
else
  inside "$@"
fi
