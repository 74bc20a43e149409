"""Copies the files of docs/data_sets.md from a mirror, and checks each.

    python tools/reproduce/fetch.py MIRROR --data FOLDER [--sets NAME ...]

MIRROR is the address of a folder of that layout: https://, http:// or file://. Most of
the collections state no licence, so the project keeps no mirror of its own; the page
says where each set comes from, and how a file is made of it. What the folder has is
kept, and what it lacks, or has in another version with --replace, is fetched. A file
whose checksum is not that of `check.py` is not written. The exit code is 1 if a file
could not be fetched.
"""

import sys
import urllib.error
import urllib.request
from pathlib import Path

from _protocol import options
from check import digest, files, state


def fetched(address, path, known):
    """The content of a file, or why there is none."""
    try:
        with urllib.request.urlopen(f"{address}/{path}", timeout=60) as answer:
            content = answer.read()
    except (OSError, urllib.error.URLError) as error:
        return None, str(error)
    if not digest(content, path).startswith(known):
        return None, "another file than that of the tables: its checksum differs"
    return content, ""


def main():
    names = list(dict.fromkeys(name for name, *_ in files()))
    parser = options(__doc__, sets=names)
    parser.add_argument("mirror", metavar="MIRROR", help="address of a folder")
    parser.add_argument("--replace", action="store_true", help="other versions, too")
    args = parser.parse_args()
    if args.data is None:
        parser.error("give --data FOLDER or set ORDINAL_DATA")
    failed = 0
    for name, _, path, known in files():
        found = state(args.data, path, known)
        if name not in args.sets or found == "ok":
            continue
        if found == "another file" and not args.replace:
            print(f"{path}: kept, though it is another file; --replace fetches it")
            continue
        content, reason = fetched(args.mirror.rstrip("/"), path, known)
        failed += content is None
        print(f"{path}: {reason or 'fetched'}", flush=True)
        if content is not None:
            file = Path(args.data, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            part = file.with_name(f"{file.name}.part")
            part.write_bytes(content)
            part.replace(file)  # whole or not at all
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
