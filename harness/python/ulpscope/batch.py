"""One run of the harness for many requests: the cases of a session, in one process or in several that share the work
and the results.

A Batch has one part for each process of a session. Each process starts its part in the background (a run takes
seconds to start and judges all of a case's backends together), and waits for the results of other parts in the
folder that all of them share. A case belongs to one part with all its backends, because its findings compare them.
"""

import ctypes
import json
import os
import pathlib
import signal
import subprocess
import threading
import time

from ulpscope import places

_MOST_CHARACTERS = 100_000  # of one argument; Linux takes 131,072


class BadCases(RuntimeError):
    """A case file or an option that the harness refuses; the text is its own."""


def ask(*arguments):
    """The output of `ulpscope ... --json`."""
    done = subprocess.run([str(places.binary()), *map(str, arguments), "--json"], env=places.environment(), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    if done.returncode not in (0, 5):
        raise BadCases(done.stderr.strip() or f"ulpscope exits {done.returncode}")
    return json.loads(done.stdout)


class Batch:
    """`planned` holds (file, id, backend) of all requests, the same in every process; `index` is None for a process that runs nothing.

    folder     where runs are kept; the processes of a session share it
    index, of  which part is this process's own, of how many
    options    further options of `ulpscope run`
    """

    def __init__(self, folder, planned, *, index=0, of=1, options=()):
        self.folder, self.options = pathlib.Path(folder), list(options)
        self._index = index if index is not None and index < of else None
        cases = {}
        for file, case, backend in planned:
            cases.setdefault((file, case), []).append(backend)
        self._runs = [[] for _ in range(of)]  # part -> runs; a run is {(file, id): backends}
        self._place = {}
        for number, (key, backends) in enumerate(cases.items()):
            runs = self._runs[number % of]
            # Files of one name in two folders call their cases alike, and a run knows each id once.
            run = next((i for i, each in enumerate(runs) if not any(key[1] == case and key[0] != file for file, case in each)), len(runs))
            if run == len(runs):
                runs.append({})
            runs[run][key] = backends
            self._place[key] = (number % of, run)
        self._thread = self._process = None
        self._stopped, self._read = False, {}

    def start(self):
        """Starts this process's part, if it has one and has not begun."""
        if self._thread is None and self._index is not None and self._runs[self._index]:
            (self.folder / f"{self._index}.pid").write_text(str(os.getpid()), encoding="utf-8")
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()

    def result(self, file, case, backend):
        """(result of report.json, the report, its run folder); waits for it. Raises BadCases where there is none."""
        self.start()
        part, run = self._place[file, case]
        report = self._report(part, run)
        for result in report["results"]:
            if result["id"] == case and result["backend"] == backend:
                return result, report, self.folder / f"{part}-{run}"
        raise BadCases(f"the run in {self.folder / f'{part}-{run}'} has no result of {case} on {backend}")

    def ended(self):
        """(run folder, what it printed, its report or None) of every run that is over, of any process."""
        for end in sorted(self.folder.glob("*-*.json")):
            run = end.with_suffix("")
            report = run / "report.json"
            said = json.loads(end.read_text(encoding="utf-8"))
            yield run, said["printed"], json.loads(report.read_text(encoding="utf-8")) if report.is_file() else None

    def close(self, *, stop):
        """Ends this process's part: others may wait for what it finds, so it is stopped only where all stops."""
        if self._thread is None:
            return
        if stop:
            self._stopped = True
            if self._process is not None and self._process.poll() is None:
                self._process.terminate()
        self._thread.join()

    def _work(self):
        for number, run in enumerate(self._runs[self._index]):
            if self._stopped:
                return
            name = f"{self._index}-{number}"
            files = list(dict.fromkeys(file for file, _ in run))
            backends = list(dict.fromkeys(backend for each in run.values() for backend in each))
            command = [str(places.binary()), "run", *map(shown, files), "-b", ",".join(backends), "-o", str(self.folder / name), *self.options]
            wanted = " or ".join(f'="{case}"' for _, case in run)
            if len(wanted) < _MOST_CHARACTERS:
                command += ["-k", wanted]
            try:
                self._process = subprocess.Popen(command, env=places.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                                 stderr=subprocess.PIPE, text=True, preexec_fn=_end_with_this_process)
                printed, said = self._process.communicate()
                code = self._process.returncode
            except OSError as error:
                printed, said, code = "", str(error), 4
            kept = self.folder / f"{name}.json.tmp"
            kept.write_text(json.dumps({"exit": code, "printed": printed, "said": said[-4000:]}), encoding="utf-8")
            kept.rename(self.folder / f"{name}.json")

    def _report(self, part, run):
        if (part, run) not in self._read:
            said = self._wait(part, run)
            file = self.folder / f"{part}-{run}" / "report.json"
            if not file.is_file():
                raise BadCases(f"ulpscope exits {said['exit']}: {(said['said'] or said['printed']).strip()}")
            self._read[part, run] = json.loads(file.read_text(encoding="utf-8"))
        return self._read[part, run]

    def _wait(self, part, run):
        end, pause = self.folder / f"{part}-{run}.json", 0.01
        while not end.is_file():
            if not self._is_there(part) and not end.is_file():
                raise BadCases(f"the process that ran {part}-{run} went away")
            time.sleep(pause)
            pause = min(2 * pause, 0.2)
        return json.loads(end.read_text(encoding="utf-8"))

    def _is_there(self, part):
        if part == self._index:
            return self._thread is not None and self._thread.is_alive()
        try:
            os.kill(int((self.folder / f"{part}.pid").read_text(encoding="utf-8")), 0)
        except (OSError, ValueError):
            return False
        return True


_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def _end_with_this_process():
    """Ends the run if the processes that wait for it were killed: Linux sends it this signal."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def shown(path):
    """The path as a user in the working folder would write it, for repro lines."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
