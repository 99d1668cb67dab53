#!/usr/bin/env python3
"""The adapters on every other version of PyTorch and JAX that has an environment here, beside the pinned one in one matrix.

A version that computes otherwise is a result and no failure; an adapter that fails with it is one.
"""
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ROOT, ulpscope  # noqa: E402

BACKENDS = {"torch": ["torch-aot-eager", "torch-inductor"], "jax": ["jax", "jax-eager"]}
CASES = ["cases/seeds/matmul_out.yaml", "cases/live/cast_boundary.yaml", "cases/live/fused_chain.yaml"]


def environments():
    """{framework: [NAME]} of those that ci/setup --with FRAMEWORK==VERSION made."""
    return {
        framework: sorted(folder.name.removeprefix(".venv-") for folder in ROOT.glob(f".venv-{framework}-[0-9n]*")
                          if (folder / "bin/python").exists())
        for framework in BACKENDS
    }


class Versions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.found = [(framework, name) for framework, names in environments().items() for name in names]

    def test_there_is_another_version(self):
        self.assertTrue(self.found, "ci/setup --with torch==newest, or --with jax==newest")

    def test_each_is_a_column_beside_the_pinned_one(self):
        compared = 0
        for framework, name in self.found:
            plain = BACKENDS[framework]
            columns = plain + [f"{backend}:env={name}" for backend in plain]
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                done = ulpscope("run", *CASES, "-b", ",".join(columns), "-o", folder + "/run", "--json", folder + "/run.json")
                self.assertIn(done.returncode, (0, 1), done.stderr)
                report = json.loads((pathlib.Path(folder) / "run.json").read_text(encoding="utf-8"))
                versions = report["run"]["versions"]
                cells = {(one["id"], one["backend"]): one for one in report["results"]}
                for backend in plain:
                    there = versions[f"{backend}:env={name}"][framework]
                    self.assertEqual(there.partition("+")[0] == name.partition("-")[2] or name.endswith("newest"), True, there)
                    self.assertIn(f"{framework} {there}", done.stdout)
                for (case, backend), one in cells.items():
                    if backend in plain or one["status"] == "SKIP":
                        continue
                    pinned = cells[case, backend.partition(":")[0]]
                    self.assertEqual(one["knobs"]["effective"]["env"], name)
                    self.assertEqual(one["outcome"]["kind"], pinned["outcome"]["kind"], (case, backend, one["outcome"]))
                    self.assertEqual([note for note in one.get("notes", []) if "not understood" in note], [], (case, backend))
                    compared += 1
                self.told_changes_are_those_of_the_report(folder, name, cells)
        self.assertGreater(compared, 10)

    def told_changes_are_those_of_the_report(self, folder, name, cells):
        told = ulpscope("diff", folder + "/run", "--env", f"default,{name}", "-v")
        self.assertIn(told.returncode, (0, 1), told.stderr)
        lines = [line.split() for line in told.stdout.splitlines() if line.startswith("  class ")]
        changed = {(case, backend) for _, case, backend, *_ in lines}
        differing = {
            (case, backend) for (case, backend), one in cells.items()
            if ":" not in backend and one["values"] and any(
                value["models"] != cells[case, f"{backend}:env={name}"]["values"].get(key, {}).get("models")
                for key, value in one["values"].items())
        }
        self.assertLessEqual(changed, differing, told.stdout)


if __name__ == "__main__":
    unittest.main()
