# The oneDNN adapter through its socket: what is its own beside the shapes, and what it cannot do.
"""usage: test_onednn.py [FOLDER_OF_BINARIES]   (default build/release/bin)"""

import math
import os
import unittest

from driver import Adapter, Tensor, bfloat16, step
from test_cblas import BIN, exact_terms, normal

BINARY = os.path.join(BIN, "ulpscope-onednn")


def start(isa=None):
    return Adapter(BINARY, "onednn", {"onednn_max_cpu_isa": isa} if isa else {})


def has(isa):
    """True on a processor with this instruction set."""
    adapter = start(isa)
    error = adapter.hello["error"]
    adapter.close()
    return not error


BFLOAT16 = os.path.exists(BINARY) and has("AVX512_CORE")
DOT_INSTRUCTION = os.path.exists(BINARY) and has("AVX512_CORE_BF16")


@unittest.skipUnless(os.path.exists(BINARY), f"{BINARY} is not built")
class OneDnn(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.adapter = start()
        assert cls.adapter.hello["error"] == "", cls.adapter.hello

    @classmethod
    def tearDownClass(cls):
        cls.adapter.close()

    def completed(self, *arguments, **keywords):
        reply = self.adapter.run(*arguments, **keywords)
        self.assertEqual(reply.kind, "completed", reply)
        return reply

    def test_shapes_follow_pytorch(self):
        # Small integers are exact in every order, so the answer is that of integer arithmetic.
        checked = 0
        for a, b, want in (
            ([3], [3], []),
            ([2, 3], [3], [2]),
            ([3], [3, 4], [4]),
            ([5, 1, 2, 3], [4, 3, 2], [5, 4, 2, 2]),
        ):
            x = [i % 7 - 3 for i in range(math.prod(a))]
            y = [i % 5 - 2 for i in range(math.prod(b))]
            tensors = {"a": Tensor("float32", a, x), "b": Tensor("float32", b, y)}
            reply = self.completed(tensors, [step("matmul", "a", "b", name="c")], ["c"])
            self.assertEqual(reply.tensors["c"].shape, want)
            m, k, n = (a[-2] if len(a) > 1 else 1), a[-1], (b[-1] if len(b) > 1 else 1)
            batches = math.prod(want) // (m * n)
            for i in range(batches):
                # The last batch axis of b repeats for every batch of a, whose own axis is 1 there.
                p = x[i // 4 * m * k :][: m * k] if batches > 1 else x
                q = y[i % 4 * k * n :][: k * n] if batches > 1 else y
                exact = [sum(terms) for terms in exact_terms(p, q, m, k, n)]
                self.assertEqual(reply.tensors["c"].values[i * m * n : (i + 1) * m * n], exact)
                checked += len(exact)
        self.assertEqual(checked, 1 + 2 + 4 + 80)

    def test_linear_alpha_and_beta(self):
        tensors = {
            "x": Tensor("float32", [2, 3], [1, 2, 3, 4, 5, 6]),
            "w": Tensor("float32", [2, 3], [1, 0, 0, 0, 1, -1]),
            "bias": Tensor("float32", [2], [10, 20]),
            "c": Tensor("float32", [1, 2, 2], [1, 1, 1, 1]),
            "p": Tensor("float32", [2, 2, 1], [1, 2, 3, 4]),
            "q": Tensor("float32", [2, 1, 2], [1, 2, 3, 4]),
        }
        reply = self.completed(
            tensors,
            [
                step("linear", "x", "w", "bias", name="l"),
                step("baddbmm", "c", "p", "q", name="b", alpha=2, beta=-1),
            ],
            ["l", "b"],
        )
        self.assertEqual(reply.tensors["l"].values, [11, 19, 14, 19])
        self.assertEqual(reply.tensors["b"].values, [1, 3, 3, 7, 17, 23, 23, 31])
        self.assertEqual(reply.parts, {})
        self.assertTrue(all("oneDNN implementation " in note for note in reply.notes), reply.notes)
        self.assertEqual(len(reply.notes), 2)
        kernels = [node for node in reply.message["nodes"] if node["stage"] == "kernel"]
        self.assertEqual([node["op"].split(" ")[:2] for node in kernels], [["oneDNN", "matmul"]] * 2)
        self.assertEqual(kernels[1]["inputs"], [["float32", [1, 2, 2]], ["float32", [2, 2, 1]], ["float32", [2, 1, 2]]])

    @unittest.skipUnless(BFLOAT16, "no bfloat16 on this processor")
    def test_a_bfloat16_product_is_accumulated_into_float32_in_one_primitive(self):
        m, k, n = 9, 64, 7
        x, y, main = normal(m * k, 1), normal(k * n, 2), normal(m * n, 3, "float32")
        tensors = {
            "x": Tensor("bfloat16", [m, k], x),
            "y": Tensor("bfloat16", [k, n], y),
            "main": Tensor("float32", [m, n], main),
        }
        reply = self.completed(
            tensors,
            [
                step("mm", "x", "y", name="narrow"),
                step("mm", "x", "y", name="wide", out_dtype="float32"),
                step("addmm", "main", "x", "y", out="main", name="fused"),
            ],
            ["narrow", "wide", "fused"],
        )
        # Nothing is widened for it, and no step but the product rounds.
        self.assertEqual((reply.casts, reply.parts), ([], {}))
        self.assertEqual(reply.tensors["fused"].dtype, "float32")
        terms = exact_terms(x, y, m, k, n)
        for wide, fused, addend, products in zip(
            reply.tensors["wide"].values, reply.tensors["fused"].values, main, terms
        ):
            bound = (k + 1) * 2.0**-24 * math.fsum(map(abs, [*products, addend]))
            self.assertLessEqual(abs(wide - math.fsum(products)), bound)
            self.assertLessEqual(abs(fused - math.fsum([*products, addend])), bound)
        self.assertEqual(reply.tensors["narrow"].values, [bfloat16(value) for value in reply.tensors["wide"].values])

    @unittest.skipUnless(DOT_INSTRUCTION, "no avx512_bf16 on this processor")
    def test_the_dot_instruction_drops_subnormals_and_the_widening_kernel_keeps_them(self):
        tensors = {
            "operand": Tensor("bfloat16", [1, 1], [2.0**-130]),
            "scale": Tensor("bfloat16", [1, 1], [2.0**20]),
            "small": Tensor("bfloat16", [1, 1], [2.0**-70]),
        }
        steps = [
            step("mm", "operand", "scale", name="of_a_subnormal", out_dtype="float32"),
            step("mm", "small", "small", name="to_a_subnormal", out_dtype="float32"),
        ]
        for isa, implementation, want in (
            ("AVX512_CORE_BF16", "avx512_core_bf16", (0.0, 0.0)),
            ("AVX512_CORE", "gemm:jit", (2.0**-110, 2.0**-140)),
        ):
            adapter = start(isa)
            reply = adapter.run(tensors, steps, ["of_a_subnormal", "to_a_subnormal"])
            self.assertEqual(reply.kind, "completed", reply)
            self.assertEqual(reply.knobs["onednn_max_cpu_isa"], isa)
            self.assertIn(implementation, reply.notes[0])
            found = [reply.tensors[name].values[0] for name in ("of_a_subnormal", "to_a_subnormal")]
            self.assertEqual(tuple(found), want)
            # The register that rules scalar arithmetic has nothing to do with it.
            self.assertTrue(reply.message["fp"]["after"]["subnormals_kept"])
            adapter.close()

    def test_what_onednn_has_no_implementation_for_is_unsupported_in_its_words(self):
        adapter = start("AVX2")
        tensors = {
            "a": Tensor("bfloat16", [2, 2], [1, 2, 3, 4]),
            "d": Tensor("float64", [2, 2], [1, 2, 3, 4]),
        }
        reply = adapter.run(tensors, [step("mm", "a", "a", name="c")], ["c"])
        self.assertEqual(reply.kind, "unsupported", reply)
        self.assertIn("mm bfloat16 . bfloat16 -> bfloat16: oneDNN: ", reply.text)
        reply = adapter.run(tensors, [step("mm", "d", "d", name="c")], ["c"])
        self.assertEqual((reply.kind, reply.text), ("unsupported", "mm: oneDNN has no dtype float64"))
        adapter.close()

    def test_knobs_are_read_back_and_refused_where_they_do_not_hold(self):
        adapter = Adapter(BINARY, "onednn", {"threads": "2", "onednn_max_cpu_isa": "AVX2"})
        reply = adapter.run({}, [], [])
        self.assertEqual(reply.knobs, {"threads": "2", "onednn_max_cpu_isa": "AVX2"})
        self.assertEqual(reply.message["fp"]["after"]["threads"], 2)
        adapter.close()
        for knobs, why in (
            ({"threads": "0"}, "is no count"),
            ({"mkldnn": "on"}, "unknown knob 'mkldnn'"),
            ({"onednn_max_cpu_isa": "AVX3"}, "no such instruction set"),
        ):
            adapter = Adapter(BINARY, "onednn", knobs)
            self.assertIn(why, adapter.hello["error"])
            adapter.close()
        # A cap on a processor that has less, or one that comes too late, is not in force.
        adapter = Adapter(BINARY, "onednn", {"onednn_max_cpu_isa": "AVX512_CORE_AMX"})
        runs_as = adapter.hello["versions"]["isa"]
        if runs_as != "AVX512_CORE_AMX":
            self.assertIn(f"oneDNN runs with {runs_as}", adapter.hello["error"])
        adapter.close()


if __name__ == "__main__":
    unittest.main()
