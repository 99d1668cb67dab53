#!/usr/bin/env python3
"""ci/: the set-up's messages when it cannot go on, what it builds again and what it leaves alone, and how legs are counted."""
import os
import pathlib
import resource
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ROOT, call  # noqa: E402


def bash(script, path=None, **environment):
    if path:
        environment["PATH"] = f"{path}:{environment.get('PATH', os.environ['PATH'])}"
    return call("bash", "-c", f"source {ROOT}/ci/lib.sh\n{script}", beside=environment)


def stub(folder, name, body):
    file = pathlib.Path(folder) / name
    file.write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


class Packages(unittest.TestCase):
    def run_with(self, installed, user, sudo):
        with tempfile.TemporaryDirectory() as folder:
            lines = "\n".join(f"installed {name}" for name in installed)
            stub(folder, "dpkg-query", f"printf '%s\\n' '{lines}'; exit 1")
            stub(folder, "id", f"echo {user}")
            stub(folder, "sudo", sudo)
            stub(folder, "apt-get", f'echo "$@" >>{folder}/apt.calls')
            done = bash("need_packages alpha beta gamma", path=folder)
            calls = pathlib.Path(folder) / "apt.calls"
            return done, calls.read_text(encoding="utf-8") if calls.exists() else ""

    def test_not_root_gets_one_line_with_the_missing_names_only(self):
        done, calls = self.run_with(["beta"], user=1000, sudo="exit 1")
        self.assertEqual(done.returncode, 4)
        self.assertEqual(done.stdout, "sudo apt-get update && sudo apt-get install -y --no-install-recommends alpha gamma\n")
        self.assertEqual(calls, "")

    def test_root_installs_the_missing_ones(self):
        done, calls = self.run_with(["beta"], user=0, sudo="exit 1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("install -q -y --no-install-recommends alpha gamma\n", calls)

    def test_nothing_missing_calls_nothing(self):
        done, calls = self.run_with(["alpha", "beta", "gamma"], user=1000, sudo="exit 1")
        self.assertEqual((done.returncode, done.stdout, calls), (0, "", ""))

    def test_what_the_machine_may_do_without_stops_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            stub(folder, "dpkg-query", "exit 1")
            stub(folder, "id", "echo 1000")
            stub(folder, "sudo", "exit 1")
            done = bash("want_packages alpha; echo reached", path=folder)
            self.assertEqual((done.returncode, done.stdout), (0, "reached\n"), done.stderr)
            self.assertIn("apt-get install -y --no-install-recommends alpha", done.stderr)
            self.assertIn("going on without them", done.stderr)

    def test_a_package_that_is_removed_but_configured_is_missing(self):
        done, _ = self.run_with(["alpha", "beta", "gamma-extra"], user=1000, sudo="exit 1")
        self.assertEqual(done.returncode, 4)
        self.assertIn(" gamma\n", done.stdout)


class Environment(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        base = pathlib.Path(self.folder.name)
        self.venv = base / "venv"
        self.requirements = base / "requirements.txt"
        self.requirements.write_text("something==1\n", encoding="utf-8")
        self.calls = base / "calls"
        # Plays the base interpreter and, copied into the environment, its pip.
        self.python = stub(base, "python-stub", f"""
echo "$@" >>{self.calls}
case "$*" in
  -V) echo "Python 3.12.1" ;;
  "-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
  *pip*) exit ${{PIP_STATUS:-0}} ;;
esac""")

    def need(self, **environment):
        self.calls.write_text("", encoding="utf-8")
        done = bash(f"need_venv {self.venv} {self.requirements}", ULPSCOPE_BASE_PYTHON=str(self.python), **environment)
        return done.returncode, self.calls.read_text(encoding="utf-8")

    def test_built_once(self):
        status, calls = self.need()
        self.assertEqual(status, 0)
        self.assertIn("pip install", calls)
        status, calls = self.need()
        self.assertEqual(status, 0)
        self.assertNotIn("pip", calls)

    def test_built_again_when_a_requirement_changes(self):
        self.need()
        self.requirements.write_text("something==2\n", encoding="utf-8")
        self.assertIn("pip install", self.need()[1])

    def test_half_an_environment_is_thrown_away(self):
        status, _ = self.need(PIP_STATUS="1")
        self.assertEqual(status, 4)
        leftover = self.venv / "leftover"
        leftover.write_text("from a pip that was killed", encoding="utf-8")
        status, calls = self.need()
        self.assertEqual(status, 0)
        self.assertIn("pip install", calls)
        self.assertFalse(leftover.exists())

    def test_no_suitable_python_is_said(self):
        done = bash("base_python", path=self.only_old_pythons(), ULPSCOPE_BASE_PYTHON="/nonexistent")
        if pathlib.Path("/usr/bin/python3").exists():
            self.assertEqual(done.stdout, "/usr/bin/python3\n")
        else:
            self.assertEqual(done.returncode, 4)

    def only_old_pythons(self):
        folder = pathlib.Path(self.folder.name)
        for name in ("python3", "python3.11", "python3.12", "python3.13"):
            stub(folder, name, "exit 1")
        return folder


class OtherVersions(unittest.TestCase):
    def requirements_of(self, name, script=""):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "ci").symlink_to(ROOT / "ci")
            done = bash(f'root={folder} venv={folder}/.venv\n{script}\nfile="$(requirements_of {name})"\ncat "$file"')
            return done, [line for line in done.stdout.splitlines() if not line.startswith("#")]

    def test_nothing_but_the_version_differs(self):
        _, pinned = self.requirements_of("torch-xla")
        self.assertIn("torch_xla==2.9.0", pinned, "a name stands for its own file")
        done, lines = self.requirements_of("torch==2.15.0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line for line in lines if line.startswith(("torch", "jax"))], ["torch==2.15.0"])
        common = (ROOT / "ci/requirements.txt").read_text(encoding="utf-8").splitlines()
        for package in ("numpy", "ml_dtypes", "safetensors"):
            self.assertEqual([line for line in lines if line.startswith(package + "==")],
                             [line for line in common if line.startswith(package + "==")])
        self.assertIn("sympy", " ".join(lines), "complete, for --without-nvidia")
        _, lines = self.requirements_of("jax==0.9.0")
        self.assertEqual([line for line in lines if line.startswith(("torch", "jax"))], ["jax==0.9.0", "jaxlib==0.9.0"])

    def test_the_newest_is_what_pip_finds(self):
        pip = 'mkdir -p "$venv/bin"; printf "#!/bin/bash\\necho \'%s\'\\n" "{0}" >"$venv/bin/python"; chmod +x "$venv/bin/python"'
        done, lines = self.requirements_of("torch==newest", pip.format("torch (9.8.7)"))
        self.assertEqual((done.returncode, lines[:1]), (0, ["torch==9.8.7"]), done.stderr)
        done, _ = self.requirements_of("jax==newest", pip.format("ERROR: No matching distribution"))
        self.assertEqual(done.returncode, 4)
        self.assertIn("pip finds no version of jax", done.stderr)

    def test_a_version_that_is_none_is_refused_before_anything_is_done(self):
        for name in ("torch==../x", "torch==", "numpy==1.0", "torch==1;rm", "nosuch"):
            done = call("bash", ROOT / "ci/setup", "--with", name)
            self.assertEqual(done.returncode, 4, name)
            self.assertIn(name, done.stderr)


class Counting(unittest.TestCase):
    def ran(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".log", encoding="utf-8") as log:
            log.write(text)
            log.flush()
            return bash(f"ran_of {log.name}").stdout.split()

    def test_unittest(self):
        self.assertEqual(self.ran("....\nRan 4 tests in 0.0s\n\nOK\n"), ["4", "0"])
        self.assertEqual(self.ran("Ran 5 tests in 0.0s\n\nFAILED (failures=1, errors=2)\n"), ["2", "3"])
        self.assertEqual(self.ran("Ran 3 tests in 0.0s\n\nOK (skipped=2)\n"), ["1", "0"])
        self.assertEqual(self.ran("Ran 1 test in 0.0s\n\nOK\n"), ["1", "0"])

    def test_own_closing_line(self):
        self.assertEqual(self.ran("noise\n12 passed, 3 failed\n"), ["12", "3"])

    def test_silence_is_nothing(self):
        self.assertEqual(self.ran("all good!\n"), ["0", "0"])

    def test_a_leg_that_ran_nothing_fails(self):
        self.assertEqual(bash('count leg 0 0; echo "$passed $failed"').stdout, "0 1\n")
        self.assertEqual(bash('count leg 3 1; count leg 2 0; echo "$passed $failed"').stdout, "5 1\n")


    def test_the_slowest_ten_legs_are_named_slowest_first(self):
        # A leg lasts from the one before it to its own count.
        legs = "".join(f"leg_began=$((SECONDS - {n})); count leg{n} 1 0\n" for n in range(20, 32))
        named = bash(f"{legs}slowest_legs").stderr.split("slowest legs:\n")[1].split()
        self.assertEqual(named[2::3], [f"leg{n}" for n in range(31, 21, -1)])


    def test_scripts_start_with_those_that_took_longest(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, counts in (("tests_a.py", "3 0 7"), ("tests_b.py", "1 0 120"), ("tests_c_d.sh", "9 1 30")):
                (pathlib.Path(folder) / f"{name}.log.counts").write_text(counts + "\n", encoding="utf-8")
            given = [f"{ROOT}/tests/{name}" for name in ("a.py", "b.py", "c/d.sh", "new.py")]
            done = bash(f"printf '%s\\n' {' '.join(given)} | longest_first {folder}")
            self.assertEqual(done.stdout.splitlines(), [given[3], given[1], given[2], given[0]], done.stderr)

    def test_a_fresh_clone_starts_with_what_is_known_to_take_long(self):
        rows = [line.split() for line in (ROOT / "ci/script_seconds").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
        took = {name: int(seconds) for seconds, name in rows}
        scripts = {str(file.relative_to(ROOT)).replace("/", "_") for file in (ROOT / "tests").glob("**/test_*") if file.suffix in (".py", ".sh")}
        self.assertEqual(sorted(set(took) - scripts), [], "in ci/script_seconds, and not there")
        with tempfile.TemporaryDirectory() as folder:
            slow, quick = "tests/docs/test_readme.py", "tests/adapters/test_hlo.py"
            done = bash(f"printf '%s\\n' {ROOT}/{quick} {ROOT}/{slow} | longest_first {folder}")
        self.assertEqual(done.stdout.splitlines(), [f"{ROOT}/{slow}", f"{ROOT}/{quick}"], done.stderr)
        self.assertGreater(took[slow.replace("/", "_")], took[quick.replace("/", "_")])


class Building(unittest.TestCase):
    def test_progress_is_told_without_a_terminal(self):
        lines = "[0/2] Re-checking globbed directories...\\nwarning\\n"
        lines += "".join(f"[{n}/40] Building {n}\\n" for n in range(1, 41))
        told = bash(f"printf '{lines}' | progress_of building").stderr.splitlines()
        self.assertEqual(told, [f"building: {n} of 40" for n in [1, *range(4, 41, 4)]])

    def test_a_second_call_waits_for_the_first_and_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            first = subprocess.Popen(
                ["bash", "-c", f"source {ROOT}/ci/lib.sh; root={folder}; one_at_a_time; echo held; read -r; echo first >>{folder}/order"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.addCleanup(first.stdout.close)
            self.assertEqual(first.stdout.readline(), "held\n")
            second = subprocess.Popen(
                ["bash", "-c", f"source {ROOT}/ci/lib.sh; root={folder}; one_at_a_time; echo second >>{folder}/order"],
                stderr=subprocess.PIPE, text=True)
            self.addCleanup(second.stderr.close)
            self.assertIn("waiting until it is done", second.stderr.readline())
            with self.assertRaises(subprocess.TimeoutExpired):
                second.wait(timeout=1)
            first.communicate("go on\n", timeout=60)
            self.assertEqual(second.wait(timeout=60), 0)
            self.assertEqual((pathlib.Path(folder) / "order").read_text(encoding="utf-8"), "first\nsecond\n")


class Commands(unittest.TestCase):
    def test_help_helps_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            # Any set-up begins with dpkg-query.
            stub(folder, "dpkg-query", f"touch {folder}/asked; exit 1")
            for arguments in (["--help"], ["--quick", "-h"]):
                done = call(ROOT / "ci/suite", *arguments, beside={"PATH": f"{folder}:{os.environ['PATH']}"})
                self.assertEqual(done.returncode, 0)
                self.assertIn("ci/suite [--quick]", done.stdout)
            self.assertFalse((pathlib.Path(folder) / "asked").exists())

    def test_a_leg_begins_only_where_it_can_end_in_time(self):
        for within, over, begins in ((0, 9000, True), (75, 3300, True), (75, 3301, False)):
            done = call("bash", "-c", f"source {ROOT}/ci/lib.sh; within={within} built=800 tested=400 left_out=() SECONDS={over}\n"
                        "in_time sanitizers && echo begins || echo \"left out: ${left_out[*]}\"")
            self.assertEqual(done.stdout.strip(), "begins" if begins else
                             "left out: sanitizers (some 20 minutes more, and 55 of 75 are over)", done.stderr)

    def test_unknown_arguments_are_refused(self):
        for command in (["ci/setup", "--nonsense"], ["ci/setup", "--with", "nonsense"], ["ci/test", "--nonsense"],
                        ["ci/test", "--within", "nonsense"]):
            with self.subTest(command=command):
                done = call(ROOT / command[0], *command[1:])
                self.assertEqual(done.returncode, 4)
                self.assertIn("nonsense", done.stderr)

    def test_second_setup_takes_under_two_seconds(self):
        if not (ROOT / "build/release/ulpscope.configured").exists():
            self.skipTest("this tree was not set up by ci/setup")
        first = call(ROOT / "ci/setup")
        self.assertEqual(first.returncode, 0, first.stderr)
        # Processor time, so that a busy machine does not decide.
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = call(ROOT / "ci/setup")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, 2.0)


if __name__ == "__main__":
    unittest.main()
