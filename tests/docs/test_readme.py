#!/usr/bin/env python3
"""README.md keeps its word: every command in it is run, every file in it works, its matrix is what a run prints.

test_readme.py --update writes today's matrix into it.
"""
import os
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ROOT, call, ulpscope  # noqa: E402
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"(?:<!-- file: (?P<file>\S+) -->\n)?```(?P<kind>\w+)\n(?P<text>.*?)```\n", re.DOTALL)


MATRIX = re.compile(r"(<!-- matrix: (.*?) -->\n```text\n)(.*?)```", re.DOTALL)


def print_matrix(arguments):
    """The lines that the run prints which the README shows an extract of."""
    with tempfile.TemporaryDirectory() as folder:
        done = ulpscope("run", *arguments.split(), "-o", folder + "/run")
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return done.stdout.splitlines()


def update():
    """Puts what a run prints today into the README: the first precision divergence, the matrix, its legend."""
    match = MATRIX.search(README)
    lines = print_matrix(match[2])
    first = next(i for i, line in enumerate(lines) if re.match(r" {8,}torch-eager", line))
    last = max(i for i, line in enumerate(lines) if "A B equal letters" in line) + 1
    start = next(i for i, line in enumerate(lines) if re.match(r" +\d+ +precision +seeds/matmul_out/as_posted", line))
    end = start + 1
    while lines[end].startswith(" " * 7):
        end += 1
    extract = "\n".join(lines[start:end]) + "\n\n" + "\n".join(lines[first:last]).rstrip() + "\n"
    text = README[:match.start(3)] + extract + README[match.end(3):]
    (ROOT / "README.md").write_text(text, encoding="utf-8")


def blocks():
    return [(match["kind"], match["file"], match["text"]) for match in BLOCK.finditer(README)]


def commands(text):
    lines = (line.split(" #")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


class Readme(unittest.TestCase):
    def test_every_command_runs(self):
        ran = 0
        with tempfile.TemporaryDirectory() as folder:
            for shared in ("build", "backends", "harness", ".venv"):
                (pathlib.Path(folder) / shared).symlink_to(ROOT / shared)
            for kind, file, text in blocks():
                if file:
                    (pathlib.Path(folder) / file).write_text(text, encoding="utf-8")
                    continue
                if kind != "sh":
                    continue
                for command in commands(text):
                    with self.subTest(command=command):
                        self.run_command(command, folder)
                        ran += 1
        self.assertGreaterEqual(ran, 6)

    def run_command(self, command, folder):
        if command == "ci/test":
            # This test is part of it: that it is running is the proof. Alone, the command is only asked what it does.
            if os.environ.get("ULPSCOPE_IN_CI_TEST"):
                return
            command += " --help"
        done = call("bash", "-c", command, cwd=ROOT if command.startswith("ci/") else folder, timeout=1200)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        self.assertTrue(done.stdout.strip(), f"{command} printed nothing")

    def test_the_adapters_are_those_in_the_tree(self):
        shown = [text for kind, file, text in blocks() if file == "example_numpy.py"]
        self.assertEqual(len(shown), 1)
        self.assertEqual(shown[0], (ROOT / "backends/python/example_numpy.py").read_text(encoding="utf-8"))
        self.assertLessEqual(len(shown[0].splitlines()), 50, "no longer fits on a screen")
        shown = [text for kind, file, text in blocks() if kind == "cpp"]
        self.assertEqual(len(shown), 1)
        self.assertEqual(shown[0], (ROOT / "backends/example/example_loops.cc").read_text(encoding="utf-8"))
        self.assertLessEqual(len(shown[0].splitlines()), 55, "no longer fits on a screen")

    def test_shown_cases_exist(self):
        shown = set(re.findall(r"\b(?:seeds|live)/\w+/\w+", README))
        self.assertGreater(len(shown), 3)
        listed = ulpscope("list", "cases")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        known = set(re.findall(r"\b(?:seeds|live)/\w+/\w+", listed.stdout))
        self.assertEqual(sorted(shown - known), [])

    def test_the_matrix_is_what_a_run_prints(self):
        arguments, shown = MATRIX.search(README).groups()[1:]
        # Column widths are the terminal's business.
        printed = {" ".join(line.split()) for line in print_matrix(arguments)}
        lines = [" ".join(line.split()) for line in shown.splitlines() if line.strip()]
        self.assertGreater(len(lines), 20)
        self.assertEqual([line for line in lines if line not in printed], [], "mend with: test_readme.py --update")

    def test_exit_codes_are_complete(self):
        self.assertEqual(re.findall(r"^\| (\d) \|", README, re.MULTILINE), list("0123456"))

    def test_linked_files_exist(self):
        links = re.findall(r"\w\]\(([\w./]+)\)", README)
        self.assertTrue(links)
        self.assertEqual([link for link in links if not (ROOT / link).exists()], [])


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update()
    else:
        unittest.main()
