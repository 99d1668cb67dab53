#!/usr/bin/env python3
"""Runs that are killed at any moment, with SIGKILL, and resumed: no result that was recorded is lost or computed again, their report is
that of an undisturbed run, byte for byte (`volatile` apart), and nothing stays behind. ULPSCOPE_KILLS sets how many (default 100).
"""
import contextlib
import fcntl
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ULPSCOPE  # noqa: E402

KILLS = int(os.environ.get("ULPSCOPE_KILLS", "100"))
BACKENDS = "openblas,emulated:model=in=as_is;prod=exact;acc=float32;mid=bfloat16;out=float32_rne"
CASE = """
  - name: case_{n}
    tensors:
      x: {{dtype: {dtype}, shape: [3, {k}], fill: normal}}
      y: {{dtype: {dtype}, shape: [{k}, 2], fill: normal}}
    program:
      - {{op: matmul, of: [x, y], as: product}}
      - {{op: neg, of: [product], as: result}}
    observe: [product, result]
"""


def stable(folder):
    """The report without what may differ; numbers stay the digits that were written."""
    report = json.loads((folder / "report.json").read_bytes(), parse_float=str, parse_int=str)
    del report["volatile"]
    return json.dumps(report)


def results(journal):
    """(case, backend) -> the record of its result, of all whole lines; a torn last line is none."""
    found = {}
    for line in journal.read_bytes().split(b"\n")[:-1] if journal.is_file() else []:
        record = json.loads(line)["record"]
        if record["type"] == "result":
            found.setdefault((record["case"], record["backend"]), []).append(line)
    return found


def processes(mark):
    """Those that run, with `mark` somewhere in their environment: the program, its janitor, its workers."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and int(entry.name) != os.getpid() and mark.encode() in (entry / "environ").read_bytes():
                found[int(entry.name)] = (entry / "comm").read_text(encoding="utf-8").strip()
    return found


def workers(of):
    """The adapters that a run has started: its children, by /proc/PID/stat; what their environment holds is the run's to choose."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                name, _, rest = (entry / "stat").read_text(encoding="utf-8").partition("(")[2].rpartition(")")
                if int(rest.split()[1]) == of and name.startswith("ulpscope-") and name != "ulpscope-tidy":
                    found.append(int(entry.name))
    return found


def unlocked(folder):
    """Scratch folders in `folder` that no living run holds; those of other runs on this machine are held."""
    left = []
    for entry in folder.glob("ulpscope-*-*"):
        with contextlib.suppress(OSError):
            with open(entry / ".lock", "rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                left.append(entry.name)
    return left


class Kills(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory(prefix="kills-")
        self.addCleanup(held.cleanup)
        self.root = pathlib.Path(held.name)
        self.tmp = self.root / "tmp"
        self.tmp.mkdir()
        cases = [CASE.format(n=n, k=4 + n, dtype=("bfloat16", "float32")[n % 2]) for n in range(3)]
        (self.root / "mine.yaml").write_text("cases:\n" + "".join(cases), encoding="utf-8")
        self.shm_before = set(unlocked(pathlib.Path("/dev/shm")))

    def start(self, out):
        return subprocess.Popen(
            [ULPSCOPE, "run", "mine.yaml", "-q", "-j", "2", "--resume", "-o", out, "-b", BACKENDS], cwd=self.root,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
            env={**os.environ, "TMPDIR": str(self.tmp)})

    def finish(self, out):
        """Exit code and stdout of an undisturbed run."""
        run = self.start(out)
        text, errors = run.communicate(timeout=120)
        self.assertEqual(run.returncode, 0, errors)
        return text

    def kill(self, run, dice):
        """SIGKILL for the program; one time in three a worker of it goes first, the next one that lives, while the program cannot
        notice."""
        if dice.random() < 1 / 3:
            while run.poll() is None and not workers(run.pid):
                pass
            run.send_signal(signal.SIGSTOP)
            found = workers(run.pid)
            if found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(dice.choice(found), signal.SIGKILL)
                self.workers_killed += 1
        run.kill()
        run.communicate()

    def test_resumed_runs_are_the_undisturbed_one(self):
        dice = random.Random(12)
        began = time.monotonic()
        text = self.finish("whole")
        took = time.monotonic() - began
        wanted = stable(self.root / "whole")
        self.assertEqual(wanted.count('"status": "PASS"'), 6)
        kills = rounds = equal = lost = again_computed = recorded = 0
        moments = set()
        self.workers_killed = 0
        while kills < KILLS:
            rounds += 1
            out = f"killed{rounds}"
            folder = self.root / out
            for attempt in range(dice.randint(1, 4)):
                run = self.start(out)
                time.sleep(took / (1 + attempt) * dice.random() ** 2)  # most of what is recorded is recorded early
                if run.poll() is not None:
                    run.communicate()
                    continue
                self.kill(run, dice)
                kills += 1
                held = results(folder / "journal.jsonl")
                moments.add(len(held))
            held = results(folder / "journal.jsonl")
            again = self.finish(out)
            ended = results(folder / "journal.jsonl")
            recorded += len(held)
            lost += sum(ended.get(cell) is None or ended[cell][0] != lines[0] for cell, lines in held.items())
            again_computed += sum(len(lines) > 1 for lines in ended.values())
            equal += again == text and stable(folder) == wanted
        print(f"{kills} kills ({self.workers_killed} with a worker) in {rounds} runs after {min(moments)} to {max(moments)} results; "
              f"{lost} of {recorded} recorded results lost, {again_computed} computed again; "
              f"{equal} of {rounds} resumed runs equal; {time.monotonic() - began:.0f} s", file=sys.stderr)
        self.assertEqual((lost, again_computed), (0, 0))
        self.assertEqual(equal, rounds)
        self.assertGreater(recorded, rounds, "they die with results to lose")
        self.assertGreater(len(moments), 3, "they die at different moments")
        self.assertGreater(self.workers_killed, 0)
        self.nothing_is_left()

    def nothing_is_left(self):
        deadline = time.monotonic() + 10
        while processes(str(self.tmp)) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertEqual(processes(str(self.tmp)), {})
        if any(self.tmp.glob(".ulpscope-making-*")):  # killed between two calls: the next run takes it away after a minute
            time.sleep(61)
            self.finish("another")
        self.assertEqual([entry.name for entry in self.tmp.iterdir()], [])
        self.assertEqual(set(unlocked(pathlib.Path("/dev/shm"))) - self.shm_before, set())


if __name__ == "__main__":
    unittest.main()
