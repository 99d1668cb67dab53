# torch-traced through its socket: how a program is cut, casts of graph and run, agreement with eager.
"""usage: test_torch_traced.py [FOLDER_OF_BINARIES]   (default build/release/bin)"""

import os
import unittest

import worker
from driver import Adapter, Tensor, float32, step
from torch_common import AUTOCAST, BINARY, Common, Driven, casts, normal
from ulpscope_torch import op_kinds


class Traced(Common, Driven):
    backend = "torch-traced"

    def test_the_traced_regions_are_cut_and_the_parts_say_so(self):
        tensors = {
            "x": normal("bfloat16", [22, 44], 1),
            "w": normal("float32", [66, 44], 2),
            "g": normal("bfloat16", [22, 66], 3),
        }
        steps = [
            step("set_data", "w", to={"cast": "bfloat16"}),
            step("linear", "x", "w", name="y"),
            step("mul", "y", "y", name="z"),
            step("backward", "z", grad="g"),
        ]
        reply = self.completed(tensors, steps, ["w", "y", "z", "w.grad"], requires_grad=["w"])
        self.assertEqual(reply.parts, {"w": "eager", "y": "compiled", "z": "compiled", "w.grad": "backward"})
        self.assertTrue(any("set_data ran eagerly" in note for note in reply.notes), reply.notes)
        self.assertTrue(any("backward ran eagerly" in note for note in reply.notes), reply.notes)
        self.assertTrue(any("2 ops, run 3 times" in note for note in reply.notes), reply.notes)
        self.assertFalse(any("differs" in note for note in reply.notes), reply.notes)

    def test_casts_of_the_graph_and_of_the_run(self):
        tensors = {"x": normal("bfloat16", [6, 16], 10), "w": normal("float32", [16, 5], 11)}
        reply = self.completed(
            tensors, [step("autocast", steps=[step("matmul", "x", "w", name="y")], **AUTOCAST)], ["y"]
        )
        self.assertEqual(casts(reply, "torchscript"), [("float32", "bfloat16", "aten::matmul")])
        self.assertEqual(
            casts(reply), [("float32", "bfloat16", "aten::to")]
        )  # frozen into the graph: no longer under matmul
        pair = self.completed(
            {"a": normal("bfloat16", [8], 1)},
            [
                step("cast", "a", name="wide", dtype="float32"),
                step("cast", "wide", name="b", dtype="bfloat16"),
            ],
            ["b"],
        )
        flags = zip(pair.casts, worker.redundant(pair.message["nodes"], pair.casts))
        self.assertEqual([flag for c, flag in flags if c["stage"] == "torchscript"], [True, True])

    def test_kinds_of_nodes_in_both_stages(self):
        reply = self.completed(
            {"x": normal("bfloat16", [4, 8], 1), "w": normal("bfloat16", [5, 8], 2)},
            [
                step("t", "w", name="turned"),
                step("matmul", "x", "turned", name="p"),
                step("cast", "p", name="wide", dtype="float32"),
                step("cast", "wide", name="same", dtype="float32"),
                step("clone", "same", name="copied"),
                step("relu", "copied", name="r"),
            ],
            ["r"],
            trace=True,
        )
        kinds = {}
        for node in reply.message["nodes"]:
            kinds.setdefault((node["stage"], node["op"]), []).append(node.get("kind", "compute"))
        shown = {
            "aten::t": ["view"],
            "aten::matmul": ["product"],
            "aten::to": ["convert", "move"],  # the second converts to what there is
            "aten::clone": ["move"],
            "aten::relu": ["compute"],
        }
        self.assertEqual({op: kinds["torchscript", op] for op in shown}, shown)
        ran = {**shown, "aten::_to_copy": ["convert"], "aten::mm": ["product"], "aten::copy_": ["convert", "move"]}
        self.assertEqual({op: sorted(set(kinds["dispatch", op])) for op in ran}, ran)
        for (stage, op), found in kinds.items():
            told = {kind for kind in found if (kind, op_kinds.kind_of(op)) != ("move", "convert")}
            told -= {"convert"} if op == "aten::copy_" else set()
            self.assertLessEqual(told, {op_kinds.kind_of(op)}, f"{op}: the adapters in Python say otherwise")

    def test_a_buffer_that_is_read_and_written_is_written_once(self):
        tensors = {
            "c": Tensor("float32", [2, 2], [1, 2, 3, 4]),
            "a": Tensor("float32", [2, 1], [1, 1]),
            "b": Tensor("float32", [1, 2], [10, 20]),
        }
        reply = self.completed(
            tensors,
            [step("addmm", "c", "a", "b", out="c", name="d"), step("add", "d", 0.5, name="e")],
            ["c", "d", "e"],
        )
        self.assertEqual(reply.tensors["c"].values, [11, 22, 13, 24])
        self.assertEqual(reply.tensors["d"].values, [11, 22, 13, 24])
        self.assertEqual(reply.tensors["e"].values, [11.5, 22.5, 13.5, 24.5])
        grown = self.completed(tensors, [step("aten::add_", "c", "c", name="d")], ["c", "d"])
        self.assertEqual(grown.tensors["c"].values, [2, 4, 6, 8])

    def test_a_region_runs_what_it_traced_on_other_data(self):
        # The trace works on copies; had it kept data as constants, these values would be those of the copies.
        for seed in (1, 2):
            x, y = normal("float32", [4, 4], seed), normal("float32", [4, 4], seed + 10)
            reply = self.completed({"x": x, "y": y}, [step("add", "x", "y", name="s")], ["s"])
            self.assertEqual(reply.tensors["s"].values, [float32(a + b) for a, b in zip(x.values, y.values)])

    def test_runs_that_differ_are_seen(self):
        tensors = {"x": normal("float32", [64], 1)}
        reply = self.completed(tensors, [step("aten::rand_like", "x", name="r")], ["r"])
        self.assertTrue(any("'r' of run 3 differs" in note for note in reply.notes), reply.notes)

    def test_steps_that_cannot_be_cut_are_refused(self):
        tensors = {"x": normal("bfloat16", [4, 8], 1), "w": normal("float32", [5, 8], 2)}
        reply = self.adapter.run(
            tensors,
            [step("autocast", steps=[step("linear", "x", "w", name="y"), step("backward", "y")], **AUTOCAST)],
            ["y"],
            requires_grad=["w"],
        )
        self.assertEqual(reply.kind, "unsupported")
        self.assertIn("backward", reply.text)

    def test_the_graph_is_one_region_below_a_root(self):
        reply = self.completed(
            {"x": normal("bfloat16", [4, 8], 1), "w": normal("bfloat16", [5, 8], 2)},
            [step("linear", "x", "w", name="y"), step("cast", "y", name="z", dtype="float32")],
            ["z"],
            trace=True,
        )
        graph = [node for node in reply.message["nodes"] if node["stage"] == "torchscript"]
        self.assertEqual([(n["op"], n["parent"]) for n in graph],
                         [("region_1", -1), ("aten::linear", 0), ("aten::to", 0)])
        self.assertEqual(graph[2]["from"], [1])
        self.assertEqual(graph[2]["outputs"], [["float32", [4, 5]]])
        self.assertEqual([c["node"] for c in reply.casts if c["stage"] == "torchscript"], [2])
        self.assertTrue([n for n in reply.message["nodes"] if n["stage"] == "dispatch"])


class Both(unittest.TestCase):
    @unittest.skipUnless(os.path.exists(BINARY), f"{BINARY} is not built")
    def test_eager_and_traced_agree_bit_by_bit_on_a_cpu(self):
        tensors = {
            "x": normal("bfloat16", [16, 64], 1),
            "w": normal("bfloat16", [32, 64], 2),
            "b": normal("bfloat16", [32], 3),
            "g": normal("bfloat16", [16, 32], 4),
        }
        steps = [
            step("linear", "x", "w", "b", name="y"),
            step("layer_norm", "y", name="n", normalized_shape=[32]),
            step("mul", "n", 0.1, name="z"),
            step("softmax", "z", name="p", dim=-1),
            step("backward", "p", grad="g"),
        ]
        seen = []
        for backend in ("torch-eager", "torch-traced"):
            adapter = Adapter(BINARY, backend)
            reply = adapter.run(tensors, steps, ["y", "n", "z", "p", "w.grad"], requires_grad=["w"])
            self.assertEqual(reply.kind, "completed", reply)
            seen.append({name: tensor.encode() for name, tensor in reply.tensors.items()})
            adapter.close()
        self.assertEqual(len(seen[0]), 5)
        self.assertEqual(seen[0], seen[1])


if __name__ == "__main__":
    unittest.main()
