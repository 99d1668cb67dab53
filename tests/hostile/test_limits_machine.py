#!/usr/bin/env python3
"""Limits of the machine: a run under each limit does its work, or ends by an exit code and a line that names the limit; nothing that an
adapter started is left when it has ended."""
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ROOT, ULPSCOPE, call  # noqa: E402

ONE = ("about: One case.\ncases:\n  - name: a\n    tags: [ci]\n    tensors: {x: {dtype: float32, shape: %s, fill: normal}}\n"
       "    program: [{op: neg, of: [x], as: r}]\n    observe: [r]\n")
LEAVER = '''
import os, subprocess, sys
sys.path.insert(0, %(sdk)r)
import numpy
from ulpscope_adapter import Adapter, Result, serve


class Leaver(Adapter):
    def capabilities(self):
        return {"name": "leaver", "backends": ["leaver"], "versions": {"numpy": numpy.__version__}, "knobs": {"threads": ["1"]},
                "dtypes": ["float32"], "ops": {"neg": []}}

    def run(self, request):
        %(start)s
        %(then)s
        return Result({name: -request.tensors[0].numpy() for name in request.observe})


serve(Leaver())
'''
# Three ways out of the reach of whoever looks for the run's own processes: a session of its own, no environment, parents that are gone.
START = {
    "a session of its own, no environment": '''left = subprocess.Popen(["/bin/sleep", "60"], env={}, start_new_session=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        open(%(pids)r, "a").write(f"{left.pid}\\n")''',
    "a daemon, whose parents have ended": '''subprocess.run(["/bin/sh", "-c", "setsid env -i /bin/sleep 60 >/dev/null 2>&1 </dev/null & echo $! >> %(pids)s"])
        subprocess.run(["/bin/sh", "-c", "sleep 0.2"])''',
}
THEN = {"ends well": "pass", "crashes": "os.abort()", "is killed for its time": "__import__('time').sleep(30)"}


def sleepers(pids):
    """Those that still sleep; a number may be another process's by now."""
    left = []
    for pid in pids:
        try:
            if b"sleep\x0060" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                left.append(pid)
        except OSError:
            pass
    return left


class Machine(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.folder = pathlib.Path(made.name)
        (self.folder / "one.yaml").write_text(ONE % "[4]")

    def limited(self, limit, *arguments):
        """The program with its limits set by the shell, as people set them."""
        return call("bash", "-c", f'ulimit -c 0; ulimit {limit} && exec "$@"', "bash", ULPSCOPE, *arguments, cwd=self.folder)

    def test_a_limit_of_the_shell_is_an_exit_code_and_a_line(self):
        ended = {}
        for number, limit in enumerate(("-f 0", "-f 1", "-v 25000", "-v 30000", "-v 60000", "-n 5", "-n 12", "-s 32", "-s 64")):
            done = self.limited(limit, "run", "one.yaml", "-b", "emulated", "-q", "-o", f"u{number}")
            ended[limit] = done
            self.assertIn(done.returncode, (0, 4, 6), f"{limit}: {done.returncode} {done.stderr}")
            self.assertTrue(done.returncode == 0 or (done.stderr + done.stdout).strip(), f"{limit}: no word")
        self.assertRegex(ended["-s 64"].stderr, r"the stack is too small; found 64 KiB \(ulimit -s\), expected \d+ KiB")
        self.assertIn("File too large", ended["-f 0"].stderr)
        self.assertIn("Too many open files", ended["-n 5"].stderr + ended["-n 5"].stdout)

    def test_a_small_soft_limit_of_the_stack_is_raised(self):
        done = self.limited("-S -s 64", "run", "one.yaml", "-b", "emulated", "-q", "-o", "soft")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_limit_of_processes_is_an_exit_code_and_a_line(self):
        if os.geteuid() != 0:
            self.skipTest("the limit counts processes of a user, and only root can be one that has none")
        self.folder.chmod(0o777)

        def become(most):
            resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
            os.setgid(64321)
            os.setuid(64321)

        for most in (1, 2, 3, 4, 40):
            done = call(ULPSCOPE, "run", "one.yaml", "-b", "emulated", "-q", "-o", f"u{most}", cwd=self.folder,
                        preexec_fn=lambda most=most: become(most))
            if "Permission denied" in done.stderr:
                self.skipTest("the checkout is not readable for another user")
            self.assertIn(done.returncode, (0,) if most == 40 else (4, 6), f"{most}: {done.stderr}")
            self.assertTrue(most == 40 or "Resource temporarily unavailable" in done.stderr + done.stdout
                            or "cannot start a thread" in done.stderr, f"{most}: {done.stderr}{done.stdout}")

    def in_small_memory(self, command, *, temporary=""):
        """`command` where /dev/shm holds 800 KiB, and the folder for temporary files `temporary` where that is given."""
        mounts = "mount -t tmpfs -o size=800k tmpfs /dev/shm"
        if temporary:
            (self.folder / "tmp").mkdir()
            mounts += f" && mount -t tmpfs -o size={temporary} tmpfs {self.folder}/tmp && export TMPDIR={self.folder}/tmp"
        return call("unshare", "-m", "sh", "-c", f'{mounts} && exec "$@"', "sh", *command, cwd=self.folder)

    def test_a_small_shared_memory_is_no_crash(self):
        if call("unshare", "-m", "true").returncode != 0:
            self.skipTest("unshare -m is not allowed here")
        (self.folder / "big.yaml").write_text(ONE % "[256, 512]")  # 512 KiB: the operand has room there, the result beside it has none
        (self.folder / "numpy_neg.py").write_text(LEAVER % {"sdk": str(ROOT / "backends/python"), "start": "pass", "then": "pass"})
        run = [ULPSCOPE, "run", "big.yaml", "-b", "openblas,emulated,leaver", "--adapter", "numpy_neg.py", "-j", "1"]
        done = self.in_small_memory([*run, "-o", "disk", "--json", "disk.json"])
        results = json.loads((self.folder / "disk.json").read_text())["results"]
        self.assertEqual([each["status"] for each in results], ["PASS"] * 3, done.stdout + done.stderr)
        done = self.in_small_memory([*run, "-o", "none", "--json", "none.json"], temporary="900k")
        self.assertEqual(done.returncode, 6, done.stdout + done.stderr)
        for each in json.loads((self.folder / "none.json").read_text())["results"]:
            self.assertEqual(each["status"], "OOM")
            self.assertRegex(each["reason"], r"could not be handed over: .*No space left on device; /.* has room for 0\.\d+ MiB, of which")

    def test_nothing_that_an_adapter_started_is_left(self):
        for how, start in START.items():
            for end, then in THEN.items():
                with self.subTest(how=how, end=end):
                    pids = self.folder / "pids"
                    pids.write_text("")
                    (self.folder / "leaver.py").write_text(LEAVER % {"sdk": str(ROOT / "backends/python"), "then": then,
                                                                     "start": start % {"pids": str(pids)}})
                    done = call(ULPSCOPE, "run", "one.yaml", "--adapter", "leaver.py", "-b", "leaver", "-q", "--timeout", "2",
                                "-o", f"run-{how[:9]}-{end}", cwd=self.folder)
                    self.assertEqual(done.returncode, 0 if then == "pass" else 6, done.stdout + done.stderr)
                    started = [int(each) for each in pids.read_text().split()]
                    self.assertTrue(started, "the adapter was not asked")
                    left = sleepers(started)
                    for pid in left:
                        os.kill(pid, signal.SIGKILL)
                    self.assertEqual(left, [])

    def test_nor_when_the_run_itself_is_killed(self):
        pids = self.folder / "pids"
        pids.write_text("")
        start = START["a session of its own, no environment"] % {"pids": str(pids)}
        (self.folder / "leaver.py").write_text(LEAVER % {"sdk": str(ROOT / "backends/python"), "start": start,
                                                         "then": THEN["is killed for its time"]})
        run = subprocess.Popen([ULPSCOPE, "run", "one.yaml", "--adapter", "leaver.py", "-b", "leaver", "-q", "-o", "killed"],
                               cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while not pids.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1.5)  # the janitor looks twice a second
        run.kill()
        run.wait()
        started = [int(each) for each in pids.read_text().split()]
        self.assertTrue(started, "the adapter was not asked")
        deadline = time.monotonic() + 10
        while sleepers(started) and time.monotonic() < deadline:
            time.sleep(0.05)
        left = sleepers(started)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(left, [])


if __name__ == "__main__":
    unittest.main()
