"""Running programs in tests: ulpscope itself, and any other command."""
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build/release/bin"
ULPSCOPE = pathlib.Path(os.environ.get("ULPSCOPE_BIN", BIN / "ulpscope"))


def class_folder(cls):
    """A temporary folder for the tests of a class; it goes with them."""
    made = tempfile.TemporaryDirectory()
    cls.addClassCleanup(made.cleanup)
    return pathlib.Path(made.name)


def load_accounts():
    """reports/accounts as a module."""
    loader = importlib.machinery.SourceFileLoader("accounts", str(ROOT / "reports/accounts"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("accounts", loader))
    loader.exec_module(module)
    return module


def check_account(folder):
    """How many values of a run folder were read, and how many pairs of groups differ in bits (reports/accounts). Fails where report.json
    leaves one of these unspoken of."""
    accounts, out = load_accounts(), io.StringIO()
    read, pairs, uncovered, differs, _ = accounts.check(folder, out)
    if uncovered or differs:
        raise AssertionError(f"{uncovered} pairs uncovered, {differs} differences from the account of {folder}\n{out.getvalue()}")
    return read, pairs


def _folder_of_run(command, cwd):
    """The run folder of a `ulpscope run` that has ended and left a report; None if the command is no such run, or left none."""
    if command[:2] != [str(ULPSCOPE), "run"] or "-o" not in command[:-1]:
        return None
    folder = pathlib.Path(cwd) / command[command.index("-o") + 1]
    return folder if (folder / "report.json").is_file() else None


def call(*command, cwd=ROOT, timeout=600, beside=None, **options):
    """The ended process, its output as text. `beside`: variables beside the caller's own. A run of ulpscope has to account for every
    difference of bits."""
    if beside:
        options["env"] = {**os.environ, **beside}
    command = [str(part) for part in command]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False, **options)
    folder = _folder_of_run(command, cwd)
    if folder is not None and done.returncode in (0, 1, 6):
        check_account(folder)
    return done


def ulpscope(*arguments, **options):
    return call(ULPSCOPE, *arguments, **options)


def need_tool(tool, package):
    """Skips the test, or the module from setUpModule, where `tool` is not installed; under ci/test, which installs it first, that fails."""
    if shutil.which(tool):
        return
    text = f"no {tool} here; install it: apt-get install {package} (ci/setup does)"
    if os.environ.get("ULPSCOPE_IN_CI_TEST"):
        raise AssertionError(text)
    raise unittest.SkipTest(text)
