"""One run of ci/suite for all scripts that look at it: the first that needs it makes it, others wait and read.

It lies in build/suite-run and stands for these binaries, adapters, cases and Python packages: with any other of them it is made anew.
"""
import dataclasses
import fcntl
import hashlib
import json
import pathlib
import shutil

from programs import BIN, ROOT, ULPSCOPE, call

FOLDER = ROOT / "build/suite-run"


@dataclasses.dataclass
class SuiteRun:
    """One run of ci/suite: its exit code, its output and its run folder."""
    code: int
    stdout: str
    stderr: str
    path: pathlib.Path = FOLDER / "run"


def _digest():
    """Digest of everything that a run depends on and a checkout can change."""
    files = [ULPSCOPE, *BIN.glob("ulpscope*"), *(ROOT / "cases").rglob("*.yaml"), *(ROOT / "backends").rglob("*.py"), ROOT / "ci/suite",
             ROOT / "reports/accounts", *ROOT.glob(".venv*/ulpscope.stamp")]
    state = hashlib.sha256()
    for file in sorted(set(files)):
        state.update(str(file).encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return state.hexdigest()


def suite_run():
    """The SuiteRun; raises nothing if ci/suite failed: its exit code shows it."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(ROOT / "build/suite-run.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = FOLDER / "made.json"
        known = json.loads(made.read_text(encoding="utf-8")) if made.is_file() else {}
        if known.get("digest") != _digest():
            shutil.rmtree(FOLDER)
            FOLDER.mkdir()
            done = call(ROOT / "ci/suite", "-o", FOLDER / "run", timeout=1200)
            # After the run: the first call of ci/suite may have built what the digest is of.
            known = {"digest": _digest(), "code": done.returncode, "stdout": done.stdout, "stderr": done.stderr}
            made.write_text(json.dumps(known), encoding="utf-8")
    return SuiteRun(known["code"], known["stdout"], known["stderr"])
