"""Says which files of docs/data_sets.md a folder holds, and copies what it lacks.

    python tools/reproduce/check.py --data FOLDER [--mirror MIRROR] [--sets NAME ...]

A set is NAME.csv.gz: a header, then features and the target in the last column. "ok" is
that of the very file which the tables were made of, by its sha256 without compression.
Partitions are splits/NAME/KIND.npz, by the sha256 of the file. The exit code is 1 if
anything is missing.

MIRROR is the address of a folder of that layout: https://, http:// or file://. Most of
the collections state no licence, so the project keeps no mirror of its own. What the
folder lacks, or has in another version with --replace, is fetched; a file whose
checksum is another one is not written.
"""

import gzip
import hashlib
import sys
import urllib.error
import urllib.request
from pathlib import Path

from _protocol import NO_DATA, options

# name, rows, features, checksum; kind and checksum of each file of partitions
SETS = """
ERA 1000 4 ceee2ec3dd19 orreview_30holdout:f59d44ddad57
LEV 1000 4 48fd503cab58 orreview_30holdout:af0dab2a68da
abalone 4177 10 805916677b75 chu_equallength:31cf244dca14
 orreview_equalfreq:968400359a8a
balance-scale 625 4 324532b622fe orreview_30holdout:79fa21e1c1a1
bank32nh 8192 32 50058e8d2fd0 orreview_equalfreq:3735fefd4974
bondrate 57 37 1dcf393fa931 orreview_30holdout:8b21bf5998ca
boston_housing 506 13 2a7da5cfdc38 chu_equallength:82313363259e
 orreview_equalfreq:aa8bd5fc7dda
california_housing 20640 8 57379d8e0792 npsvor_large_equalfreq:4909763f5439
 orreview_equalfreq:768c67f7b5fa
car 1728 21 6b7826acdd76 orreview_30holdout:75dcaed319c8
contact-lenses 24 6 5b85dac28ab6 orreview_30holdout:71fb0048d36c
cpu_act 8192 21 c4af299a8cd8 npsvor_large_equalfreq:e93577d0abf3
 orreview_equalfreq:e717af0141ae
diabetes 43 2 692ca145a95c chu_equallength:7af3a1bf25af
g_abalone 4177 7 45c02e9dca81
g_affairs 265 17 d7e8d3fc974a
g_auto_riskness 160 15 b2163eb09907
house_16H 22784 16 1401bae1d875 orreview_equalfreq:f460ae83e186
johnson_albert_grades 30 2 c1d75f37b12c
pasture 36 25 0cc2ae7069c4 orreview_30holdout:e0b515266f8a
pyrimidines 74 27 3f4d393932b6 chu_equallength:e1be3ed783b7
 orreview_equalfreq:dbe742dcfba1
squash-stored 52 51 5347dacffc73 orreview_30holdout:8237fa02ff08
tae 151 54 ad85aa37aff3 orreview_30holdout:99651ec5887f
toy 300 2 5f2a5c7bc59a orreview_30holdout:451304391175
triazines 186 60 d49c195034cc chu_equallength:1ffe0e59b642
"""


def files():
    """Yield the name, size and path of each file, and the beginning of its checksum."""
    for line in SETS.strip().replace("\n ", " ").split("\n"):
        name, rows, columns, known, *kinds = line.split()
        yield name, f"{rows:>6} rows {columns:>3} features", f"{name}.csv.gz", known
        for kind, digest in (entry.split(":") for entry in kinds):
            yield name, kind, f"splits/{name}/{kind}.npz", digest


def state(folder, path, known):
    """Say "ok", "missing" or "another file" of a file of the folder."""
    file = Path(folder, path)
    if not file.exists():
        return "missing"
    return "ok" if digest(file.read_bytes(), path).startswith(known) else "another file"


def digest(content, path):
    """The checksum of a file's content, of a table without its compression."""
    if path.endswith(".gz"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError):  # not a compressed file
            return ""
    return hashlib.sha256(content).hexdigest()


def fetched(mirror, folder, path, known):
    """Copy a file from the mirror, and say "fetched", or why it was not."""
    try:
        with urllib.request.urlopen(f"{mirror}/{path}", timeout=60) as answer:
            content = answer.read()
    except (OSError, urllib.error.URLError) as error:
        return f"missing: {error}"
    if not digest(content, path).startswith(known):
        return "missing: the checksum of the mirror's file differs"
    file = Path(folder, path)
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.part")
    part.write_bytes(content)
    part.replace(file)  # whole or not at all
    return "fetched"


def main():
    parser = options(__doc__, sets=dict.fromkeys(name for name, *_ in files()))
    parser.add_argument("--mirror", help="address of a folder to copy from")
    parser.add_argument("--replace", action="store_true", help="other versions, too")
    args = parser.parse_args()
    if args.data is None:
        raise SystemExit(NO_DATA)
    wanted = {"missing", "another file"} if args.replace else {"missing"}
    n_missing = 0
    for name, what, path, known in files():
        if name in args.sets:
            found = state(args.data, path, known)
            if args.mirror and found in wanted:
                found = fetched(args.mirror.rstrip("/"), args.data, path, known)
            n_missing += found.startswith("missing")
            print(f"{name:20} {what:24} {found}", flush=True)
    sys.exit(n_missing > 0)


if __name__ == "__main__":
    main()
