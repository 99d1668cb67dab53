"""Autograd evidence: the dtype that each node of the graph expects, the engine's casts, accumulation over repetitions."""

import os
import sys

from worker import ROOT, Adapter, main, normal, step, warm

BINARY = os.environ.get("ULPSCOPE_BIN_DIR", os.path.join(ROOT, "build", "release", "bin")) + "/ulpscope-torch"


def run(backend, *arguments, **options):
    if backend.startswith("torch-eager"):
        with Adapter([BINARY], backend) as adapter:
            return adapter.run(*arguments, **options)
    return warm(backend).run(*arguments, **options)


def tensors():
    return {
        "x": normal("bfloat16", [6, 16], 1),
        "w": normal("float32", [10, 16], 2),
        "g": normal("bfloat16", [6, 10], 3)
    }


def graph(answer):
    """The nodes of the one autograd graph of an answer, by their op; and all nodes by id."""
    by_id = {node["id"]: node for node in answer["nodes"]}
    tops = [node for node in answer["nodes"] if node["op"].startswith("autograd graph of")]
    assert len(tops) == 1, [node["op"] for node in answer["nodes"]]
    return {node["op"]: node for node in answer["nodes"] if node["parent"] == tops[0]["id"]}, by_id


def dtypes(entries):
    return [dtype for dtype, _ in entries]


def test_a_cast_non_leaf_keeps_the_metadata_of_what_it_was():
    steps = [
        step("clone", "w", name="v"),
        step("set_data", "v", to={"cast": "bfloat16"}),
        step("linear", "x", "v", name="y"),
        step("backward", "y", grad="g")
    ]
    for backend in ("torch-eager", "torch-aot-eager"):
        answer = run(backend, tensors(), steps, ["w.grad"], requires_grad=("w", ))
        assert answer["outcome"]["kind"] == "completed", answer["outcome"]
        nodes, by_id = graph(answer)
        clone, leaf = nodes["CloneBackward0"], nodes["torch::autograd::AccumulateGrad"]
        assert dtypes(clone["inputs"]) == dtypes(leaf["inputs"]) == ["float32"], (clone, leaf)
        assert clone["inputs"][0][1] == [10, 16]
        before = by_id[clone["from"][0]]  # what hands a bfloat16 gradient to a node that expects float32
        assert dtypes(before["inputs"]) == ["bfloat16"] and dtypes(before["outputs"]) == ["float32"], before
        casts = [(c["from"], c["to"]) for c in answer["casts"] if c["stage"] == "dispatch"]
        assert ("bfloat16", "float32") in casts, casts


def test_a_cast_leaf_expects_what_it_is_now():
    steps = [
        step("set_data", "w", to={"cast": "bfloat16"}),
        step("linear", "x", "w", name="y"),
        step("backward", "y", grad="g")
    ]
    for backend in ("torch-eager", "torch-aot-eager"):
        nodes, _ = graph(run(backend, tensors(), steps, ["w.grad"], requires_grad=("w", )))
        assert dtypes(nodes["torch::autograd::AccumulateGrad"]["inputs"]) == ["bfloat16"]


def test_each_backward_has_its_own_casts():
    steps = [
        step("autocast", device="cpu", dtype="bfloat16", enabled=True, cache=True,
             steps=[step("linear", "x", "w", name="y")]),
        step("backward", "y", grad="g", retain_graph=True),
        step("backward", "y", grad="g", retain_graph=True),
        step("backward", "y", grad="g")
    ]
    answer = run("torch-eager", tensors(), steps, ["w.grad"], requires_grad=("w", ))
    by_id = {node["id"]: node for node in answer["nodes"]}

    def top(node):
        while node["parent"] >= 0:
            node = by_id[node["parent"]]
        return node

    casts = [top(by_id[c["node"]]) for c in answer["casts"] if (c["from"], c["to"]) == ("bfloat16", "float32")]
    assert [node["op"] for node in casts] == ["backward"] * 3 and len({node["id"] for node in casts}) == 3, casts
    added = [node for node in answer["nodes"] if node["op"] == "aten::add_" and top(node)["op"] == "backward"]
    assert len(added) == 2 and all(dtypes(node["inputs"])[:2] == ["float32", "float32"] for node in added), added


def test_without_a_trace_no_graph_is_walked():
    steps = [step("linear", "x", "w", name="y"), step("sum", "y", name="s"), step("backward", "s")]
    inputs = {"x": normal("float32", [6, 16], 1), "w": normal("float32", [10, 16], 2)}
    for backend in ("torch-eager", "torch-aot-eager"):
        answer = run(backend, inputs, steps, ["w.grad"], requires_grad=("w", ), trace=False)
        assert not answer["nodes"] and answer["values"]["w.grad"].dtype == "float32"


if __name__ == "__main__":
    if not os.path.exists(BINARY):
        sys.exit(f"{BINARY} is not built")
    main(globals())
