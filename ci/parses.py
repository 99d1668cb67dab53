"""Has a second compiler read every translation unit of a configured build, without making code of it: its warnings are errors.

    python ci/parses.py FOLDER [--jobs N]

FOLDER holds compile_commands.json. Each complaint is printed. Closes with `N passed, N failed`, units of either kind.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    units = json.loads((options.folder / "compile_commands.json").read_text())
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as workers:
        for unit, complaints in zip(units, workers.map(read, units)):
            if complaints is None:
                passed += 1
                continue
            failed += 1
            print(f"FAILED {unit['file']}\n{complaints}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


def read(unit):
    """The compiler's complaints about one unit; None if it accepts it."""
    said = subprocess.run(syntax_only(shlex.split(unit["command"])), cwd=unit["directory"], capture_output=True, text=True, check=False)
    return None if said.returncode == 0 else said.stderr


def syntax_only(command):
    """The compiler's own command, without what starts it (a cache) and without its output."""
    first = next(at for at, word in enumerate(command) if os.path.basename(word).startswith("clang++"))
    words, skip = [], False
    for word in command[first:]:
        if skip or word in ("-c", "-o"):
            skip = word == "-o"
            continue
        words.append(word)
    return [*words, "-fsyntax-only"]


if __name__ == "__main__":
    main()
