"""The process in which calls are made: one line of JSON in, one line out.

    python tools/fuzz/child.py FD MEGABYTES

writes what became of each call to the file descriptor FD, and lets itself have no more
memory than that (0: as much as there is). A crash ends this process alone. What a call
names as a path lies in the folder that it is started in.
"""

import faulthandler
import json
import os
import resource
import sys
import warnings
from dataclasses import asdict

# Before numpy is imported: many children, each with a thread a processor, would spend
# their time on waiting for one another.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("ORDINAL_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "agg")


def main() -> None:
    channel, megabytes = os.fdopen(int(sys.argv[1]), "w"), int(sys.argv[2])
    faulthandler.enable()
    if megabytes:
        limit = megabytes * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    from call import Call, Outcome
    from judge import judge

    warnings.simplefilter("ignore")
    channel.write("ready\n")
    channel.flush()
    calls = os.fdopen(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # a call may read standard input
    for line in calls:
        outcome: Outcome = judge(Call(**json.loads(line)))
        channel.write(json.dumps(asdict(outcome)) + "\n")
        channel.flush()


if __name__ == "__main__":
    main()
