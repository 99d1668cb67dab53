"""Runs the GoogleTest cases of a build, many in one process: where starting one costs more than most cases take (sanitizers).

    python ci/cases.py FOLDER [--executable NAME]... [--exclude REGEX]... [--jobs N] [--timeout SECONDS]

FOLDER holds the executables test_*; all of them are run unless some are named. A case has passed when its executable says so by name: one that crashes, ends the process or takes more
than SECONDS has failed, and the cases after it are run by a new process. Output of a process after its last case (a leak) is a failure of
its own. Closes with `N passed, N failed`; each failure is named, with its output, just before.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

# So many cases share a process: enough that starts cost nothing, few enough that no processor is left without work at the end.
TOGETHER = 40

running = set()

LINE = re.compile(r"^\[ *(RUN|OK|FAILED|SKIPPED) *\] ([^\s,]+?\.[^\s,]+)(?:, where .*?)?(?: \((\d+) ms\))?$", re.MULTILINE)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--executable", action="append", default=[], help="one of those to run")
    parser.add_argument("--exclude", action="append", default=[], help="cases whose name this matches anywhere are not run")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--timeout", type=float, default=600)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, end)
    failures, parts, left_out = [], [], 0
    executables = [options.folder / name for name in options.executable] or sorted(options.folder.glob("test_*"))
    for executable in executables:
        try:
            listed = cases_of(executable)
        except (subprocess.SubprocessError, OSError) as error:
            failures.append((executable.name, f"does not list its cases: {error}"))
            continue
        wanted = [case for case in listed if not any(re.search(pattern, case) for pattern in options.exclude)]
        left_out += len(listed) - len(wanted)
        parts += [(executable, wanted[at:at + TOGETHER]) for at in range(0, len(wanted), TOGETHER)]
    passed, skipped, took = 0, [], []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as workers:
        for part in workers.map(lambda part: Part(*part, options.timeout).run(), parts):
            failures += part.failures
            passed += len(part.passed)
            skipped += part.skipped
            took += part.took
    for seconds, case in sorted(took, reverse=True)[:20]:
        print(f"{seconds:8.1f} s  {case}")
    for case in skipped:
        print(f"skipped: {case}")
    print(f"left out: {left_out} cases")
    for case, said in failures:
        print(f"FAILED {case}\n{said}")
    for case, _ in failures:
        print(f"FAILED {case}")
    print(f"{passed} passed, {len(failures)} failed")
    sys.exit(1 if failures or not passed else 0)


def end(*_):
    """Each process started here leads a process group of its own, so that a case that hangs ends with all that it started."""
    for process in running:
        os.killpg(process.pid, signal.SIGKILL)
    os._exit(1)


def cases_of(executable):
    """Suite.Name of each case that it would run."""
    said = subprocess.run([executable, "--gtest_list_tests"], capture_output=True, text=True, timeout=60, check=True).stdout
    cases, suite = [], ""
    for line in said.splitlines():
        name = line.partition("#")[0].strip()
        if not line.startswith(" "):
            suite = name
        elif suite.endswith(".") and "DISABLED_" not in suite + name:
            cases.append(suite + name)
    return cases


class Part:
    """Cases of one executable, run by as many processes as crashes make necessary."""
    def __init__(self, executable, cases, timeout):
        self._executable = executable
        self._left = list(cases)
        self._timeout = timeout
        self.passed, self.skipped, self.failures, self.took = [], [], [], []

    def run(self):
        while self._left:
            before = len(self._left)
            self._run_once()
            if len(self._left) == before:
                self._fail_all("the process did not begin with it")
        return self

    def _fail_all(self, why):
        self.failures += [(case, why) for case in self._left]
        self._left = []

    def _run_once(self):
        with tempfile.TemporaryFile() as log:
            # A file, not a pipe: a process that a case leaves behind would keep that open.
            process = subprocess.Popen([self._executable, "--gtest_color=no", "--gtest_filter=" + ":".join(self._left)], stdout=log,
                                       stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)
            running.add(process)
            ended = self._watch(process, log)
            running.discard(process)
            text = _text(log)
        self._take(text, ended)

    def _watch(self, process, log):
        """How the process ended. It is killed, with what it started, when a case takes too long."""
        seen, since = 0, time.monotonic()
        while True:
            try:
                code = process.wait(0.2)
            except subprocess.TimeoutExpired:
                new = os.pread(log.fileno(), 1 << 20, seen)
                seen += len(new)
                if b"[ RUN " in new:
                    since = time.monotonic()
                if time.monotonic() - since < self._timeout:
                    continue
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return f"took more than {self._timeout:g} s"
            if code < 0:
                return f"ended by {signal.Signals(-code).name}"
            return f"exited {code}" if code else ""

    def _take(self, text, ended):
        """Takes the cases out of those left that this text tells of."""
        began, at, bad = "", 0, False
        for line in LINE.finditer(text):
            word, case, milliseconds = line.groups()
            if word == "RUN":
                began, at = case, line.start()
            elif case == began:
                self._left.remove(case)
                self.took.append((int(milliseconds or 0) / 1000, case))
                if word == "OK":
                    self.passed.append(case)
                elif word == "SKIPPED":
                    self.skipped.append(case)
                else:
                    bad = True
                    self.failures.append((case, text[at:line.end()]))
                began, at = "", line.end()
        if began:
            self._left.remove(began)
            self.failures.append((began, text[at:] + f"\nthe process {ended or 'ended'} in it"))
        elif ended and not bad:
            self.failures.append((f"{self._executable.name} after its last case", text[at:] + f"\nthe process {ended}"))
            if not text:
                self._fail_all(f"the process {ended} before it")


def _text(log):
    return os.pread(log.fileno(), os.fstat(log.fileno()).st_size, 0).decode(errors="replace")


if __name__ == "__main__":
    main()
