"""The places of this installation: the harness's executable, the adapters, the SDK that this package shares with
them."""

import json
import os
import pathlib
import re
import shutil
import sys


class NotInstalled(RuntimeError):
    """A requested part is not installed; the text states what to do."""


_PACKAGE = pathlib.Path(__file__).resolve().parent


def root():
    """The folder that holds backends/ and cases/: ULPSCOPE_ROOT, else that of the wheel, or of the tree, that this file lies in."""
    named = os.environ.get("ULPSCOPE_ROOT")
    if named:
        return pathlib.Path(named)
    for folder in (_PACKAGE / "share/ulpscope", *_PACKAGE.parents):
        if (folder / "backends/registry.jsonl").is_file():
            return folder
    raise NotInstalled(f"no backends/registry.jsonl above {_PACKAGE}: name the folder that holds it in ULPSCOPE_ROOT")


def binary():
    """The executable `ulpscope`: ULPSCOPE_BIN, else the one of this wheel, tree or installation, else the one on PATH."""
    own = (_PACKAGE / "bin/ulpscope", root() / "build/release/bin/ulpscope", root().parents[1] / "bin/ulpscope")
    for candidate in (os.environ.get("ULPSCOPE_BIN"), *own, shutil.which("ulpscope")):
        if candidate and os.access(candidate, os.X_OK):
            return pathlib.Path(candidate)
    raise NotInstalled("no executable `ulpscope`: build it with ci/setup, or name it in ULPSCOPE_BIN")


def environment():
    """The variables for the harness and its adapters: they run on the Python that this is, in this tree."""
    return {**os.environ, "ULPSCOPE_ROOT": str(root()), "ULPSCOPE_PYTHON": os.environ.get("ULPSCOPE_PYTHON") or sys.executable}


def adapter_command(backend):
    """The command line of the adapter that serves `backend`, from backends/registry.jsonl."""
    rows = [json.loads(line) for line in (root() / "backends/registry.jsonl").read_text(encoding="utf-8").splitlines()]
    found = [row for row in rows if row["backend"] == backend and "adapter" in row]
    if not found:
        raise NotInstalled(f"no backend {backend}: `ulpscope list backends` names them")
    places = {"{bin}": str(binary().parent), "{root}": str(root()), "{python}": environment()["ULPSCOPE_PYTHON"]}
    command = []
    for part in found[0]["adapter"]:
        for place, text in places.items():
            part = part.replace(place, text)
        # The interpreter of an environment of its own (harness/run/places.h).
        part = re.sub(r"\{venv:([^}]+)\}", lambda named: str(root() / f".venv-{named[1]}/bin/python"), part)
        command.append(part)
    if not pathlib.Path(command[0]).exists():
        raise NotInstalled(f"backend {backend} is not installed: there is no {command[0]} ({found[0].get('install', 'ci/setup')})")
    return command


def find_sdk():
    """Makes `ulpscope_adapter` and `ulpscope_torch` importable where they are not installed beside this package."""
    try:
        import ulpscope_adapter  # noqa: F401
    except ImportError:
        sys.path.append(str(root() / "backends/python"))
