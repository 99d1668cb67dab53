"""Results that the seeds' cases must show on the real frameworks: outcomes, dtypes, precision classes, divergences.

The facts asserted here are those of torch 2.13.0 and jax 0.10.2 on a CPU. Each value that is reported rounded is also looked at bit by bit
in the recorded tensors, so that the classifier is not its own witness.
"""

import atexit
import functools
import json
import math
import os
import pathlib
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import report  # noqa: E402
from programs import ROOT, ulpscope  # noqa: E402
from suite_run import suite_run  # noqa: E402
TORCH = ["torch-eager", "torch-traced", "torch-aot-eager", "torch-inductor"]


class Recorded:
    """The content of a run folder: report, and the tensors and traces that lie beside it."""

    def __init__(self, path):
        self.report = report.load(path)
        self.path = path
        self.results = {(r["id"], r["backend"]): r for r in self.report["results"]}

    def result(self, case, backend):
        return self.results[(case, backend)]

    def value(self, case, backend, name):
        return self.result(case, backend)["values"][name]

    def divergences(self, case, kind, among):
        """Those of a case in which two groups of the backends `among` differ; their groups hold no others."""
        found = {}
        for divergence in self.report["divergences"]:
            groups = [sorted(set(group) & set(among)) for group in divergence["backends"]]
            if divergence["case"] == case and divergence["kind"] == kind and all(groups):
                found.setdefault((divergence.get("value"), str(groups)), {**divergence, "backends": groups})
        return list(found.values())

    def tensor(self, case, backend, name):
        """(dtype, raw bytes) as recorded in the run folder."""
        for line in (self.path / "journal.jsonl").read_text().splitlines():
            record = json.loads(line)["record"]
            if record.get("type") == "result" and record["case"] == case and record["backend"] == backend:
                data = (self.path / record["tensors"]["file"]).read_bytes()
                length = struct.unpack("<Q", data[:8])[0]
                header = json.loads(data[8:8 + length])
                begin, end = header[name]["data_offsets"]
                return header[name]["dtype"], data[8 + length + begin:8 + length + end]
        raise AssertionError(f"no tensors of {case} on {backend}")

    def trace(self, case, backend):
        """The nodes of a result's trace, as recorded in the run folder, and its casts."""
        for line in (self.path / "journal.jsonl").read_text().splitlines():
            record = json.loads(line)["record"]
            if record.get("type") == "result" and record["case"] == case and record["backend"] == backend:
                nodes = json.loads((self.path / record["trace"]["file"]).read_text())["nodes"]
                return nodes, record["observation"]["casts"]
        raise AssertionError(f"no trace of {case} on {backend}")

    def bfloat16_valued(self, case, backend, name):
        """Share of float32 elements whose low 16 bits are all zero."""
        dtype, data = self.tensor(case, backend, name)
        assert dtype == "F32", dtype
        words = [data[i:i + 2] for i in range(0, len(data), 4)]
        assert words
        return sum(word == b"\0\0" for word in words) / len(words)


class Run(Recorded):
    """One run of the binary: exit code, what it printed to stderr, report, and the folder."""

    def __init__(self, *arguments, env=None, cwd=None):
        self.folder = tempfile.TemporaryDirectory(prefix="ulpscope-must-show-", ignore_cleanup_errors=True)
        atexit.register(self.folder.cleanup)
        out = pathlib.Path(self.folder.name) / "run"
        command = ["run", *arguments, "-o", out, "-q"]
        done = ulpscope(*command, cwd=cwd or ROOT, beside=env, timeout=900)
        assert (out / "report.json").exists(), f"{command} exited {done.returncode}: {done.stderr[-2000:]}"
        super().__init__(out)
        self.code, self.stderr = done.returncode, done.stderr


@functools.cache
def suite():
    """The run of ci/suite, which all classes here look at but Invariance."""
    ran = suite_run()
    assert (ran.path / "report.json").exists(), ran.stdout[-2000:] + ran.stderr[-2000:]
    return Recorded(ran.path)


class AsPosted(unittest.TestCase):
    CASE = "seeds/matmul_out/as_posted"
    THREE = ["torch-eager", "torch-aot-eager", "torch-inductor"]

    @classmethod
    def setUpClass(cls):
        cls.run_ = suite()

    def test_exit_code(self):
        ran = suite_run()
        self.assertEqual(ran.code, 0, ran.stderr)

    def test_eager_raises(self):
        outcome = self.run_.result(self.CASE, "torch-eager")["outcome"]
        self.assertEqual((outcome["kind"], outcome["class"]), ("raised", "RuntimeError"))
        self.assertIn("Expected out tensor to have dtype", outcome["text"])

    def test_aot_eager_is_proved_not_float32_throughout(self):
        product = self.run_.value(self.CASE, "torch-aot-eager", "product")
        self.assertEqual(product["dtype"], "float32")
        self.assertEqual(product["facets"]["mid"], ["bfloat16"])
        throughout = "in=as_is;prod=exact;acc=float32;mid=none;out=float32_rne"
        self.assertNotIn(throughout, product["models_proved"])
        witness = [e for e in product["excluded"] if e["model"] == throughout]
        self.assertEqual(len(witness), 1)
        self.assertEqual(len(witness[0]["element"]), 4)
        self.assertEqual(self.run_.bfloat16_valued(self.CASE, "torch-aot-eager", "product"), 1.0)

    def test_inductor_is_unrounded(self):
        product = self.run_.value(self.CASE, "torch-inductor", "product")
        self.assertEqual(product["dtype"], "float32")
        self.assertEqual(product["facets"]["mid"], ["none"])
        self.assertFalse([a for a in product["facets"]["acc"] if "bfloat16" in a])
        self.assertLess(self.run_.bfloat16_valued(self.CASE, "torch-inductor", "product"), 0.1)

    def test_divergences(self):
        self.assertEqual(len(self.run_.divergences(self.CASE, "outcome", self.THREE)), 2)
        precision = self.run_.divergences(self.CASE, "precision", self.THREE)
        self.assertEqual(len(precision), 1)
        self.assertEqual((precision[0]["value"], precision[0]["basis"]), ("product", "proved"))
        self.assertIn("to bfloat16 before the float32 buffer", precision[0]["sentence"])


class Siblings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_ = suite()

    def test_rounded_by_aot_and_inductor(self):
        for name in ("square_64", "two_by_two", "xla_128x512"):
            case = f"seeds/matmul_out/{name}"
            for backend in ("torch-eager", "torch-traced"):
                self.assertEqual(self.run_.result(case, backend)["outcome"]["kind"], "raised", (case, backend))
            for backend in ("torch-aot-eager", "torch-inductor"):
                self.assertEqual(self.run_.value(case, backend, "product")["facets"]["mid"], ["bfloat16"], (case, backend))
                self.assertEqual(self.run_.bfloat16_valued(case, backend, "product"), 1.0)

    def test_float_first_is_unrounded_everywhere(self):
        for backend in TORCH + ["openblas"]:
            value = self.run_.value("seeds/matmul_out/float_first", backend, "product")
            self.assertEqual((value["dtype"], value["facets"]["mid"]), ("float32", ["none"]), backend)
            self.assertLess(self.run_.bfloat16_valued("seeds/matmul_out/float_first", backend, "product"), 0.1)

    def test_out_dtype_at_one_by_one(self):
        case = "seeds/out_dtype/one_by_one"
        self.assertEqual(self.run_.result(case, "torch-eager")["outcome"]["kind"], "raised")
        self.assertEqual(self.run_.value(case, "torch-inductor", "product")["dtype"], "bfloat16")
        self.assertTrue(self.run_.divergences(case, "outcome", TORCH + ["openblas"]))
        dtype = self.run_.divergences(case, "dtype", TORCH + ["openblas"])
        self.assertEqual([sorted(map(sorted, d["backends"])) for d in dtype], [[["openblas"], ["torch-inductor"]]])


class Autocast(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_ = suite()

    def test_layer_norm_stays_bfloat16(self):
        for case in ("layer_norm", "layer_norm_without"):
            for backend in TORCH:
                value = self.run_.value(f"seeds/autocast/{case}", backend, "result")
                self.assertEqual(value["dtype"], "bfloat16", (case, backend))

    def test_float32_operand_is_rounded(self):
        for backend in TORCH:
            product = self.run_.value("seeds/autocast/matmul_mixed", backend, "product")
            self.assertEqual(product["dtype"], "bfloat16")
            self.assertEqual(product["facets"]["in"]["w"], ["bfloat16_rne"], backend)
            outcome = self.run_.result("seeds/autocast/matmul_mixed_without", backend)["outcome"]
            self.assertEqual(outcome["kind"], "raised", backend)


class DataCast(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_ = suite()

    def test_gradient_and_parameter_dtypes(self):
        for case, parameter, gradient in (("cast_forward_backward", "bfloat16", "bfloat16"),
                                          ("forward_cast_backward", "bfloat16", "float32"),
                                          ("cast_forward_restore_backward", "float32", "bfloat16"),
                                          ("constructed", "bfloat16", "bfloat16")):
            for backend in TORCH:
                values = self.run_.result(f"seeds/data_cast/{case}", backend)["values"]
                self.assertEqual((values["w"]["dtype"], values["w.grad"]["dtype"]), (parameter, gradient), (case, backend))
                self.assertTrue(values["w.grad"]["models"], (case, backend))


class PreferredElementType(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_ = suite()

    def test_asked_or_not(self):
        for backend in ("jax", "jax-eager"):
            asked = self.run_.value("seeds/preferred_element_type/float32", backend, "product")
            self.assertEqual((asked["dtype"], asked["facets"]["mid"]), ("float32", ["none"]))
            self.assertEqual(self.run_.value("seeds/preferred_element_type/unset", backend, "product")["dtype"], "bfloat16")

    def test_jit_drops_the_rounding(self):
        case = "seeds/preferred_element_type/as_type"
        self.assertEqual(self.run_.value(case, "jax", "result")["facets"]["mid"], ["none"])
        self.assertEqual(self.run_.value(case, "jax-eager", "result")["facets"]["mid"], ["bfloat16"])
        self.assertEqual(len(self.run_.divergences(case, "precision", ["jax", "jax-eager"])), 1)
        self.assertLess(self.run_.bfloat16_valued(case, "jax", "result"), 0.1)
        self.assertEqual(self.run_.bfloat16_valued(case, "jax-eager", "result"), 1.0)


def results_of(nodes, op):
    """stage -> dtypes of the results of the nodes of that op"""
    found = {}
    for node in nodes:
        if node["op"] == op:
            found.setdefault(node["stage"], []).append(node["outputs"][0][0])
    return found


def conversions(casts, shape):
    """stage -> the casts of values of that many elements, in order"""
    found = {}
    for cast in casts:
        if math.prod(cast["shape"]) == math.prod(shape):
            found.setdefault(cast["stage"], []).append((cast["from"], cast["to"]))
    return found


class GraphAgainstExecution(unittest.TestCase):
    """Every stage of the graph shows a rounded value; the last one and the numbers show that it is not rounded."""

    NARROW, WIDE = ("float32", "bfloat16"), ("bfloat16", "float32")

    def test_inductor_drops_the_rounding_between_its_graph_and_its_code(self):
        case = "seeds/matmul_out/as_posted"
        run = suite()
        nodes, casts = run.trace(case, "torch-inductor")
        found = conversions(casts, [32, 7])
        self.assertEqual(found["aot_forward"], [self.NARROW, self.WIDE])
        self.assertEqual(found["post_grad"], [self.NARROW, self.WIDE])
        self.assertEqual(found["generated"], [self.WIDE])  # of the bfloat16 operand that is added
        unused = [node for node in nodes if node["op"] == "unused convert"]
        self.assertEqual([node["outputs"] for node in unused], [[["bfloat16", [224]]]])
        self.assertLess(run.bfloat16_valued(case, "torch-inductor", "product"), 0.1)
        precision = run.divergences(case, "precision", ["torch-aot-eager", "torch-inductor"])
        self.assertEqual(len(precision), 1)
        self.assertIn("(post_grad -> generated)", precision[0]["sentence"])

    def test_inductor_rounds_where_its_code_says_so(self):
        case = "seeds/matmul_out/square_64"
        run = suite()
        nodes, casts = run.trace(case, "torch-inductor")
        self.assertEqual(results_of(nodes, "extern_kernels.mm"), {"generated": ["bfloat16"]})
        self.assertEqual(conversions(casts, [64, 64])["generated"], [self.WIDE])
        self.assertEqual(run.bfloat16_valued(case, "torch-inductor", "product"), 1.0)
        self.assertFalse(run.divergences(case, "graph_vs_execution", ["torch-inductor"]))

    def test_xla_drops_the_rounding_between_its_two_hlo(self):
        case = "seeds/preferred_element_type/as_type"
        run = suite()
        nodes, casts = run.trace(case, "jax")
        self.assertEqual(results_of(nodes, "dot_general"), {"jaxpr": ["bfloat16"], "stablehlo": ["bfloat16"]})
        self.assertEqual(results_of(nodes, "dot"), {"hlo": ["bfloat16"], "hlo_optimized": ["float32"]})
        shape = run.value(case, "jax", "result")["shape"]
        found = conversions(casts, shape)
        self.assertEqual(found["hlo"], [self.WIDE])
        self.assertNotIn("hlo_optimized", found)
        self.assertLess(run.bfloat16_valued(case, "jax", "result"), 0.1)
        # Forbidden to keep more precision, it rounds: the product is still a float32 one, with a pair after it.
        strict = "seeds/preferred_element_type/as_type_strict"
        nodes, casts = run.trace(strict, "jax")
        self.assertEqual(results_of(nodes, "dot"), {"hlo": ["bfloat16"], "hlo_optimized": ["float32"]})
        self.assertEqual(conversions(casts, shape)["hlo_optimized"], [self.NARROW, self.WIDE])
        self.assertEqual(run.bfloat16_valued(strict, "jax", "result"), 1.0)


class Conversions(unittest.TestCase):
    """The cost of a cast beside the op that it is made for: measured where it stands, nothing if a kernel took it in."""

    @classmethod
    def setUpClass(cls):
        cls.case = "live/norm_in_float32/cast_up"
        cls.ran = suite()

    def shares(self, case, backend):
        return self.ran.report["volatile"]["casts_us"][f"{case}@{backend}"]

    def costs(self, backend):
        return {cost["stage"]: cost for cost in self.ran.result(self.case, backend)["cast_costs"]}

    def test_eager_pays_beside_the_norm_that_reads_it(self):
        share, = self.shares(self.case, "torch-eager")
        self.assertEqual((share["stage"], share["under"], share["before"]), ("dispatch", "aten::to", "aten::layer_norm"))
        self.assertGreater(share["casts_us"], 0)
        self.assertGreater(share["op_us"], 0)
        self.assertEqual(self.costs("torch-eager")["dispatch"]["moved_bytes"], 4 * 64 * 256 * (2 + 4))

    def test_autocast_pays_inside_the_product(self):
        share, = self.shares("seeds/autocast/matmul_mixed", "torch-eager")
        self.assertEqual((share["under"], share["before"]), ("aten::matmul", ""))
        self.assertGreater(min(share["casts_us"], share["op_us"]), 0)

    def test_inductor_converts_in_registers(self):
        costs = self.costs("torch-inductor")
        self.assertEqual(costs["post_grad"]["moved_bytes"], 4 * 64 * 256 * (2 + 4))
        self.assertEqual(costs["generated"]["moved_bytes"], 0)
        self.assertGreater(costs["generated"]["in_kernels"], 0)


class WeightGradient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # oneDNN's is the one product here that takes bfloat16 and adds into float32 in one call of the library.
        cls.backends = ["openblas"] + (["onednn"] if (ROOT / "build/release/bin/ulpscope-onednn").exists() else [])
        cls.run_ = suite()

    def test_where_the_rounding_sits(self):
        for suffix in ("", "_8"):
            case = f"seeds/wgrad_accumulate/unfused{suffix}"
            for library in self.backends:
                if self.run_.results[case, library]["status"] == "SKIP":
                    continue  # no bfloat16 on this processor
                fused = self.run_.value(f"seeds/wgrad_accumulate/fused{suffix}", library, "result")
                self.assertEqual(fused["facets"]["mid"], ["none"], (suffix, library))
                for backend in (library, "torch-eager"):
                    unfused = self.run_.value(case, backend, "result")
                    self.assertEqual(unfused["facets"]["mid"], ["bfloat16"], (suffix, backend))
                    # Four orders of magnitude, whatever the data: 2^-9 against a few 2^-25.
                    self.assertGreater(unfused["max_abs"] / fused["max_abs"], 1e3, (suffix, backend))
                print(f"wgrad{suffix} {library}: fused {fused['max_abs']:.2e}, through bfloat16 {unfused['max_abs']:.2e}")


class Invariance(unittest.TestCase):
    """The same verdicts and the same bits, whatever the caller's surroundings."""

    CASES = ["seeds/matmul_out", "seeds/data_cast", "seeds/preferred_element_type", "-m", "smoke"]
    BACKENDS = ["-b", "torch-eager,torch-aot-eager,jax,openblas,emulated"]

    def verdicts(self, run):
        """Everything stable; what was preset in the environment is recorded and may differ."""
        report = {key: value for key, value in run.report.items() if key != "volatile"}
        report["run"] = {key: value for key, value in report["run"].items() if key != "environment"}
        return report

    def tensors(self, run):
        """Case and backend -> bytes of what was observed."""
        found = {}
        for line in (run.path / "journal.jsonl").read_text().splitlines():
            record = json.loads(line)["record"]
            if record.get("type") == "result" and record.get("tensors"):
                found[record["case"], record["backend"]] = (run.path / record["tensors"]["file"]).read_bytes()
        return found

    def test_surroundings(self):
        plain = Run(*self.CASES, *self.BACKENDS, "-j1")
        self.assertGreater(len(plain.results), 20)
        verdicts, tensors = self.verdicts(plain), self.tensors(plain)
        preset = {"OPENBLAS_CORETYPE": "Nehalem", "ATEN_CPU_CAPABILITY": "default", "XLA_USE_BF16": "1"}
        # All at once, since nothing of it may change anything: another run is nearly all time for starting frameworks.
        preset = {"OPENBLAS_CORETYPE": "Nehalem", "ATEN_CPU_CAPABILITY": "default", "XLA_USE_BF16": "1", "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"}
        other = Run(*self.CASES, *self.BACKENDS, "-j2", env=preset, cwd="/")
        self.assertEqual(self.verdicts(other), verdicts)
        self.assertEqual(self.tensors(other), tensors)
        self.assertEqual(other.report["run"]["environment"].get("OPENBLAS_CORETYPE"), "Nehalem")


if __name__ == "__main__":
    unittest.main(verbosity=1)
