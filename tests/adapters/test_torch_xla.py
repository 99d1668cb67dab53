"""Known answers of torch-xla and torch-xla-dynamo (torch_xla 2.9.0 on a CPU), their graphs, cuts and refusals.

Needs the environment of `ci/setup --with torch-xla`.
"""

import os
import sys

from worker import (ROOT, Tensor, count_bfloat16_valued, exact_matmul, is_product_rounded, main, normal, start, step,
                    values, warm, worst_relative_error)

BACKENDS = ("torch-xla", "torch-xla-dynamo")

TENSORS = {"x": normal("bfloat16", [32, 48], 1), "y": normal("bfloat16", [48, 40], 2)}
INTO_BUFFER = [
    step("empty", name="buffer", shape=[32, 40], dtype="float32"),
    step("matmul", "x", "y", out="buffer", name="p")
]


def is_rounded(tensor):
    return is_product_rounded(tensor, TENSORS["x"], TENSORS["y"])


def results_of(answer, stage, op):
    """The dtypes of what the nodes `op` of a stage give back."""
    return [node["outputs"][0][0] for node in answer["nodes"] if (node["stage"], node["op"]) == (stage, op)]


def casts_of(answer, stage):
    return [(cast["from"], cast["to"]) for cast in answer["casts"] if cast["stage"] == stage]


def test_the_rounding_of_an_out_product_is_lost_between_the_two_hlo():
    for backend in BACKENDS:
        for _ in range(2):  # the second time nothing is compiled, and the evidence is the same
            answer = warm(backend).run(TENSORS, INTO_BUFFER, ["p"])
            assert not is_rounded(answer["values"]["p"])
            assert results_of(answer, "lazy_ir", "aten::mm") == ["bfloat16"]
            kinds = {node["op"]: node.get("kind", "compute") for node in answer["nodes"] if node["stage"] == "lazy_ir"}
            assert {op: kinds[op] for op in ("aten::mm", "xla::cast", "xla::device_data")
                   } == {"aten::mm": "product", "xla::cast": "convert", "xla::device_data": "input"}, kinds
            assert results_of(answer, "hlo", "dot") == ["bfloat16"]
            assert results_of(answer, "hlo_optimized", "dot") == ["float32"]
            assert casts_of(answer, "lazy_ir") == casts_of(answer, "hlo") == [("bfloat16", "float32")]
            assert casts_of(answer, "hlo_optimized") == [("bfloat16", "float32")] * 2, "the operands'"
            assert answer["parts"] == {"p": "compiled"}


def test_without_excess_precision_the_rounding_comes_back():
    with start("torch-xla", knobs={"xla_allow_excess_precision": "false"}) as adapter:
        answer = adapter.run(TENSORS, INTO_BUFFER, ["p"])
        assert is_rounded(answer["values"]["p"])
        assert answer["knobs"] == {"threads": "1", "xla_allow_excess_precision": "false"}
        assert ("float32", "bfloat16") in casts_of(answer, "hlo_optimized")
    assert warm("torch-xla").run(TENSORS, INTO_BUFFER, ["p"])["knobs"] == {
        "threads": "1",
        "xla_allow_excess_precision": "true"
    }


def test_sync_cuts_the_graph_and_what_is_unused_is_no_output():
    chain = [step("matmul", "x", "y", name="a"), step("cast", "a", name="b", dtype="float32")]
    whole = warm("torch-xla").run(TENSORS, [*chain, step("neg", "b", name="c")], ["c"])
    assert not is_rounded(warm("torch-xla").run(TENSORS, chain, ["b"])["values"]["b"])
    assert whole["notes"][0].startswith("lazy tensors: 1 graphs") and results_of(whole, "hlo", "tuple") == ["float32"]
    cut = warm("torch-xla").run(TENSORS, [chain[0], step("sync"), *chain[1:]], ["b"])
    assert cut["notes"][0].startswith("lazy tensors: 2 graphs"), cut["notes"]
    assert is_rounded(cut["values"]["b"]), "between two graphs a bfloat16 product is stored"
    roots = [node["op"] for node in cut["nodes"] if node["parent"] == -1 and node["stage"] == "hlo"]
    assert roots == ["graph 1 (at sync)", "graph 2 (at the end)"]


def test_xla_accepts_what_eager_refuses():
    tensors = {"x": TENSORS["x"], "y": normal("float32", [48, 8], 3)}
    answer = warm("torch-xla").run(tensors, [step("matmul", "x", "y", name="p")], ["p"])
    assert answer["values"]["p"].dtype == "bfloat16"
    norm = {"x": normal("bfloat16", [4, 16], 1), "w": normal("float32", [16], 2), "b": normal("float32", [16], 3)}
    steps = [step("layer_norm", "x", "w", "b", name="r", normalized_shape=[16], eps=1e-5)]
    assert warm("torch-xla").run(norm, steps, ["r"])["values"]["r"].dtype == "float32"
    inside = step("autocast", steps=steps, device="auto", dtype="bfloat16", enabled=True, cache=True)
    assert warm("torch-xla").run(norm, [inside], ["r"])["values"]["r"].dtype == "float32"
    inside["attrs"]["device"] = "cuda"
    answer = warm("torch-xla").run(norm, [inside], ["r"])
    assert answer["outcome"]["kind"] == "unsupported" and "cuda" in answer["outcome"]["text"]


def linear(*before):
    return [*before, step("linear", "x", "w", name="o"), step("backward", "o", grad="g")]


def test_backward_of_a_cast_weight_holds_no_widening():
    tensors = {
        "x": normal("bfloat16", [22, 44], 1),
        "w": normal("float32", [66, 44], 2),
        "g": normal("bfloat16", [22, 66], 3)
    }
    steps = linear(step("set_data", "w", to={"cast": "bfloat16"}))
    for backend in BACKENDS:
        answer = warm(backend).run(tensors, steps, ["w", "w.grad", "w.grad_metadata_dtype"], requires_grad=["w"])
        assert answer["values"]["w"].dtype == answer["values"]["w.grad"].dtype == "bfloat16"
        assert answer["observations"] == {"w.grad_metadata_dtype": "bfloat16"}
        assert casts_of(answer, "lazy_ir") == [("float32", "bfloat16")], "the one that the program asks for"
        transposed = Tensor("bfloat16", (66, 22), b"".join(tensors["g"].data[(i * 66 + j) * 2:][:2]
                                                          for j in range(66) for i in range(22)))
        exact = exact_matmul(transposed, tensors["x"])
        assert worst_relative_error(answer["values"]["w.grad"], exact) < 2.0**-8


def test_a_sharded_linear_layer_stores_its_gradient_narrow_in_the_graph_and_not_in_the_numbers():
    tensors = {
        "x": normal("float32", [22, 44], 1),
        "w": normal("float32", [66, 44], 2),
        "g": normal("bfloat16", [22, 66], 3)
    }
    forward = step("fsdp_linear", "x", "w", name="o", compute_dtype="bfloat16", reduce_dtype="float32")
    steps = [forward, step("backward", "o", grad="g")]

    def check(adapter, rounded):
        answer = adapter.run(tensors, steps, ["o", "w", "w.grad"], requires_grad=["w"])
        found = answer["values"]
        assert (found["o"].dtype, found["w"].dtype, found["w.grad"].dtype) == ("bfloat16", "float32", "float32")
        assert found["w"].shape == found["w.grad"].shape == (66, 44) and found["w"].data == tensors["w"].data
        assert (count_bfloat16_valued(found["w.grad"]) == 66 * 44) == rounded
        lazy = casts_of(answer, "lazy_ir")
        assert lazy.count(("float32", "bfloat16")) == 2 and lazy.count(("bfloat16", "float32")) == 1, lazy
        assert set(results_of(answer, "hlo", "dot")) == {"bfloat16"}

    for backend in BACKENDS:
        check(warm(backend), rounded=False)
    with start("torch-xla", knobs={"xla_allow_excess_precision": "false"}) as adapter:
        check(adapter, rounded=True)
    forward["attrs"]["reduce_dtype"] = "float16"
    answer = warm("torch-xla").run(tensors, steps[:1], ["o"], requires_grad=["w"])
    assert answer["outcome"]["kind"] == "unsupported" and "reduces in" in answer["outcome"]["text"]


def test_module_to_keeps_or_replaces_the_leaf():
    tensors = {"x": normal("bfloat16", [4, 8], 1), "w": normal("float32", [6, 8], 2), "g": normal("bfloat16", [4, 6], 3)}
    for overwrite in (False, True):
        steps = linear(step("module_to", "w", dtype="bfloat16", overwrite=overwrite))
        answer = warm("torch-xla").run(tensors, steps, ["w", "w.grad"], requires_grad=["w"])
        assert answer["outcome"]["kind"] == "completed", answer["outcome"]
        assert answer["values"]["w"].dtype == answer["values"]["w.grad"].dtype == "bfloat16"


def test_an_operator_that_xla_lacks_is_named():
    tensors = {"a": normal("float32", [4, 4], 1)}
    for backend in BACKENDS:
        answer = warm(backend).run(tensors, [step("exp", "a", name="b"), step("aten::special_i1e", "b", name="c")], ["c"])
        assert answer["outcome"]["kind"] == "completed", answer["outcome"]
        assert any("aten::special_i1e" in note and "fell back to the CPU" in note for note in answer["notes"]), answer["notes"]
    answer = warm("torch-xla").run(tensors, [step("exp", "a", name="b")], ["b"])
    assert not any("fell back" in note for note in answer["notes"])


def test_the_variables_that_narrow_tensors_are_cleared_and_watched():
    tensors = {"a": normal("float32", [16, 16], 1)}
    with start("torch-xla", env={"XLA_USE_BF16": "1", "XLA_DOWNCAST_BF16": "1"}) as adapter:
        answer = adapter.run(tensors, [step("mul", "a", 3.0, name="b")], ["b"])
        assert values(answer["values"]["b"]) != [round(v, 2) for v in values(answer["values"]["b"])]
        assert count_bfloat16_valued(answer["values"]["b"]) < 16
        assert "float32" in results_of(answer, "hlo", "parameter")
    sys.path.insert(0, os.path.join(ROOT, "backends", "torch_xla"))
    import session
    narrowed = "ENTRY %main (p0.1: bf16[2]) -> (bf16[2]) {\n  %p0.1 = bf16[2]{0} parameter(0)\n}"
    try:
        session.require_parameters(narrowed, "float32")
        raise AssertionError("a narrowed tensor was not noticed")
    except session.Unsupported as error:
        assert str(error) == "a float32 tensor is bfloat16 on the device"
    session.require_parameters(narrowed.replace("bf16", "f32"), "float32")


def test_knobs_and_refusals():
    with start("torch-xla", knobs={"threads": "2"}) as adapter:
        answer = adapter.run(TENSORS, INTO_BUFFER, ["p"], trace=False)
        assert answer["knobs"] == {"threads": "2"} and answer["fp"]["before"]["threads"] == 2
        assert answer["nodes"] == answer["casts"] == []
        # The option that writes graphs down is read when the client starts, and was not set by then.
        late = adapter.run(TENSORS, INTO_BUFFER, ["p"])
        assert any("no hlo_optimized" in note for note in late["notes"]) and casts_of(late, "hlo")
    with start("torch-xla", knobs={"xla_allow_excess_precision": "maybe"}, stay_on_error=True) as adapter:
        assert "xla_allow_excess_precision=maybe" in adapter.hello["error"]
    answer = warm("torch-xla").run(TENSORS, [step("matmul", "x", "x", name="p")], ["p"])
    assert answer["outcome"]["kind"] == "raised" and "***" not in answer["outcome"]["text"], answer["outcome"]


def test_the_same_case_twice_gives_the_same_bytes():
    for backend in BACKENDS:
        first, second = (warm(backend).run(TENSORS, INTO_BUFFER, ["p"]) for _ in range(2))
        assert first["values"] == second["values"] and first["nodes"] == second["nodes"]


if __name__ == "__main__":
    main(globals())
