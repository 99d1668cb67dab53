# torch-eager through its socket: whose cast it is, redundant casts, parameters that are kept or replaced.
"""usage: test_torch.py [FOLDER_OF_BINARIES]   (default build/release/bin)"""

import unittest

import worker
from driver import Tensor, step
from torch_common import AUTOCAST, Common, Driven, casts, normal


class Eager(Common, Driven):
    backend = "torch-eager"

    def test_the_engines_own_cast_is_told_from_one_of_the_formula(self):
        a, b, g = normal("float32", [8], 1), normal("float64", [8], 2), normal("float64", [8], 3)
        reply = self.completed(
            {"a": a, "b": b, "g": g},
            [step("clone", "a", name="c"), step("mul", "c", "b", name="y"), step("backward", "y", grad="g")],
            ["a.grad", "b.grad"],
            requires_grad=["a", "b"],
        )
        self.assertEqual(
            (reply.tensors["a.grad"].dtype, reply.tensors["b.grad"].dtype), ("float32", "float64")
        )
        down = [under for source, to, under in casts(reply) if (source, to) == ("float64", "float32")]
        self.assertEqual(down, ["autograd::engine::evaluate_function: MulBackward0"])
        x, w, gy = normal("bfloat16", [4, 8], 1), normal("float32", [5, 8], 2), normal("bfloat16", [4, 5], 3)
        reply = self.completed(
            {"x": x, "w": w, "g": gy},
            [
                step("autocast", steps=[step("linear", "x", "w", name="y")], **AUTOCAST),
                step("backward", "y", grad="g"),
            ],
            ["w.grad"],
            requires_grad=["w"],
        )
        self.assertEqual(
            casts(reply),
            [("float32", "bfloat16", "aten::linear"), ("bfloat16", "float32", "ToCopyBackward0")],
        )
        self.assertEqual(reply.tensors["w.grad"].dtype, "float32")

    def test_a_cast_up_and_back_down_is_redundant_and_others_are_not(self):
        tensors = {"a": normal("bfloat16", [8], 1)}
        up = step("cast", "a", name="wide", dtype="float32")
        pair = self.completed(tensors, [up, step("cast", "wide", name="b", dtype="bfloat16")], ["b"])

        def flags(reply):
            found = zip(reply.casts, worker.redundant(reply.message["nodes"], reply.casts))
            return [flag for cast, flag in found if cast["shape"]]  # a scalar shows a cast too

        self.assertEqual(flags(pair), [True, True])
        viewed = self.completed(
            tensors,
            [up, step("reshape", "wide", name="v", shape=[2, 4]), step("cast", "v", name="b", dtype="bfloat16")],
            ["b"],
        )
        self.assertEqual(flags(viewed), [True, True])
        used = self.completed(
            tensors, [up, step("cast", "wide", name="b", dtype="bfloat16"), step("exp", "wide", name="e")], ["b", "e"]
        )
        self.assertEqual(flags(used), [False, True])
        changed = self.completed(
            tensors,
            [up, step("aten::mul_", "wide", 1.1), step("cast", "wide", name="b", dtype="bfloat16")],
            ["b"],
        )
        self.assertEqual(flags(changed), [False, False])
        between = self.completed(
            tensors,
            [up, step("mul", "wide", 1.1, name="m"), step("cast", "m", name="b", dtype="bfloat16")],
            ["b"],
        )
        self.assertEqual(flags(between), [False, False])
        down = self.completed(
            {"a": normal("float32", [8], 1)},
            [step("cast", "a", name="n", dtype="bfloat16"), step("cast", "n", name="b", dtype="float32")],
            ["b"],
        )
        self.assertEqual(flags(down), [False, False])

    def test_without_trace_there_are_no_casts(self):
        tensors = {"a": normal("bfloat16", [8], 1)}
        steps = [step("cast", "a", name="wide", dtype="float32")]
        self.assertEqual(self.completed(tensors, steps, ["wide"], trace=False).casts, [])
        self.assertEqual(len(self.completed(tensors, steps, ["wide"], trace=True).casts), 1)

    def test_the_trace_nests_ops_and_joins_them_to_what_they_read(self):
        x, w = normal("bfloat16", [4, 8], 1), normal("float32", [5, 8], 2)
        reply = self.completed(
            {"x": x, "w": w},
            [step("autocast", steps=[step("linear", "x", "w", name="y")], **AUTOCAST), step("neg", "y", name="z")],
            ["z", "trace"],
        )
        nodes = {node["id"]: node for node in reply.message["nodes"]}
        tops = [node for node in nodes.values() if node["parent"] == -1]
        self.assertEqual([node["op"] for node in tops], ["aten::linear", "aten::neg"])
        linear, neg = tops
        self.assertEqual(linear["inputs"], [["bfloat16", [4, 8]], ["float32", [5, 8]]])
        self.assertEqual(linear["outputs"], [["bfloat16", [4, 5]]])
        self.assertEqual(neg["from"], [linear["id"]])
        (cast,) = reply.casts
        path, at = [], cast["node"]
        while at != -1:
            path.append(nodes[at]["op"])
            at = nodes[at]["parent"]
        self.assertEqual(path, ["aten::copy_", "aten::_to_copy", "aten::to", "aten::linear"])
        (product,) = (node for node in nodes.values() if node["op"] == "aten::mm")
        to = nodes[nodes[nodes[cast["node"]]["parent"]]["parent"]]
        self.assertIn(to["id"], product["from"])
        self.assertTrue(0 < nodes[cast["node"]]["us"] <= to["us"] <= linear["us"], nodes)
        self.assertEqual(cast["us"], to["us"], "the whole conversion, allocation included")

    def test_what_was_there_before_the_trace_has_no_maker(self):
        reply = self.completed(
            {"a": normal("bfloat16", [4, 4], 1)},
            [step("matmul", "a", "a", name="b"), step("matmul", "a", "a", name="c")],
            ["b", "c"],
            trace=True,
        )
        self.assertEqual([node["from"] for node in reply.message["nodes"] if node["op"] == "aten::matmul"], [[], []])

    def test_durations_asked_for_leave_out_what_a_first_call_sets_up(self):
        # PyTorch warns of a buffer that it resizes, once in every run: the warnings count the runs.
        tensors = {"a": Tensor("float32", [4], [1, 2, 3, 4])}
        steps = [
            step("empty", name="buffer", shape=[2], dtype="float32"),
            step("add", "a", "a", out="buffer", name="twice"),
        ]
        for observed, runs in ((["twice"], 1), (["twice", "trace"], 2)):
            reply = self.completed(tensors, steps, observed, trace=True)
            self.assertEqual(sum("was resized" in note for note in reply.notes), runs, reply.notes)
            self.assertEqual(reply.tensors["twice"].values, [2, 4, 6, 8])
            self.assertEqual(sum(node["op"] == "aten::add" for node in reply.message["nodes"]), 1)

    def test_without_trace_there_are_no_nodes(self):
        tensors = {"a": normal("bfloat16", [8], 1)}
        steps = [step("cast", "a", name="wide", dtype="float32")]
        self.assertEqual(self.completed(tensors, steps, ["wide"], trace=False).message["nodes"], [])

    def test_non_leaf_weight_gives_one_engine_cast(self):
        tensors = {
            "x": normal("bfloat16", [22, 44], 1),
            "leaf": normal("float32", [66, 44], 2),
            "g": normal("bfloat16", [22, 66], 3),
        }
        head = [step("clone", "leaf", name="w"), step("set_data", "w", to={"cast": "bfloat16"})]
        tail = [step("linear", "x", "w", name="y"), step("backward", "y", grad="g")]
        reply = self.completed(
            tensors, head + tail, ["leaf.grad", "w.grad_metadata_dtype"], requires_grad=["leaf"]
        )
        self.assertEqual(reply.tensors["leaf.grad"].dtype, "float32")
        engine = [cast for cast in casts(reply) if cast[2].startswith("autograd::engine")]
        self.assertEqual([cast[:2] for cast in engine], [("bfloat16", "float32")])
        both = self.completed(
            tensors,
            head + [step("set_data", "leaf", to={"cast": "bfloat16"})] + tail,
            ["leaf", "leaf.grad"],
            requires_grad=["leaf"],
        )
        self.assertEqual(
            (both.tensors["leaf"].dtype, both.tensors["leaf.grad"].dtype), ("bfloat16", "float32")
        )

    def test_module_to_keeps_or_replaces_the_parameter(self):
        tensors = {
            "x": normal("bfloat16", [4, 8], 1),
            "kept": normal("float32", [5, 8], 2),
            "replaced": normal("float32", [5, 8], 2),
            "x32": normal("float32", [4, 8], 1),
        }
        steps = []
        for name, overwrite in (("kept", False), ("replaced", True)):
            steps += [
                step("linear", "x32", name, name=f"old_{name}"),
                step("backward", f"old_{name}"),
                step("detach", name, name=f"alias_{name}"),
                step("module_to", name, dtype="bfloat16", overwrite=overwrite),
                step("linear", "x", name, name=f"y_{name}"),
                step("backward", f"y_{name}"),
            ]
        reply = self.completed(
            tensors,
            steps,
            [
                "kept",
                "replaced",
                "kept.grad",
                "replaced.grad",
                "kept.grad_metadata_dtype",
                "replaced.grad_metadata_dtype",
            ],
            requires_grad=["kept", "replaced"],
        )
        for name in ("kept", "replaced"):
            self.assertEqual(reply.tensors[name].dtype, "bfloat16")
            self.assertEqual(reply.tensors[name + ".grad"].dtype, "bfloat16")
            self.assertEqual(reply.observations[name + ".grad_metadata_dtype"], "bfloat16")
        self.assertEqual(reply.tensors["kept.grad"].values, reply.tensors["replaced.grad"].values)
        # A graph made before the cast leads to a parameter that was kept, and not to one that was replaced.
        late = [
            step("linear", "x32", "kept", name="a"),
            step("linear", "x32", "replaced", name="b"),
            step("module_to", "kept", dtype="bfloat16", overwrite=False),
            step("module_to", "replaced", dtype="bfloat16", overwrite=True),
            step("backward", "a"),
            step("backward", "b"),
        ]
        reply = self.completed(
            tensors, late, ["kept.grad", "replaced.grad"], requires_grad=["kept", "replaced"]
        )
        self.assertEqual(reply.tensors["kept.grad"].dtype, "float32")
        self.assertEqual(reply.observations, {"replaced.grad": "none"})

    def test_gradients_accumulate(self):
        tensors = {"x": Tensor("float32", [2], [3, 4]), "w": Tensor("float32", [2], [1, 1])}
        reply = self.completed(
            tensors,
            [step("mul", "x", "w", name="y"), step("backward", "y", retain_graph=True),
             step("backward", "y", retain_graph=True), step("backward", "y")],
            ["w.grad"],
            requires_grad=["w"],
        )
        self.assertEqual(reply.tensors["w.grad"].values, [9, 12])

    def test_peak_bytes_counts_what_is_held_at_one_time(self):
        size = 256 * 256 * 4
        tensors = {"a": normal("float32", [256, 256], 1)}
        steps = [step("mm", "a", "a", name="y"), step("exp", "y", name="z")]
        self.assertEqual(self.completed(tensors, steps[:1], ["y", "peak_bytes"]).observations["peak_bytes"], str(size))
        self.assertEqual(self.completed(tensors, steps, ["z", "peak_bytes"]).observations["peak_bytes"], str(2 * size))
        # A cast through .data frees the memory that it replaces: 128 KiB more, 256 KiB less.
        cast = [step("set_data", "a", to={"cast": "bfloat16"})]
        self.assertEqual(self.completed(tensors, cast, ["a", "peak_bytes"]).observations["peak_bytes"], str(size // 2))

    def test_detach_makes_a_leaf(self):
        tensors = {"x": normal("bfloat16", [22, 44], 1), "w": normal("float32", [66, 44], 2), "g": normal("bfloat16", [22, 66], 3)}
        steps = [step("clone", "w", name="p"), step("set_data", "p", to={"cast": "bfloat16"}), step("linear", "x", "p", name="y"),
                 step("backward", "y", grad="g")]
        before = self.completed(tensors, steps, ["p.grad_metadata_dtype", "w.grad"], requires_grad=["w"])
        self.assertEqual(before.observations["p.grad_metadata_dtype"], "float32")
        steps.insert(2, step("detach_", "p", requires_grad=True))
        after = self.completed(tensors, steps, ["p.grad", "p.grad_metadata_dtype", "w.grad"], requires_grad=["w"])
        self.assertEqual(after.observations, {"p.grad_metadata_dtype": "bfloat16", "w.grad": "none"})
        self.assertEqual(after.tensors["p.grad"].dtype, "bfloat16")


if __name__ == "__main__":
    unittest.main()
