"""Says which data sets of docs/data_sets.md a folder holds.

    python tools/reproduce/check.py --data FOLDER

A set is NAME.csv.gz: a header, then features and the target in the last column. "ok" is
that of the very file which the tables were made of, by its sha256 without compression.
Partitions are splits/NAME/KIND.npz. The exit code is 1 if anything is missing.
"""

import gzip
import hashlib
import sys
from pathlib import Path

from _protocol import options

SETS = """
ERA 1000 4 ceee2ec3dd19 orreview_30holdout
LEV 1000 4 48fd503cab58 orreview_30holdout
abalone 4177 10 805916677b75 chu_equallength orreview_equalfreq
balance-scale 625 4 324532b622fe orreview_30holdout
bank32nh 8192 32 50058e8d2fd0 orreview_equalfreq
bondrate 57 37 1dcf393fa931 orreview_30holdout
boston_housing 506 13 2a7da5cfdc38 chu_equallength orreview_equalfreq
california_housing 20640 8 57379d8e0792 npsvor_large_equalfreq orreview_equalfreq
car 1728 21 6b7826acdd76 orreview_30holdout
contact-lenses 24 6 5b85dac28ab6 orreview_30holdout
cpu_act 8192 21 c4af299a8cd8 npsvor_large_equalfreq orreview_equalfreq
diabetes 43 2 692ca145a95c chu_equallength
g_abalone 4177 7 45c02e9dca81
g_affairs 265 17 d7e8d3fc974a
g_auto_riskness 160 15 b2163eb09907
house_16H 22784 16 1401bae1d875 orreview_equalfreq
johnson_albert_grades 30 2 c1d75f37b12c
pasture 36 25 0cc2ae7069c4 orreview_30holdout
pyrimidines 74 27 3f4d393932b6 chu_equallength orreview_equalfreq
squash-stored 52 51 5347dacffc73 orreview_30holdout
tae 151 54 ad85aa37aff3 orreview_30holdout
toy 300 2 5f2a5c7bc59a orreview_30holdout
triazines 186 60 d49c195034cc chu_equallength
"""


def main():
    parser = options(__doc__)
    folder = parser.parse_args().data
    if folder is None:
        parser.error("give --data FOLDER or set ORDINAL_DATA")
    missing = 0
    for line in SETS.split("\n")[1:-1]:
        name, rows, columns, known, *kinds = line.split()
        file = Path(folder) / f"{name}.csv.gz"
        state = "missing"
        if file.exists():
            digest = hashlib.sha256(gzip.open(file).read()).hexdigest()
            state = "ok" if digest.startswith(known) else "another file"
        lack = [
            k for k in kinds if not (Path(folder) / f"splits/{name}/{k}.npz").exists()
        ]
        missing += (state == "missing") + len(lack)
        lacks = f"; no partitions {', '.join(lack)}" * bool(lack)
        print(f"{name:20} {rows:>6} rows {columns:>3} features  {state}{lacks}")
    sys.exit(missing > 0)


if __name__ == "__main__":
    main()
