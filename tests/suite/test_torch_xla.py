"""Results that the seeds must show on PyTorch/XLA: the rounding that its optimiser drops, and casts that are counted.

The facts are those of torch 2.9.0 with torch_xla 2.9.0 on a CPU. Needs the environment of `ci/setup --with torch-xla`.
"""

import pathlib
import tempfile
import unittest

from test_must_show import Run

BACKENDS = ["torch-xla", "torch-xla-dynamo"]
STRICT = "torch-xla:xla_allow_excess_precision=false"


class OutProduct(unittest.TestCase):
    CASE = "seeds/matmul_out/xla_128x512"

    @classmethod
    def setUpClass(cls):
        cls.run_ = Run(cls.CASE, "-b", ",".join([*BACKENDS, STRICT]))

    def products(self, backend, stage):
        nodes, _ = self.run_.trace(self.CASE, backend)
        return [node["outputs"][0][0] for node in nodes if node["stage"] == stage and node["op"] in ("dot", "aten::mm")]

    def test_each_stage_says_what_its_product_is_stored_as(self):
        for backend in BACKENDS:
            stored = [self.products(backend, stage) for stage in ("lazy_ir", "hlo", "hlo_optimized")]
            self.assertEqual(stored, [["bfloat16"], ["bfloat16"], ["float32"]])
        self.assertEqual([self.products(STRICT, stage) for stage in ("lazy_ir", "hlo")], [["bfloat16"], ["bfloat16"]])

    def test_the_conversion_of_the_result_is_gone_after_optimisation(self):
        for backend, expected in ((BACKENDS[0], 0), (STRICT, 1)):
            _, casts = self.run_.trace(self.CASE, backend)
            widening = [c for c in casts if c["from"] == "bfloat16" and c["shape"] == [512, 512]]
            self.assertEqual(sum(c["stage"] == "hlo" for c in widening), 1, backend)
            self.assertEqual(sum(c["stage"] == "hlo_optimized" for c in widening), expected, backend)

    def test_the_bits(self):
        for backend in BACKENDS:
            self.assertLess(self.run_.bfloat16_valued(self.CASE, backend, "product"), 0.01)
        self.assertEqual(self.run_.bfloat16_valued(self.CASE, STRICT, "product"), 1.0)

    def test_the_stages_between_which_the_rounding_vanished_are_named(self):
        (divergence,) = self.run_.divergences(self.CASE, "precision", [*BACKENDS, STRICT])
        self.assertIn(STRICT, divergence["backends"][0] + divergence["backends"][1])
        self.assertIn("(hlo -> hlo_optimized)", divergence["sentence"])
        alone = Run(self.CASE, "-b", "torch-xla")
        (found,) = alone.divergences(self.CASE, "graph_vs_execution", ["torch-xla"])
        self.assertEqual((found["stages"], found["value"]), (["hlo", "hlo_optimized"], "product"))


class GraphCuts(unittest.TestCase):
    """pytorch/xla#3718: no conversion from bfloat16 in the graph of the backward pass; its return is news."""

    def test_none_today(self):
        run = Run("seeds/xla_graph_cuts", "-b", ",".join(BACKENDS))
        self.assertEqual(run.code, 0, run.stderr[-500:])
        self.assertEqual(len(run.results), 6)
        for (case, backend), result in run.results.items():
            self.assertEqual(result["status"], "PASS", (case, backend, result["reason"]))
            casts = [c for c in result["casts"] if c["stage"] == "lazy_ir"]
            self.assertEqual(sum(c["from"] == "bfloat16" for c in casts), 0)
        nodes, _ = run.trace("seeds/xla_graph_cuts/cast_weight", "torch-xla")
        graphs = [node["op"] for node in nodes if node["stage"] == "lazy_ir" and node["parent"] == -1]
        self.assertEqual(graphs, ["graph 1 (at sync)", "graph 2 (at sync)", "graph 3 (at the end)"])

    def test_a_conversion_more_or_less_is_news(self):
        text = (pathlib.Path(__file__).parents[2] / "cases/seeds/xla_graph_cuts.yaml").read_text()
        planted = text.replace("- {op: linear, of: [x, w], as: y}", "- {op: cast, of: [w], dtype: float32, as: wide}\n"
                               "      - {op: cast, of: [wide], dtype: bfloat16, as: back}\n"
                               "      - {op: linear, of: [x, back], as: y}")
        self.assertEqual(planted.count("as: back"), 3)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "planted.yaml"
            path.write_text(planted)
            run = Run(str(path), "-b", "torch-xla")
        self.assertEqual(run.code, 1)
        self.assertEqual({r["status"] for r in run.report["results"]}, {"FAIL"})
        for result in run.report["results"]:
            self.assertIn("changed: expected 0 casts from bfloat16 to any dtype in lazy_ir, observed ", result["reason"])


class Sharded(unittest.TestCase):
    def test_the_weight_gradient_is_narrow_in_the_graph_and_not_in_the_numbers(self):
        case = "seeds/fsdp/compute_dtype"
        run = Run(case, "-b", ",".join(["torch-xla", STRICT]))
        self.assertLess(run.bfloat16_valued(case, "torch-xla", "w.grad"), 0.01)
        self.assertEqual(run.bfloat16_valued(case, STRICT, "w.grad"), 1.0)
        self.assertEqual(run.value(case, STRICT, "w.grad")["facets"]["mid"], ["bfloat16"])


if __name__ == "__main__":
    unittest.main()
