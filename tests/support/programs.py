"""Running programs in tests: ulpscope itself, and any other command."""
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build/release/bin"
ULPSCOPE = pathlib.Path(os.environ.get("ULPSCOPE_BIN", BIN / "ulpscope"))


def call(*command, cwd=ROOT, timeout=600, beside=None, **options):
    """The ended process, its output as text. `beside`: variables beside the caller's own."""
    if beside:
        options["env"] = {**os.environ, **beside}
    return subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False,
                          **options)


def ulpscope(*arguments, **options):
    return call(ULPSCOPE, *arguments, **options)
