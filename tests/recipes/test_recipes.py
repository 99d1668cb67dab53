#!/usr/bin/env python3
"""The recipes in ci/recipes/: valid for the machines that read them, safe as they stand, and made of commands and flags that exist."""
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ROOT, call, ulpscope  # noqa: E402

TOOLS = ROOT / ".venv-lint/bin"
RECIPES = ROOT / "ci/recipes"
PLANTED = {  # tool -> (recipe, what is planted, what it is planted in the place of)
    "schema": ("github-nightly.yml", "runs-on:", "run-on:"),
    "zizmor": ("github-nightly.yml", 'run: ci/setup --quick', 'run: ci/setup --${{ github.event.issue.title }}'),
    "hadolint": ("Dockerfile", "FROM debian:12-slim AS build", "FROM debian AS build"),
    "kubernetes": ("kubernetes.yaml", "completions: 4", "completions: four"),
}


def schema(file, kind="vendor.github-workflows"):
    return call(TOOLS / "check-jsonschema", "--builtin-schema", kind, file)


def zizmor(file):
    with tempfile.TemporaryDirectory() as folder:  # it looks for workflows where GitHub does
        place = pathlib.Path(folder) / ".github/workflows"
        place.mkdir(parents=True)
        shutil.copy(file, place / "nightly.yml")
        return call(TOOLS / "zizmor", "--offline", "--no-progress", place / "nightly.yml")


def kubernetes(file):
    return call(TOOLS / "kubernetes-validate", "--strict", file)


def hadolint(file):
    return call(TOOLS / "hadolint", "--no-color", file)


class Recipes(unittest.TestCase):
    def fine(self, done):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_github(self):
        self.fine(schema(RECIPES / "github-nightly.yml"))
        self.fine(zizmor(RECIPES / "github-nightly.yml"))

    def test_gitlab(self):
        self.fine(schema(RECIPES / "gitlab-ci.yml", "vendor.gitlab-ci"))

    def test_kubernetes(self):
        self.fine(kubernetes(RECIPES / "kubernetes.yaml"))

    def test_docker(self):
        """The linter reports nothing; what is installed is what ci/setup installs, and of the version that the tests have."""
        self.fine(hadolint(RECIPES / "Dockerfile"))
        text, lib = ((ROOT / name).read_text(encoding="utf-8") for name in ("ci/recipes/Dockerfile", "ci/lib.sh"))
        wanted = [name for array in ("kPackages", "kPythonPackages") for name in re.search(rf"readonly {array}=\((.*?)\)", lib, re.DOTALL)[1].split()]
        installed = re.search(r"--no-install-recommends (.*?)&&", text, re.DOTALL)[1].replace("\\", "").split()
        self.assertGreater(len(wanted), 15)
        self.assertEqual(installed, wanted)
        pinned = re.search(r"scikit-build-core==[0-9.]+", (ROOT / "ci/requirements-package.txt").read_text(encoding="utf-8"))[0]
        self.assertIn(f'"{pinned}"', text)

    def test_the_checks_find_what_is_planted(self):
        for check in (schema, zizmor, kubernetes, hadolint):
            name, good, bad = PLANTED[check.__name__]
            text = (RECIPES / name).read_text(encoding="utf-8")
            self.assertIn(good, text)
            with tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder) / name
                file.write_text(text.replace(good, bad, 1), encoding="utf-8")
                self.assertNotEqual(check(file).returncode, 0, check.__name__)

    def test_every_command_is_one_that_there_is(self):
        seen = 0
        for recipe in sorted(RECIPES.iterdir()):
            text = recipe.read_text(encoding="utf-8").replace('"${ULPSCOPE:-ulpscope}"', "ulpscope")
            for line in re.findall(r"(?:^|[/ ])ulpscope ([a-z]+ [^\n]*)", text, re.MULTILINE):
                if line.startswith("#") or recipe.name == "README.md":
                    continue
                command, *words = line.split(";")[0].split("||")[0].split()
                flags = re.findall(r"(?<![\w-])(-{1,2}[a-z][a-z-]*)", ulpscope(command, "--help").stdout)
                for word in words:
                    if re.fullmatch(r"-{1,2}[a-z][a-z-]*", word):
                        self.assertIn(word, flags, f"{recipe.name}: {line}")
                        seen += 1
            for script in re.findall(r"(?<![\w/.])ci/[a-z]+(?= |$)", text, re.MULTILINE):
                self.assertTrue((ROOT / script).is_file() or (ROOT / script).is_dir(), script)
        self.assertGreater(seen, 20)

    def test_no_job_hangs_or_cancels_its_neighbours(self):
        text = (RECIPES / "github-nightly.yml").read_text(encoding="utf-8")
        self.assertEqual(text.count("timeout-minutes:"), text.count("runs-on:"))
        self.assertIn("fail-fast: false", text)


if __name__ == "__main__":
    unittest.main()
