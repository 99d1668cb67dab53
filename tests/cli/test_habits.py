#!/usr/bin/env python3
"""Habits of a command line that people expect: -x and --maxfail, --watch, completion for shells, a manual page."""
import contextlib
import hashlib
import json
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ROOT, ULPSCOPE, call, need_tool, ulpscope  # noqa: E402

FAULTY = ["-b", "faulty:fault=segv,case=bad"]


def product(name, more=""):
    return (f"  - name: {name}\n    tensors:\n      a: {{dtype: float32, shape: [2, 8], fill: normal}}\n"
            "      b: {dtype: float32, shape: [8, 2], fill: normal}\n    program:\n"
            f"      - {{op: matmul, of: [a, b], as: y}}\n    observe: [y]\n{more}")


VIOLATED = "    contract: {status: documented, source: nobody, accept: {y: {acc: [float16]}}}\n"


def write(file, *cases):
    file.write_text("about: Cases of a test.\ncases:\n" + "".join(cases))


def statuses(run):
    report = json.loads((run / "report.json").read_text())
    return [(result["id"].rsplit("/", 1)[1], result["status"]) for result in report["results"]]


class Stopping(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.cases, self.out = self.folder / "cases.yaml", self.folder / "run"
        write(self.cases, product("a"), product("b", VIOLATED), product("c"), product("d", VIOLATED), product("e"))

    def run_cases(self, *arguments, out=None):
        return ulpscope("run", self.cases, "-b", "emulated", "-o", out or self.out, *arguments)

    def test_the_first_failure_ends_it_and_resume_goes_on(self):
        whole = self.run_cases(out=self.folder / "whole")
        self.assertEqual(whole.returncode, 1, whole.stderr)
        stopped = self.run_cases("-x")
        self.assertEqual(stopped.returncode, 1, stopped.stdout + stopped.stderr)
        found = statuses(self.out)
        self.assertEqual([status for _, status in found[:2]], ["PASS", "FAIL"])
        left = [status for _, status in found].count("NOT_RUN")
        self.assertEqual(left, 3)
        self.assertIn(f"stopped after 1 failure: {left} of 5 results not run; --resume -o", stopped.stderr)
        self.assertIn(f"{left} NOT_RUN", stopped.stdout)
        again = ulpscope("report", self.out)
        self.assertEqual(again.returncode, 1, "the report of a run that was asked to stop fails as the run did")
        self.assertIn("stopped after 1 failure, as it was asked to", again.stdout)
        resumed = self.run_cases("--resume")
        self.assertEqual(resumed.returncode, 1)
        self.assertEqual(statuses(self.out), statuses(self.folder / "whole"))

    def test_resumed_with_x_it_stops_at_the_next_one(self):
        self.assertEqual(self.run_cases("-x").returncode, 1)
        self.assertEqual(self.run_cases("-x", "--resume").returncode, 1)
        self.assertEqual([status for _, status in statuses(self.out)[:4]], ["PASS", "FAIL", "PASS", "FAIL"])

    def test_maxfail(self):
        self.assertEqual(self.run_cases("--maxfail", "2").returncode, 1)
        self.assertEqual([status for _, status in statuses(self.out)[:4]], ["PASS", "FAIL", "PASS", "FAIL"])
        enough = self.run_cases("--maxfail", "3", out=self.folder / "enough")
        self.assertEqual(enough.returncode, 1)
        self.assertNotIn("stopped", enough.stderr)
        self.assertEqual(len([1 for _, status in statuses(self.folder / "enough") if status == "NOT_RUN"]), 0)
        for wrong in ("0", "-1", "x"):
            self.assertEqual(self.run_cases("--maxfail", wrong).returncode, 4)
        self.assertEqual(self.run_cases("-x", "--maxfail", "2").returncode, 4)

    def test_what_ends_a_worker_is_a_failure(self):
        write(self.cases, product("good"), product("bad"), product("after"), product("last"))
        stopped = ulpscope("run", self.cases, *FAULTY, "-x", "-o", self.out)
        self.assertEqual(stopped.returncode, 6, stopped.stdout + stopped.stderr)
        self.assertEqual([status for _, status in statuses(self.out)].count("CRASH"), 1)
        self.assertIn("NOT_RUN", [status for _, status in statuses(self.out)])

    def test_an_interrupt_does_not_wait_for_the_judge(self):
        """A result that takes seconds to judge is recorded, the report states that it is not judged, and `judge` judges it."""
        chosen = "seeds/wgrad_accumulate/unfused_8"
        process = subprocess.Popen([ULPSCOPE, "run", chosen, "-b", "openblas", "-o", self.out], cwd=ROOT, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        journal = self.out / "journal.jsonl"
        while process.poll() is None and not (journal.exists() and '"type":"result"' in journal.read_text()):
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate()
        self.assertEqual(process.returncode, 2, out + err)
        self.assertIn("recorded, and not judged", out)
        self.assertIn("interrupted: 0 of 1 results not run, 1 run and not judged", err)
        self.assertEqual(statuses(self.out), [("unfused_8", "NOT_RUN")])
        judged = ulpscope("judge", self.out, "--json", self.folder / "judged.json")
        self.assertEqual(judged.returncode, 0, judged.stdout + judged.stderr)
        (result,) = json.loads((self.folder / "judged.json").read_text())["results"]
        self.assertEqual(result["status"], "PASS")

    def test_what_conforms_stops_nothing(self):
        write(self.cases, product("a"), product("b"))
        self.assertEqual(self.run_cases("-x").returncode, 0)
        self.assertEqual([status for _, status in statuses(self.out)], ["PASS", "PASS"])


class Watching(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.case, self.log = self.folder / "case.yaml", self.folder / "log"
        write(self.case, product("a"))

    @contextlib.contextmanager
    def watch(self, stdout=None):
        with self.log.open("wb") as log:
            process = subprocess.Popen([ULPSCOPE, "run", "--watch", self.case, "-b", "emulated"], cwd=self.folder,
                                       stdin=subprocess.DEVNULL, stdout=stdout or log, stderr=log)
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait()

    def wait_for(self, pattern, count):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            found = re.findall(pattern, self.log.read_text())
            if len(found) >= count:
                return found
            time.sleep(0.05)
        self.fail(f"{count} of {pattern!r} did not come:\n{self.log.read_text()}")

    def test_an_edited_case_is_run_again_and_the_last_status_is_the_exit_code(self):
        with self.watch() as process:
            self.assertEqual(self.wait_for(r"exit code (\d)", 1), ["0"])
            self.case.write_text("about: [this is no case")
            self.assertEqual(self.wait_for(r"exit code (\d)", 2), ["0", "4"])
            fresh = self.folder / "fresh"  # as editors do it
            write(fresh, product("a", VIOLATED))
            fresh.rename(self.case)
            self.assertEqual(self.wait_for(r"exit code (\d)", 3), ["0", "4", "1"])
            time.sleep(0.5)
            self.assertEqual(len(re.findall("exit code", self.log.read_text())), 3, "nothing changed, something ran")
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(timeout=30), 1)
        self.assertNotIn("\x1b", self.log.read_text(), "this is no terminal")
        self.assertEqual(len([run for run in (self.folder / "runs").iterdir() if not run.is_symlink()]), 2)

    def test_a_tensor_file_is_watched_too(self):
        data = self.folder / "data.safetensors"
        head = json.dumps({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
        values = struct.pack("<4f", 1, 2, 3, 4)
        data.write_bytes(struct.pack("<Q", len(head)) + head + values)
        digest = hashlib.sha256(values).hexdigest()
        self.case.write_text("about: A tensor beside the file.\ncases:\n  - name: a\n    tensors:\n"
                             "      a: {dtype: float32, shape: [4], fill: {file: "
                             f"{{path: data.safetensors, tensor: a, sha256: \"{digest}\"}}}}}}\n"
                             "    program:\n      - {op: mul, of: [a, a], as: y}\n    observe: [y]\n")
        with self.watch() as process:
            self.assertEqual(self.wait_for(r"exit code (\d); watching (\d)", 1), [("0", "2")])
            os.utime(data)
            self.wait_for(r"data.safetensors has changed", 1)
            self.wait_for(r"exit code 0", 2)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=30), 0)

    def test_a_terminal_is_cleared(self):
        master, slave = pty.openpty()
        with self.watch(stdout=slave) as process:
            os.close(slave)
            self.wait_for(r"exit code 0", 1)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(timeout=30), 0)
            self.assertIn(b"\x1b[2J", os.read(master, 1 << 16))
        os.close(master)

    def test_what_goes_not_together(self):
        for other in (["-o", "x"], ["--shard", "1/2"], ["--lf"]):
            self.assertEqual(ulpscope("run", "--watch", self.case, *other).returncode, 4, other)


def tables():
    """Each command with the options and commands that its --help names."""
    found = {}
    waiting = [()]
    while waiting:
        path = waiting.pop()
        text = ulpscope(*path, "--help").stdout
        part, names, below = "", [], []
        for line in text.splitlines():
            if re.fullmatch(r"[A-Z]\w+:", line):
                part = line[:-1]
            elif part == "Options" and (match := re.match(r"  ((?:-{1,2}[\w-]+,?)+)", line)):
                names += match[1].split(",")
            elif part == "Subcommands" and (match := re.match(r"  ([\w-]+)", line)):
                below.append(match[1])
        found[path] = names, below
        waiting += [(*path, name) for name in below]
    return found


class ShellsAndMan(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tables = tables()
        assert len(cls.tables) > 20 and sum(len(names) for names, _ in cls.tables.values()) > 100, cls.tables

    def complete(self, *words):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "completion.bash"
            script.write_text(ulpscope("completion", "bash").stdout)
            done = call("bash", "-uc", 'source "$1"; shift; PATH="$1:$PATH"; shift; COMP_WORDS=(ulpscope "$@"); COMP_CWORD=$#; _ulpscope; '
                        'printf "%s\\n" "${COMPREPLY[@]}"', "bash", script, ULPSCOPE.parent, *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr, "")
            return done.stdout.split()

    def test_bash_offers_every_option_of_every_command(self):
        checked = 0
        for path, (names, below) in self.tables.items():
            long = [name for name in names if name.startswith("--")]
            self.assertLessEqual(set(long), set(self.complete(*path, "--")), path)
            self.assertLessEqual(set(below), set(self.complete(*path, "")), path)
            checked += len(long) + len(below)
        self.assertGreater(checked, 100)
        self.assertEqual(self.complete("run", "--oracle", ""), ["fast", "boost"])
        self.assertIn("emulated", self.complete("run", "-b", "emu"))
        self.assertEqual(self.complete("run", "-b", "openblas,emu"), ["openblas,emulated"])

    def test_scripts_are_whole(self):
        for shell in ("bash", "zsh"):
            text = ulpscope("completion", shell).stdout
            need_tool(shell, shell)
            with tempfile.NamedTemporaryFile("w", suffix="." + shell) as file:
                file.write(text)
                file.flush()
                done = call(shell, "-n", file.name)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
            for names, below in self.tables.values():
                for name in (*names, *below):
                    self.assertIn(name, text, shell)
        self.assertEqual(ulpscope("completion", "fish").returncode, 4)

    def test_the_manual_page_names_everything(self):
        page = ulpscope("man").stdout
        checked = 0
        for path, (names, _) in self.tables.items():
            title = ("ulpscope " + " ".join(path)).strip().replace("-", r"\-")
            start = page.index(f".SS {title}\n")
            section = page[start:page.find("\n.S", start + 4)]
            for name in names:
                self.assertIn(r"\fB" + name.replace("-", r"\-") + r"\fR", section, path)
                checked += 1
        self.assertGreater(checked, 100)
        self.assertIn("EXIT STATUS", page)

    def test_groff_has_nothing_to_say(self):
        need_tool("groff", "groff")
        done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z"], input=ulpscope("man").stdout, text=True, capture_output=True,
                              check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
