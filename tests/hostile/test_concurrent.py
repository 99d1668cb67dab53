#!/usr/bin/env python3
"""Several commands on one run folder at the same time: one writes, the others report that, and nothing that is stored changes."""
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import run_folders  # noqa: E402

# flock of a file in HOLD_FOLDER waits for the file HOLD_UNTIL, and makes HOLD_HERE before.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
int flock(int fd, int operation) {
  char link[64], path[4096];
  const char *folder = getenv("HOLD_FOLDER"), *go = getenv("HOLD_UNTIL"), *here = getenv("HOLD_HERE");
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  struct stat unused;
  if (folder && n > 0 && (path[n] = 0, strncmp(path, folder, strlen(folder)) == 0)) {
    FILE *made = fopen(here, "w");
    if (made) fclose(made);
    while (stat(go, &unused) != 0) usleep(10000);
  }
  return ((int (*)(int, int))dlsym(RTLD_NEXT, "flock"))(fd, operation);
}
"""


class Concurrent(run_folders.InFolder):
    def make(self, count, op="neg"):
        self.write("mine.yaml", run_folders.cases([f"a{i}" for i in range(count)], op))

    def files(self, folder):
        return {each.relative_to(self.root): each.read_bytes() for each in (self.root / folder).rglob("*") if each.is_file()}

    def wait_until(self, ready, what):
        began = time.monotonic()
        while not ready():
            self.assertLess(time.monotonic() - began, 30, what)
            time.sleep(0.005)

    def recorded(self, folder):
        journal = self.root / folder / "journal.jsonl"
        return journal.read_bytes().count(b'"type":"result"') if journal.is_file() else 0

    def test_what_writes_waits_for_nobody_and_changes_nothing(self):
        self.make(2)
        self.good("run", "mine.yaml", "-b", "emulated", "-q", "-o", "r")
        before = self.files("r")
        with open(self.root / "r/journal.jsonl", "rb") as journal:
            fcntl.flock(journal, fcntl.LOCK_EX)
            for command in (["judge", "r"], ["run", "mine.yaml", "-b", "openblas", "-q", "--resume", "-o", "r"],
                            ["run", "mine.yaml", "-b", "openblas", "-q", "-o", "r"]):
                refused = self.call(*command)
                self.assertEqual(refused.returncode, 4, command)
                self.assertIn("r is in use: another process writes into it", refused.stderr)
            self.assertEqual(self.files("r"), before)
            for command in (["report", "r"], ["diff", "r", "r"], ["merge", "r", "-o", "m"], ["explain", "mine/a0@emulated", "--run", "r"]):
                self.good(*command)

    def test_a_second_resume_reads_what_the_first_has_written(self):
        """It is held before its lock until the first has ended: what it read before that would be old."""
        compiler = shutil.which("cc") or shutil.which("c++")
        self.assertIsNotNone(compiler, "what builds the project")
        self.write("shim.c", SHIM)
        subprocess.run([compiler, "-x", "c", "-shared", "-fPIC", "-o", "shim.so", "shim.c", "-ldl"], cwd=self.root, check=True)
        self.make(60)
        first = self.start("run", "mine.yaml", "-b", "openblas", "-q", "-o", "run", "--resume")
        self.wait_until(lambda: first.poll() is not None or self.recorded("run") > 5, "the first run begins")
        first.send_signal(signal.SIGSTOP)
        self.assertLess(self.recorded("run"), 60, "it is stopped in the midst")
        second = self.start("run", "mine.yaml", "-b", "emulated", "-q", "-o", "run", "--resume", LD_PRELOAD=str(self.root / "shim.so"),
                            HOLD_FOLDER=str(self.root / "run"), HOLD_UNTIL=str(self.root / "go"), HOLD_HERE=str(self.root / "here"))
        self.wait_until(lambda: second.poll() is not None or (self.root / "here").exists(), "the second comes to its lock")
        first.send_signal(signal.SIGCONT)
        self.assertEqual(first.wait(60), 0, first.communicate()[1])
        stored = self.files("run/tensors")
        self.assertEqual(len(stored), 60)
        (self.root / "go").touch()
        self.assertEqual(second.wait(60), 0, second.communicate()[1])
        for process in (first, second):
            process.communicate()
        after = self.files("run/tensors")
        self.assertEqual({name: after[name] for name in stored}, stored, "no tensor of the first is altered")
        self.assertEqual(len(after), 120)
        self.good("judge", "run")
        report = json.loads((self.root / "run/report.json").read_text(encoding="utf-8"))
        self.assertEqual(len(report["results"]), 120)

    def test_several_judges(self):
        self.make(40, op="exp")
        self.good("run", "mine.yaml", "-b", "emulated", "-q", "-o", "r")
        before = json.loads((self.root / "r/report.json").read_text(encoding="utf-8"))
        ended = done = 0
        for _ in range(6):
            for judge in [self.start("judge", "r") for _ in range(4)]:
                _, said = judge.communicate(timeout=60)
                ended += 1
                done += judge.returncode == 0
                if judge.returncode != 0:
                    self.assertEqual(judge.returncode, 4, said)
                    self.assertIn("in use", said)
        self.assertEqual(ended, 24)
        self.assertGreaterEqual(done, 6, "one of each four at least")
        self.good("report", "r")
        after = json.loads((self.root / "r/report.json").read_text(encoding="utf-8"))
        self.assertEqual(after["results"], before["results"])

    def test_reports_while_judges_write(self):
        """A reader sees one state, even if its file is replaced in the midst."""
        self.make(30, op="exp")
        self.good("run", "mine.yaml", "-b", "emulated", "-q", "-o", "r")
        stop = time.monotonic() + 4
        read = 0
        while time.monotonic() < stop:
            judge = self.start("judge", "r")
            while judge.poll() is None:
                self.good("report", "r", "--json", "-")
                read += 1
            self.assertEqual(judge.returncode, 0, judge.communicate()[1])
            judge.communicate()
        self.assertGreater(read, 5)

    def test_many_pages_at_once(self):
        self.make(5)
        self.good("run", "mine.yaml", "-b", "emulated", "-q", "-o", "r")
        for _ in range(3):
            for each in [self.start("report", "r", "--html", "r/page.html") for _ in range(6)]:
                _, said = each.communicate(timeout=60)
                self.assertEqual(each.returncode, 0, said)
        self.assertEqual([name for name in os.listdir(self.root / "r") if name.endswith((".new", ".tmp"))], [])


if __name__ == "__main__":
    unittest.main()
