"""The scripts of `ulpscope repro`: each runs where nothing of ulpscope can be imported, gives the recorded bits, and reports where it does
not."""
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import call, ulpscope  # noqa: E402

RESULTS = [
    ("seeds/matmul_out/as_posted", "torch-aot-eager"),
    ("seeds/matmul_out/as_posted", "torch-eager"),
    ("seeds/data_cast/forward_cast_backward", "torch-eager"),
    ("seeds/data_cast/forward_cast_backward", "torch-aot-eager"),
    ("seeds/preferred_element_type/as_type", "jax"),
    ("seeds/preferred_element_type/as_type", "jax-eager"),
    ("live/norm_in_float32/cast_up", "jax"),
]


class Repro(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="ulpscope-repro-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        ran = ulpscope("run", *sorted({case for case, _ in RESULTS}), "-b", ",".join(sorted({b for _, b in RESULTS})), "-q",
                       "-o", cls.folder / "run", timeout=900)
        assert ran.returncode in (0, 1), ran.stderr

    def bundle(self, case, backend):
        out = self.folder / f"{case.replace('/', '_')}_{backend}"
        made = ulpscope("repro", f"{case}@{backend}", "--run", self.folder / "run", "-o", out)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn("repro.py", made.stdout)
        return out

    def script(self, out):
        """Isolated: neither PYTHONPATH nor the folder of the caller is searched."""
        self.assertNotIn("ulpscope_", (out / "repro.py").read_text(encoding="utf-8"))
        return call(sys.executable, "-I", out / "repro.py", cwd=os.sep, timeout=300)

    def test_every_script_gives_the_recorded_bits(self):
        reproduced = 0
        for case, backend in RESULTS:
            done = self.script(self.bundle(case, backend))
            self.assertEqual(done.returncode, 0, f"{case} {backend}: {done.stdout}{done.stderr[-2000:]}")
            self.assertNotIn("NOT", done.stdout)
            reproduced += done.stdout.count(": reproduced, all ")
        self.assertGreater(reproduced, 8)
        print(f"\n{len(RESULTS)} scripts, {reproduced} values reproduced bit by bit")

    def test_one_other_bit_is_said(self):
        out = self.bundle("seeds/preferred_element_type/as_type", "jax")
        observed = out / "observed.safetensors"
        data = bytearray(observed.read_bytes())
        data[-1] ^= 1
        observed.write_bytes(data)
        done = self.script(out)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("result: NOT reproduced: 1 of ", done.stdout)


if __name__ == "__main__":
    unittest.main()
