# Tests of the LibTorch adapter through its socket, eagerly and traced alike; test_torch*.py run them.
"""Dtypes, refusals, autograd, autocast, knobs, ops by schema."""

import math
import os
import random
import sys
import unittest

from driver import Adapter, Tensor, bfloat16, float32, step

BIN = os.path.join(os.path.dirname(__file__), "../../build/release/bin")
if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]):
    BIN = sys.argv.pop(1)
BINARY = os.path.join(BIN, "ulpscope-torch")
AUTOCAST = {"device": "cpu", "dtype": "bfloat16", "enabled": True, "cache": True}


def normal(dtype, shape, seed):
    draw = random.Random(seed)
    rounding = {"bfloat16": bfloat16, "float32": float32, "float64": float}[dtype]
    count = math.prod(shape)
    return Tensor(dtype, shape, [rounding(draw.gauss(0, 1)) for _ in range(count)])


def casts(reply, stage="dispatch"):
    return [(cast["from"], cast["to"], cast["under"]) for cast in reply.casts if cast["stage"] == stage]


class Driven(unittest.TestCase):
    backend = ""

    @classmethod
    def setUpClass(cls):
        if not cls.backend or not os.path.exists(BINARY):
            raise unittest.SkipTest(f"{BINARY} is not built")
        cls.adapter = Adapter(BINARY, cls.backend)
        assert cls.adapter.hello["error"] == "", cls.adapter.hello

    @classmethod
    def tearDownClass(cls):
        cls.adapter.close()

    def completed(self, *arguments, **keywords):
        reply = self.adapter.run(*arguments, **keywords)
        self.assertEqual(reply.kind, "completed", reply)
        before, after = reply.message["fp"]["before"], reply.message["fp"]["after"]
        self.assertEqual(before, after)
        self.assertFalse([note for note in reply.notes if "incomplete" in note], reply.notes)
        return reply


class Common:
    """Tests that hold eagerly and traced alike."""

    def test_matmul_into_a_float32_buffer_raises(self):
        tensors = {"x": normal("bfloat16", [32, 7, 1, 8], 1), "y": normal("bfloat16", [32, 7, 8, 1], 2)}
        reply = self.adapter.run(
            tensors,
            [
                step("empty", name="buffer", shape=[32, 7, 1, 1], dtype="float32"),
                step("matmul", "x", "y", out="buffer", name="product"),
            ],
            ["product"],
        )
        self.assertEqual((reply.kind, reply.error_class), ("raised", "RuntimeError"))
        self.assertIn("Expected out tensor to have dtype", reply.text)
        self.assertNotIn("Exception raised from", reply.text)  # no C++ backtrace

    def test_bfloat16_matmul_is_a_bfloat16_near_the_exact_product(self):
        m, k, n = 16, 64, 8
        x, y = normal("bfloat16", [m, k], 3), normal("bfloat16", [k, n], 4)
        reply = self.completed({"x": x, "y": y}, [step("matmul", "x", "y", name="product")], ["product"])
        product = reply.tensors["product"]
        self.assertEqual((product.dtype, product.shape), ("bfloat16", [m, n]))
        for i in range(m):
            for j in range(n):
                terms = [x.values[i * k + t] * y.values[t * n + j] for t in range(k)]
                bound = (k * 2.0**-24 + 2.0**-8) * math.fsum(map(abs, terms))
                self.assertLessEqual(abs(product.values[i * n + j] - math.fsum(terms)), bound)

    def test_out_of_the_same_dtype_writes_the_buffer(self):
        x, y = normal("float32", [4, 5], 5), normal("float32", [5, 6], 6)
        reply = self.completed(
            {"x": x, "y": y},
            [
                step("empty", name="buffer", shape=[4, 6], dtype="float32"),
                step("mm", "x", "y", out="buffer", name="into"),
                step("mm", "x", "y", name="plain"),
            ],
            ["buffer", "into", "plain"],
        )
        self.assertEqual(reply.tensors["buffer"].values, reply.tensors["plain"].values)
        self.assertEqual(reply.tensors["into"].values, reply.tensors["plain"].values)

    def test_an_unwritten_buffer_holds_the_poison(self):
        reply = self.completed({}, [step("empty", name="buffer", shape=[3], dtype="bfloat16")], ["buffer"])
        self.assertTrue(all(math.isnan(value) for value in reply.tensors["buffer"].values))

    def test_layer_norm_of_bfloat16_with_float32_weights_stays_bfloat16_without_a_cast(self):
        tensors = {
            "x": normal("bfloat16", [4, 8, 64], 7),
            "w": normal("float32", [64], 8),
            "b": normal("float32", [64], 9),
        }
        norm = step("layer_norm", "x", "w", "b", name="y", normalized_shape=[64], eps=1e-5)
        plain = self.completed(tensors, [norm], ["y"])
        within = self.completed(tensors, [step("autocast", steps=[norm], **AUTOCAST)], ["y"])
        self.assertEqual(plain.tensors["y"].dtype, "bfloat16")
        self.assertEqual(within.tensors["y"].dtype, "bfloat16")
        self.assertEqual((plain.casts, within.casts), ([], []))
        row = tensors["x"].values[:64]
        mean = math.fsum(row) / 64
        deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in row) / 64 + 1e-5)
        for value, x, w, b in zip(plain.tensors["y"].values, row, tensors["w"].values, tensors["b"].values):
            exact = (x - mean) / deviation * w + b
            self.assertLessEqual(abs(value - exact), 2.0**-8 * (abs(exact) + abs(b)) + 2.0**-20)

    def test_mixed_matmul_raises_outside_autocast_and_casts_one_operand_inside(self):
        tensors = {"x": normal("bfloat16", [6, 16], 10), "w": normal("float32", [16, 5], 11)}
        outside = self.adapter.run(tensors, [step("matmul", "x", "w", name="y")], ["y"])
        self.assertEqual((outside.kind, outside.error_class), ("raised", "RuntimeError"))
        inside = self.completed(
            tensors, [step("autocast", steps=[step("matmul", "x", "w", name="y")], **AUTOCAST)], ["y"]
        )
        self.assertEqual(inside.tensors["y"].dtype, "bfloat16")
        seen = [cast for cast in inside.casts if cast["shape"] == [16, 5]]
        self.assertTrue(seen)
        for cast in inside.casts:
            self.assertEqual(
                (cast["from"], cast["to"], cast["shape"], cast["bytes"]),
                ("float32", "bfloat16", [16, 5], 160),
            )
        # Autocast must be off again: the same product raises.
        self.assertEqual(
            self.adapter.run(tensors, [step("matmul", "x", "w", name="y")], ["y"]).kind, "raised"
        )

    def test_autocast_is_left_on_a_raise_too(self):
        tensors = {
            "x": normal("bfloat16", [6, 16], 10),
            "w": normal("float32", [16, 5], 11),
            "z": normal("float32", [3], 1),
        }
        bad = [
            step(
                "autocast", steps=[step("mm", "x", "w", name="y"), step("mm", "y", "z", name="u")], **AUTOCAST
            )
        ]
        self.assertEqual(self.adapter.run(tensors, bad, ["u"]).kind, "raised")
        self.assertEqual(self.adapter.run(tensors, [step("mm", "x", "w", name="y")], ["y"]).kind, "raised")

    def test_linear_backward_gradients(self):
        x, w, g = normal("float64", [4, 3], 1), normal("float64", [2, 3], 2), normal("float64", [4, 2], 3)
        reply = self.completed(
            {"x": x, "w": w, "g": g},
            [step("linear", "x", "w", name="y"), step("backward", "y", grad="g")],
            ["w.grad", "x.grad", "w.grad_metadata_dtype"],
            requires_grad=["w"],
        )
        want = [
            math.fsum(g.values[b * 2 + o] * x.values[b * 3 + i] for b in range(4))
            for o in range(2)
            for i in range(3)
        ]
        for value, exact in zip(reply.tensors["w.grad"].values, want):
            self.assertAlmostEqual(value, exact, delta=1e-14)
        self.assertEqual(reply.observations, {"x.grad": "none", "w.grad_metadata_dtype": "float64"})

    def test_set_data_between_forward_and_backward_leaves_a_float32_gradient_on_a_bfloat16_leaf(self):
        tensors = {
            "x": normal("float32", [22, 44], 1),
            "w": normal("float32", [66, 44], 2),
            "g": normal("float32", [22, 66], 3),
        }
        reply = self.completed(
            tensors,
            [
                step("linear", "x", "w", name="y"),
                step("set_data", "w", to={"cast": "bfloat16"}),
                step("backward", "y", grad="g"),
            ],
            ["w", "w.grad"],
            requires_grad=["w"],
        )
        self.assertEqual((reply.tensors["w"].dtype, reply.tensors["w.grad"].dtype), ("bfloat16", "float32"))
        self.assertEqual(reply.tensors["w"].values, [bfloat16(v) for v in tensors["w"].values])

    def test_set_data_around_the_forward_leaves_a_bfloat16_gradient_on_a_float32_leaf(self):
        tensors = {
            "x": normal("bfloat16", [22, 44], 1),
            "w": normal("float32", [66, 44], 2),
            "g": normal("bfloat16", [22, 66], 3),
        }
        steps = [
            step("detach", "w", name="shard"),
            step("set_data", "w", to={"cast": "bfloat16"}),
            step("linear", "x", "w", name="y"),
            step("set_data", "w", to={"value": "shard"}),
            step("backward", "y", grad="g"),
        ]
        reply = self.completed(tensors, steps, ["w", "w.grad", "y"], requires_grad=["w"])
        self.assertEqual((reply.tensors["w"].dtype, reply.tensors["w.grad"].dtype), ("float32", "bfloat16"))
        self.assertEqual(reply.tensors["w"].values, tensors["w"].values)

    def test_set_data_before_the_forward(self):
        tensors = {
            "x": normal("bfloat16", [22, 44], 1),
            "w": normal("float32", [66, 44], 2),
            "g": normal("bfloat16", [22, 66], 3),
        }
        steps = [
            step("set_data", "w", to={"cast": "bfloat16"}),
            step("linear", "x", "w", name="y"),
            step("backward", "y", grad="g"),
        ]
        reply = self.completed(tensors, steps, ["w", "w.grad", "w.grad_metadata_dtype"], requires_grad=["w"])
        self.assertEqual((reply.tensors["w"].dtype, reply.tensors["w.grad"].dtype), ("bfloat16", "bfloat16"))
        self.assertEqual(reply.observations["w.grad_metadata_dtype"], "bfloat16")
        # The old bf16 -> f32 -> bf16 pair of this backward is gone: the one cast is the set_data itself.
        self.assertEqual(casts(reply), [("float32", "bfloat16", "set_data")])

    def test_a_scope_without_gradients(self):
        tensors = {"w": normal("float32", [3], 1), "v": normal("float32", [3], 2)}
        reply = self.completed(
            tensors,
            [
                step(
                    "no_grad",
                    steps=[
                        step("mul", "w", "v", name="y"),
                        step("enable_grad", steps=[step("mul", "w", "v", name="z")]),
                    ],
                ),
                step("mul", "y", "w", name="u"),
                step("sum", "u", name="s"),
                step("backward", "s"),
            ],
            ["w.grad", "y.grad_metadata_dtype", "z.grad_metadata_dtype"],
            requires_grad=["w"],
        )
        self.assertEqual(
            reply.observations, {"y.grad_metadata_dtype": "none", "z.grad_metadata_dtype": "float32"}
        )
        self.assertEqual(
            reply.tensors["w.grad"].values,
            [float32(w * v) for w, v in zip(tensors["w"].values, tensors["v"].values)],
        )

    def test_what_is_not_there_is_unsupported_by_name(self):
        tensors = {"a": normal("float32", [2, 3], 1), "b": normal("float32", [2, 3], 2)}
        for program, word in (
            ([step("frobnicate", "a", name="c")], "frobnicate"),
            ([step("aten::frobnicate", "a", name="c")], "aten::frobnicate"),
            (
                [step("matmul", "a", "b", name="c", preferred_element_type="float32")],
                "preferred_element_type",
            ),
            ([step("matmul", "a", "b", name="c", colour="red")], "colour"),
            ([step("sum", "a", name="c", dim="first")], "dim"),
        ):
            reply = self.adapter.run(tensors, program, ["c"])
            self.assertEqual(reply.kind, "unsupported", reply)
            self.assertIn(word, reply.text)
        self.assertEqual(self.adapter.run(tensors, [], ["a.colour"]).kind, "unsupported")

    def test_errors_carry_the_class_that_python_shows(self):
        tensors = {"a": normal("float32", [2, 3], 1), "b": normal("float32", [2, 3], 2)}
        for program, name in (
            ([step("matmul", "a", "b", name="c")], "RuntimeError"),
            ([step("sum", "a", name="c", dim=7)], "IndexError"),
            ([step("mm", "a", "b", name="c", out_dtype="float32")], "NotImplementedError"),
        ):
            reply = self.adapter.run(tensors, program, ["c"])
            self.assertEqual((reply.kind, reply.error_class), ("raised", name), reply.text)

    def test_ops_by_schema(self):
        tensors = {
            "a": Tensor("float32", [2, 3], [1, 2, 3, 4, 5, 6]),
            "b": Tensor("float32", [1, 3], [10, 20, 30]),
            "i": Tensor("int64", [2], [2, 0]),
        }
        for program, shape, values in (
            ([step("sum", "a", name="c", dim=0)], [3], [5, 7, 9]),
            ([step("sum", "a", name="c", dim=[0, 1], keepdim=True, dtype="float64")], [1, 1], [21]),
            ([step("sub", 1.5, "b", name="c")], [1, 3], [-8.5, -18.5, -28.5]),
            ([step("add", "b", 2, name="c", alpha=0.5)], [1, 3], [11, 21, 31]),
            ([step("full", name="c", shape=[2], dtype="bfloat16", value=1.5)], [2], [1.5, 1.5]),
            ([step("zeros", name="c", shape=[0, 2], dtype="float32")], [0, 2], []),
            ([step("cast", "a", name="c", dtype="int32")], [2, 3], [1, 2, 3, 4, 5, 6]),
            (
                [
                    step("transpose", "a", name="t", dim0=0, dim1=1),
                    step("reshape", "t", name="c", shape=[-1]),
                ],
                [6],
                [1, 4, 2, 5, 3, 6],
            ),
            ([step("t", "a", name="t"), step("select", "t", name="c", dim=0, index=-1)], [2], [3, 6]),
            ([step("unsqueeze", "b", name="u", dim=0), step("squeeze", "u", name="c")], [3], [10, 20, 30]),
            ([step("expand", "b", name="c", shape=[2, -1])], [2, 3], [10, 20, 30, 10, 20, 30]),
            ([step("permute", "a", name="c", dims=[1, 0])], [3, 2], [1, 4, 2, 5, 3, 6]),
            ([step("aten::cat", "b", "b", name="c", dim=1)], [1, 6], [10, 20, 30, 10, 20, 30]),
            ([step("aten::index_select", "a", name="c", dim=1, index="i")], [2, 2], [3, 1, 6, 4]),
            ([step("aten::clamp", "a", name="c", min=2, max=4.5)], [2, 3], [2, 2, 3, 4, 4.5, 4.5]),
            ([step("aten::mul.Tensor", "a", "b", name="c")], [2, 3], [10, 40, 90, 40, 100, 180]),
        ):
            reply = self.completed(tensors, program, ["c"])
            self.assertEqual(
                (reply.tensors["c"].shape, list(reply.tensors["c"].values)), (shape, values), program
            )

    def test_strides_change_the_layout_and_not_the_values(self):
        a, b = normal("float32", [3, 4], 1), normal("float32", [4, 2], 2)
        for strides in ([1, 3], [4, 1], [9, 2]):
            reply = self.completed(
                {"a": a, "b": b}, [step("clone", "a", name="c")], ["a", "c"], strides={"a": strides}
            )
            self.assertEqual(reply.tensors["a"].values, a.values)
            self.assertEqual(reply.tensors["c"].values, a.values)

    def test_knobs_are_read_back_and_unknown_ones_refused(self):
        reply = self.completed({}, [], [])
        self.assertEqual(reply.knobs["threads"], "1")
        asked = {
            "threads": "2",
            "mkldnn": "off",
            "deterministic": "on",
            "float32_matmul_precision": "medium",
            "sdpa_backend": "math",
        }
        other = Adapter(BINARY, self.backend, asked)
        self.assertEqual(other.hello["error"], "")
        got = other.run({}, [], [])
        self.assertEqual({knob: got.knobs[knob] for knob in asked}, asked)
        self.assertEqual(got.message["fp"]["after"]["threads"], 2)
        other.close()
        for knobs in ({"threads": "0"}, {"mkldnn": "maybe"}, {"openblas_coretype": "Haswell"}):
            refused = Adapter(BINARY, self.backend, knobs)
            self.assertIn(next(iter(knobs)), refused.hello["error"])
            refused.close()

    def test_flush_denormal_flushes(self):
        tensors = {"a": Tensor("float32", [1], [2.0**-100])}
        product = [step("mul", "a", float32(2.0**-40), name="c")]
        kept = self.completed(tensors, product, ["c"])
        self.assertEqual(kept.tensors["c"].values[0], 2.0**-140)
        other = Adapter(BINARY, self.backend, {"flush_denormal": "on"})
        flushed = other.run(tensors, product, ["c"])
        self.assertEqual((flushed.tensors["c"].values[0], flushed.knobs["flush_denormal"]), (0.0, "on"))
        self.assertFalse(flushed.message["fp"]["before"]["subnormals_kept"])
        other.close()
