"""Runs every table and figure of docs/results.md again, and keeps what they print.

    python tools/reproduce/all.py --data FOLDER --out OUT [--quick]

The commands are those of the page that name a script of this folder, --processes at a
time, each with one thread. What a command prints is OUT/NUMBER-SCRIPT.txt; while it
runs, or if it fails, the file ends in .part. The same command goes on where it was
killed: it leaves out what is finished, and scripts with --store find their finished
fits. Whole it takes many hours.

--quick runs every script on few partitions of its smallest sets instead, in less than
10 minutes on two processors: whether all of them work, and about what they give.
"""

import os
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from _protocol import options

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs/results.md"
# the last writes into the page, the others are not tables
LEFT_OUT = ("all.py", "check.py", "start_here.py")
QUICK = """
svor.py --sets pyrimidines boston_housing --splits 2 --coarse
gpor.py --sets diabetes pyrimidines --splits 3
genes.py --genes 100 --splits 4
movielens.py --rows 50 100 --splits 2 --users 100
xofm.py --sets g_auto_riskness --splits 2 --methods paper ours xofm lit svr ofmhs
tlssvor_tables.py --sets pyrimidines --splits 2
tlssvor.py --sets 2
npsvor.py --sets contact-lenses pasture toy --splits 2
npsvor_figures.py --figures 7 --rows 100 300 --splits 3
pictures_of_papers.py --rows 100 200 400 --repeat 1
"""
STORED = ("svor.py", "npsvor.py", "xofm.py", "tlssvor_tables.py", "npsvor_figures.py")


def of_page(text):
    """The arguments of each command of the page, the script first."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)
    lines = "".join(blocks).replace("\\\n", "").splitlines()
    for line in lines:
        if found := re.search(r"tools/reproduce/(\S+\.py.*)$", line):
            script, *arguments = shlex.split(found[1])
            if script not in LEFT_OUT:
                yield [script, *without(arguments, "--data", "--png", "--store")]


def without(arguments, *names):
    """Arguments without these options and the value of each."""
    kept, rest = [], list(arguments)
    while rest:
        if rest[0] in names:
            del rest[:2]
        else:
            kept.append(rest.pop(0))
    return kept


def run(args, number, command):
    """Run a command if it is not finished; whether it is then."""
    script, *arguments = command
    done = Path(args.out, f"{number:02}-{Path(script).stem}.txt")
    shown = " ".join(command)
    if done.exists() and done.read_text().startswith(f"$ {shown}\n"):
        print(f"finished before: {shown}", flush=True)
        return True
    if script in STORED:
        arguments += ["--store", str(Path(args.out, "store"))]
    began, part = time.perf_counter(), done.with_suffix(".part")
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    environment["ORDINAL_NUM_THREADS"] = "1"
    if args.data:
        environment["ORDINAL_DATA"] = str(Path(args.data).resolve())
    with part.open("w") as out:
        out.write(f"$ {shown}\n")
        out.flush()
        code = subprocess.run(
            [sys.executable, "-W", "ignore", str(HERE / script), *arguments],
            stdout=out, stderr=subprocess.STDOUT, env=environment, check=False,
        ).returncode  # fmt: skip
    if code == 0:
        part.replace(done)
    end = "finished" if code == 0 else f"FAILED, see {part}"
    print(f"{end} in {time.perf_counter() - began:.0f} s: {shown}", flush=True)
    return code == 0


def main():
    parser = options(__doc__)
    parser.add_argument("--out", required=True, metavar="OUT", help="folder of outputs")
    parser.add_argument("--quick", action="store_true", help="small versions of all")
    parser.add_argument("--processes", type=int, default=2, help="commands at a time")
    args = parser.parse_args()
    Path(args.out).mkdir(parents=True, exist_ok=True)
    quick = map(shlex.split, QUICK.strip().split("\n"))
    commands = list(quick if args.quick else of_page(PAGE.read_text()))
    with ThreadPoolExecutor(args.processes) as pool:
        tasks = [pool.submit(run, args, k, of) for k, of in enumerate(commands, 1)]
        finished = sum(task.result() for task in tasks)
    print(f"{finished} of {len(commands)} finished")
    sys.exit(finished < len(commands))


if __name__ == "__main__":
    main()
