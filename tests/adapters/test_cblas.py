# The CBLAS adapters through their socket: shapes, dtypes, the fused accumulation, knobs, refusals.
"""usage: test_cblas.py [FOLDER_OF_BINARIES]   (default build/release/bin)"""

import math
import os
import random
import sys
import unittest

from driver import AVX512, Adapter, Tensor, bfloat16, float32, step

BIN = os.path.join(os.path.dirname(__file__), "../../build/release/bin")
if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]):
    BIN = sys.argv.pop(1)
OPENBLAS = os.path.join(BIN, "ulpscope-openblas")
BLIS = os.path.join(BIN, "ulpscope-blis")


def normal(count, seed, dtype="bfloat16"):
    draw = random.Random(seed)
    rounding = bfloat16 if dtype == "bfloat16" else float32 if dtype == "float32" else float
    return [rounding(draw.gauss(0, 1)) for _ in range(count)]


def exact_terms(a, b, m, k, n):
    """For each element its products, which are exact in binary64 for 16-bit operands."""
    return [[a[i * k + x] * b[x * n + j] for x in range(k)] for i in range(m) for j in range(n)]


class Products:
    """Tests that are the same for every library; BINARY and BACKEND say which it is."""

    @classmethod
    def setUpClass(cls):
        cls.adapter = Adapter(cls.BINARY, cls.BACKEND)
        assert cls.adapter.hello["error"] == "", cls.adapter.hello

    @classmethod
    def tearDownClass(cls):
        cls.adapter.close()

    def completed(self, *arguments, **keywords):
        reply = self.adapter.run(*arguments, **keywords)
        self.assertEqual(reply.kind, "completed", reply)
        return reply

    def test_a_float32_buffer_is_unrounded_and_a_bfloat16_result_is_rounded(self):
        m, k, n = 9, 64, 7
        x, y = normal(m * k, 1), normal(k * n, 2)
        tensors = {"x": Tensor("bfloat16", [m, k], x), "y": Tensor("bfloat16", [k, n], y)}
        reply = self.completed(
            tensors,
            [
                step("empty", name="buffer", shape=[m, n], dtype="float32"),
                step("matmul", "x", "y", out="buffer", name="wide"),
                step("matmul", "x", "y", name="preferred", preferred_element_type="float32"),
                step("mm", "x", "y", name="narrow"),
            ],
            ["wide", "narrow", "preferred", "buffer"],
        )
        terms = exact_terms(x, y, m, k, n)
        wide, narrow = reply.tensors["wide"], reply.tensors["narrow"]
        self.assertEqual((wide.dtype, narrow.dtype), ("float32", "bfloat16"))
        self.assertEqual(wide.values, reply.tensors["preferred"].values)
        self.assertEqual(wide.values, reply.tensors["buffer"].values)
        for got, products in zip(wide.values, terms):
            self.assertLessEqual(abs(got - math.fsum(products)), k * 2.0**-24 * math.fsum(map(abs, products)))
        self.assertEqual(narrow.values, [bfloat16(value) for value in wide.values])
        self.assertNotEqual(narrow.values, wide.values)
        self.assertEqual(reply.parts, {})
        self.assertIn(
            ("float32", "bfloat16", "glue"), {(c["from"], c["to"], c["stage"]) for c in reply.casts}
        )
        nodes = {node["id"]: node for node in reply.message["nodes"]}
        kernels = [node["op"] for node in nodes.values() if node["stage"] == "kernel"]
        self.assertEqual(kernels, ["cblas_sgemm"] * 3)
        # Every cast has its node, under the step that it was done for; the first product filled what `empty` made.
        for cast in reply.casts:
            self.assertEqual((nodes[cast["node"]]["op"], nodes[nodes[cast["node"]]["parent"]]["op"]), ("cast", "cblas_sgemm"))
        self.assertEqual(len(reply.casts), 7)

    def test_shapes_follow_pytorch(self):
        # Small integers are exact in every order, so the answer is that of integer arithmetic.
        for a, b, want in (
            ([3], [3], []),
            ([2, 3], [3], [2]),
            ([3], [3, 4], [4]),
            ([5, 1, 2, 3], [4, 3, 2], [5, 4, 2, 2]),
            ([2, 0], [0, 3], [2, 3]),
            ([0, 2], [2, 3], [0, 3]),
        ):
            size_a, size_b = 1, 1
            for extent in a:
                size_a *= extent
            for extent in b:
                size_b *= extent
            tensors = {
                "a": Tensor("float32", a, [i % 7 - 3 for i in range(size_a)]),
                "b": Tensor("float32", b, [i % 5 - 2 for i in range(size_b)]),
            }
            reply = self.completed(tensors, [step("matmul", "a", "b", name="c")], ["c"])
            self.assertEqual(reply.tensors["c"].shape, want)
            if a == [2, 3]:
                self.assertEqual(
                    reply.tensors["c"].values, [-3 * -2 + -2 * -1 + -1 * 0, 0 * -2 + 1 * -1 + 2 * 0]
                )
            if a == [2, 0]:
                self.assertEqual(reply.tensors["c"].values, [0] * 6)

    def test_linear_and_batches(self):
        tensors = {
            "x": Tensor("float64", [2, 3], [1, 2, 3, 4, 5, 6]),
            "w": Tensor("float64", [2, 3], [1, 0, 0, 0, 1, -1]),
            "bias": Tensor("float64", [2], [10, 20]),
            "c": Tensor("float64", [1, 2, 2], [1, 1, 1, 1]),
            "p": Tensor("float64", [2, 2, 1], [1, 2, 3, 4]),
            "q": Tensor("float64", [2, 1, 2], [1, 2, 3, 4]),
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

    def test_fused_weight_gradient_accumulation_against_a_bfloat16_temporary(self):
        m, k, batch, micro = 32, 32, 256, 8
        tensors = {
            "main": Tensor("float32", [m, k], [0.0] * (m * k)),
            "main2": Tensor("float32", [m, k], [0.0] * (m * k)),
        }
        steps, terms = [], [[] for _ in range(m * k)]
        for i in range(micro):
            dy, x = normal(m * batch, 100 + i), normal(batch * k, 200 + i)
            tensors[f"dy{i}"], tensors[f"x{i}"] = Tensor("bfloat16", [m, batch], dy), Tensor(
                "bfloat16", [batch, k], x
            )
            steps += [
                step("addmm", "main", f"dy{i}", f"x{i}", out="main", name=f"fused{i}"),
                step("mm", f"dy{i}", f"x{i}", name=f"temporary{i}"),
                step("add", "main2", f"temporary{i}", out="main2", name=f"unfused{i}"),
            ]
            for have, more in zip(terms, exact_terms(dy, x, m, batch, k)):
                have += more
        reply = self.completed(tensors, steps, ["main", "main2"])
        exact = [math.fsum(products) for products in terms]
        fused = max(abs(v - e) for v, e in zip(reply.tensors["main"].values, exact))
        unfused = max(abs(v - e) for v, e in zip(reply.tensors["main2"].values, exact))
        print(f"\nfused {fused:.2e}, through a bfloat16 temporary {unfused:.2e}, {m * k} elements")
        self.assertEqual(reply.tensors["main"].dtype, "float32")
        # Every rounding of the fused form is one of float32: the bound of recursive summation must hold.
        for value, sum_, products in zip(reply.tensors["main"].values, exact, terms):
            self.assertLessEqual(abs(value - sum_), batch * micro * 2.0**-24 * math.fsum(map(abs, products)))
        self.assertGreater(unfused, 1000 * fused)
        self.assertEqual(reply.parts, {"main2": "glue"})

    def test_wrong_shape_raises_and_unknown_things_are_unsupported(self):
        tensors = {"a": Tensor("float32", [2, 3], [0] * 6), "b": Tensor("float32", [2, 3], [0] * 6)}
        raised = self.adapter.run(tensors, [step("matmul", "a", "b", name="c")], ["c"])
        self.assertEqual((raised.kind, raised.error_class), ("raised", "RuntimeError"))
        for program in (
            [step("frobnicate", "a", name="c")],
            [step("backward", "a")],
            [step("autocast", steps=[], device="cpu", dtype="bfloat16", enabled=True)],
        ):
            reply = self.adapter.run(tensors, program, [])
            self.assertEqual(reply.kind, "unsupported")
            self.assertIn(program[0]["op"], reply.text)


@unittest.skipUnless(os.path.exists(OPENBLAS), f"{OPENBLAS} is not built")
class OpenBlas(Products, unittest.TestCase):
    BINARY, BACKEND = OPENBLAS, "openblas"

    def test_knobs_are_set_and_read_back(self):
        two = Adapter(OPENBLAS, "openblas", {"threads": "2"})
        reply = two.run({}, [], [])
        self.assertEqual(reply.knobs["threads"], "2")
        self.assertEqual(reply.message["fp"]["after"]["threads"], 2)
        two.close()
        for knobs in (
            {"threads": "0"},
            {"threads": "many"},
            {"mkldnn": "on"},
            {"openblas_coretype": "NoSuchCore"},
        ):
            adapter = Adapter(OPENBLAS, "openblas", knobs)
            self.assertIn(next(iter(knobs)), adapter.hello["error"])
            adapter.close()

    def test_what_the_processor_lacks_for_a_core_type_is_a_reason(self):
        for core, without in (("SkylakeX", "avx512bw avx512f"), ("Haswell", "fma")):
            adapter = Adapter(OPENBLAS, "openblas", {"openblas_coretype": core}, {"ULPSCOPE_CPU_WITHOUT": without})
            said, _, lacking = adapter.hello["error"].partition(" lacks ")
            self.assertEqual(said, f"knob openblas_coretype={core}: this processor")
            self.assertLessEqual(set(without.split()), set(lacking.split()))
            adapter.close()
        detected = Adapter(OPENBLAS, "openblas", {"openblas_coretype": "detected"}, {"ULPSCOPE_CPU_WITHOUT": "avx512f"})
        self.assertEqual(detected.hello["error"], "")
        detected.close()

    def test_another_core_type_gives_other_bits(self):
        m, k, n = 33, 1031, 47
        tensors = {
            "a": Tensor("float32", [m, k], normal(m * k, 5, "float32")),
            "b": Tensor("float32", [k, n], normal(k * n, 6, "float32")),
        }
        seen = {}
        for core in ("Haswell", "Prescott"):
            adapter = Adapter(OPENBLAS, "openblas", {"openblas_coretype": core})
            if adapter.hello["error"]:
                self.skipTest(adapter.hello["error"])
            reply = adapter.run(tensors, [step("mm", "a", "b", name="c")], ["c"])
            self.assertEqual(reply.knobs["openblas_coretype"], core)
            seen[core] = reply.tensors["c"].values
            adapter.close()
        self.assertNotEqual(seen["Haswell"], seen["Prescott"])


@unittest.skipUnless(os.path.exists(BLIS), f"{BLIS} is not built")
class Blis(Products, unittest.TestCase):
    BINARY, BACKEND = BLIS, "blis"

    def test_threads_beyond_what_the_build_has_are_refused(self):
        # Debian's serial build keeps the number that is set: the number that it works with counts.
        adapter = Adapter(BLIS, "blis", {"threads": "2"})
        if adapter.hello["error"]:
            self.assertEqual(adapter.hello["error"], "knob threads=2: blis keeps to 1")
        else:
            self.assertEqual(adapter.run({}, [], []).knobs["threads"], "2")
        adapter.close()

    def test_an_architecture_is_read_back_and_changes_bits(self):
        m, k, n = 33, 1031, 47
        tensors = {
            "a": Tensor("float32", [m, k], normal(m * k, 5, "float32")),
            "b": Tensor("float32", [k, n], normal(k * n, 6, "float32")),
        }
        seen = {}
        for arch in ("generic", "haswell"):
            adapter = Adapter(BLIS, "blis", {"blis_arch_type": arch}, {"BLIS_ARCH_TYPE": "99"})
            if adapter.hello["error"]:
                self.skipTest(adapter.hello["error"])
            reply = adapter.run(tensors, [step("mm", "a", "b", name="c")], ["c"])
            self.assertEqual(reply.knobs["blis_arch_type"], arch)
            seen[arch] = reply.tensors["c"].values
            adapter.close()
        self.assertNotEqual(seen["generic"], seen["haswell"])

    def test_what_the_processor_lacks_for_an_architecture_is_a_reason(self):
        adapter = Adapter(BLIS, "blis", {"blis_arch_type": "skx"}, {"ULPSCOPE_CPU_WITHOUT": AVX512})
        self.assertIn(f"knob blis_arch_type=skx: this processor lacks {AVX512}", adapter.hello["error"])
        adapter.close()

    def test_an_architecture_that_aborts_the_library_is_an_answer(self):
        # knc is a name that the library knows and has no kernels for: it aborts, in a child process.
        for arch, why in (("knc", "no kernels for it"), ("NoSuchArch", "knows no such architecture")):
            adapter = Adapter(BLIS, "blis", {"blis_arch_type": arch})
            self.assertIn(f"blis_arch_type={arch}", adapter.hello["error"])
            self.assertIn(why, adapter.hello["error"])
            adapter.close()


if __name__ == "__main__":
    unittest.main()
