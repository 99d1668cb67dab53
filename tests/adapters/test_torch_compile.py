"""Known answers of torch-aot-eager and torch-inductor; proof of compilation, cuts, refusals."""

import pathlib
import struct
import tempfile

from worker import (Tensor, count_bfloat16_valued, exact_matmul, main, normal, redundant, start, step, values, warm,
                    worst_relative_error)

BACKENDS = ("torch-aot-eager", "torch-inductor")
# Largest loss by float32 accumulation of these short sums, relative to the largest result, and the least that a rounding to bfloat16 must
# show at least once: 2^-9 is half a bfloat16 ulp relative, and the data is random.
FLOAT32 = 1e-6
BFLOAT16 = 2.0**-11


def matmul_out(m, k, n, batch=()):
    tensors = {"x": normal("bfloat16", [*batch, m, k], 1), "y": normal("bfloat16", [*batch, k, n], 2)}
    shape = [*batch, m, n]
    return tensors, [
        step("empty", name="buffer", shape=shape, dtype="float32"),
        step("matmul", "x", "y", out="buffer", name="product")
    ]


def check_rounded(answer, tensors):
    product = answer["values"]["product"]
    elements = len(product.data) // 4
    assert product.dtype == "float32" and elements > 0
    assert count_bfloat16_valued(product) == elements
    assert worst_relative_error(product, exact_matmul(tensors["x"], tensors["y"])) > BFLOAT16


def check_unrounded(answer, tensors):
    product = answer["values"]["product"]
    elements = len(product.data) // 4
    assert product.dtype == "float32" and elements > 0
    assert count_bfloat16_valued(product) * 20 < elements
    assert worst_relative_error(product, exact_matmul(tensors["x"], tensors["y"])) < FLOAT32


def as_posted(adapter):
    tensors, steps = matmul_out(1, 8, 1, batch=(32, 7))
    tensors["bias"] = normal("bfloat16", [32, 7, 1, 1], 3)
    answer = adapter.run(tensors, steps + [step("add", "product", "bias", name="result")],
                         ["product", "result", "buffer"])
    assert answer["outcome"]["kind"] == "completed", answer["outcome"]
    assert answer["values"]["buffer"] == answer["values"]["product"]
    assert answer["parts"] == {"product": "compiled", "result": "compiled", "buffer": "compiled"}
    return answer, tensors


def test_aot_eager_rounds_the_posted_product_through_bfloat16():
    answer, tensors = as_posted(warm("torch-aot-eager"))
    check_rounded(answer, tensors)
    assert [(c["from"], c["to"], c["under"], c["stage"], c["bytes"]) for c in answer["casts"]] == \
        [("bfloat16", "float32", "aten::copy", "aot_forward", 896)]


def narrowing_stages(answer):
    return {c["stage"] for c in answer["casts"] if (c["from"], c["to"]) == ("float32", "bfloat16")}


def test_inductor_does_not_though_its_graph_converts():
    answer, tensors = as_posted(warm("torch-inductor"))
    check_unrounded(answer, tensors)
    assert narrowing_stages(answer) == {"aot_forward", "post_grad"}
    assert any(note.startswith("generated: cpp_fused") for note in answer["notes"])
    (unused,) = (node for node in answer["nodes"] if node["op"] == "unused convert")
    assert unused["outputs"] == [["bfloat16", [32 * 7]]]
    assert any(
        note.endswith("converts bfloat16[224] and uses the unconverted value") for note in answer["notes"])


def test_inductor_rounds_when_told_to_emulate_precision_casts():
    with start("torch-inductor", knobs={"emulate_precision_casts": "true"}) as adapter:
        answer, tensors = as_posted(adapter)
        check_rounded(answer, tensors)
        assert answer["knobs"]["emulate_precision_casts"] == "true"
        assert narrowing_stages(answer) == {"aot_forward", "post_grad", "generated"}
        assert not any(node["op"] == "unused convert" for node in answer["nodes"])


def test_both_round_larger_products():
    checked = 0
    for backend in BACKENDS:
        for m, k, n in ((2, 8, 2), (64, 64, 64)):
            tensors, steps = matmul_out(m, k, n)
            check_rounded(warm(backend).run(tensors, steps, ["product"]), tensors)
            checked += 1
    assert checked == 4


def test_float_first_is_unrounded_on_both():
    for backend in BACKENDS:
        tensors, _ = matmul_out(1, 8, 1, batch=(32, 7))
        steps = [
            step("cast", "x", name="x32", dtype="float32"),
            step("cast", "y", name="y32", dtype="float32"),
            step("matmul", "x32", "y32", name="product")
        ]
        check_unrounded(warm(backend).run(tensors, steps, ["product"]), tensors)


def test_out_dtype_of_a_one_by_one_product():
    tensors = {"a": normal("bfloat16", [1, 64], 1), "b": normal("bfloat16", [64, 1], 2)}
    steps = [step("mm", "a", "b", name="p", out_dtype="float32")]
    assert warm("torch-inductor").run(tensors, steps, ["p"])["values"]["p"].dtype == "bfloat16"
    outcome = warm("torch-aot-eager").run(tensors, steps, ["p"])["outcome"]
    assert (outcome["kind"], outcome["class"]) == ("raised", "NotImplementedError"), outcome


def test_mixed_dtypes_raise_without_autocast_and_give_bfloat16_within():
    tensors = {"a": normal("bfloat16", [16, 32], 1), "b": normal("float32", [32, 8], 2)}
    product = step("mm", "a", "b", name="product")
    for backend in BACKENDS:
        outcome = warm(backend).run(tensors, [product], ["product"])["outcome"]
        assert (outcome["kind"], outcome["class"]) == ("raised", "RuntimeError"), outcome
        assert "same dtype" in outcome["text"] and "from user code" not in outcome["text"]
        scope = step("autocast", device="auto", dtype="bfloat16", enabled=True, cache=True, steps=[product])
        answer = warm(backend).run(tensors, [scope], ["product"])
        assert answer["values"]["product"].dtype == "bfloat16"
        casts = {
            (c["from"], c["to"], tuple(c["shape"])) for c in answer["casts"] if c["stage"] == "aot_forward"
        }
        assert casts == {("float32", "bfloat16", (32, 8))}, casts


def data_cast(backend, order, x_dtype):
    words = {
        "cast": [step("set_data", "w", to={"cast": "bfloat16"})],
        "restore": [step("set_data", "w", to={"cast": "float32"})],
        "forward": [step("linear", "x", "w", name="o"),
                    step("sum", "o", name="loss")],
        "backward": [step("backward", "loss")]
    }
    tensors = {"x": normal(x_dtype, [22, 44], 1), "w": normal("float32", [66, 44], 2)}
    answer = warm(backend).run(tensors, [s for word in order.split() for s in words[word]],
                               ["w", "w.grad", "w.grad_metadata_dtype"], requires_grad=["w"])
    assert answer["outcome"]["kind"] == "completed", answer["outcome"]
    found = answer["values"]
    return found["w"].dtype, found["w.grad"].dtype, answer["observations"]["w.grad_metadata_dtype"], answer


def test_data_casts_leave_gradients_of_another_dtype():
    for backend in BACKENDS:
        assert data_cast(backend, "cast forward backward", "bfloat16")[:2] == ("bfloat16", "bfloat16")
        parameter, gradient, _, answer = data_cast(backend, "forward cast backward", "float32")
        assert (parameter, gradient) == ("bfloat16", "float32")
        assert answer["notes"][0] == "cut: ran eagerly after the compiled region: set_data w, backward loss"
        parameter, gradient, _, answer = data_cast(backend, "cast forward restore backward", "bfloat16")
        assert (parameter, gradient) == ("float32", "bfloat16")
        assert answer["notes"][0] == "cut: ran eagerly before the compiled region: set_data w"
        assert answer["parts"] == {"w": "eager", "w.grad": "backward"}


def test_gradient_of_a_sum_of_products_is_exact():
    # loss = sum(x @ w.T): w.grad[j, k] = sum_i x[i, k], the same in every row; integers, so float32 is exact.
    x = [float((7 * i) % 11 - 5) for i in range(6 * 4)]
    tensors = {"x": Tensor("float32", (6, 4), struct.pack("<24f", *x)), "w": normal("float32", [3, 4], 2)}
    columns = [sum(x[i * 4 + k] for i in range(6)) for k in range(4)]
    for backend in BACKENDS:
        steps = [step("linear", "x", "w", name="o"), step("sum", "o", name="loss"), step("backward", "loss")]
        answer = warm(backend).run(tensors, steps, ["w.grad"], requires_grad=["w"])
        assert values(answer["values"]["w.grad"]) == columns * 3
        twice = steps + [
            step("linear", "x", "w", name="o2"),
            step("sum", "o2", name="loss2"),
            step("backward", "loss2")
        ]
        answer = warm(backend).run(tensors, twice, ["w.grad"], requires_grad=["w"])
        assert values(answer["values"]["w.grad"]) == [2 * c for c in columns * 3]
        assert "2 compiled regions" in answer["notes"]
        repeated = [*steps[:-1], *[step("backward", "loss", retain_graph=True)] * 2, step("backward", "loss")]
        answer = warm(backend).run(tensors, repeated, ["w.grad", "w.grad_dtype"], requires_grad=["w"])
        assert values(answer["values"]["w.grad"]) == [3 * c for c in columns * 3]
        assert answer["observations"] == {"w.grad_dtype": "float32"}


def test_non_leaf_weight_keeps_its_float32_metadata():
    tensors = {"x": normal("bfloat16", [22, 44], 1), "w": normal("float32", [66, 44], 2)}
    steps = [
        step("clone", "w", name="v"),
        step("set_data", "v", to={"cast": "bfloat16"}),
        step("linear", "x", "v", name="o"),
        step("sum", "o", name="loss"),
        step("backward", "loss")
    ]
    for backend in BACKENDS:
        answer = warm(backend).run(tensors, steps, ["v", "v.grad_metadata_dtype", "w.grad"],
                                   requires_grad=["w"])
        assert answer["outcome"]["kind"] == "completed", answer["outcome"]
        assert answer["notes"][0] == "cut: ran eagerly before the compiled region: clone w, set_data v"
        assert answer["values"]["v"].dtype == "bfloat16" and answer["values"]["w.grad"].dtype == "float32"
        assert answer["observations"]["v.grad_metadata_dtype"] == "float32"
        # The cast that no graph of the compiler shows: the engine's, for the clone's float32 metadata.
        (engine,) = (c for c in answer["casts"] if c["stage"] == "dispatch")
        assert (engine["from"], engine["to"], engine["under"]) == ("bfloat16", "float32",
                                                                   "CompiledFunctionBackward")
        assert engine["us"] > 0 and answer["nodes"][engine["node"]]["op"] == "aten::copy_"
        assert {c["stage"] for c in answer["casts"]} <= {"dispatch", "generated"}, answer["casts"]


def test_two_independent_losses_get_a_region_each():
    tensors = {
        "x": normal("bfloat16", [22, 44], 1),
        "v": normal("bfloat16", [66, 44], 2),
        "w": normal("bfloat16", [66, 44], 2)
    }
    forward = [
        step("linear", "x", "v", name="p"),
        step("linear", "x", "w", name="q"),
        step("sum", "p", name="lp"),
        step("sum", "q", name="lq")
    ]
    for backend in BACKENDS:
        answer = warm(backend).run(
            tensors,
            [*forward, step("backward", "lp"), step("backward", "lq")], ["v.grad", "w.grad"],
            requires_grad=["v", "w"])
        assert answer["outcome"]["kind"] == "completed", answer["outcome"]
        assert answer["values"]["v.grad"].data == answer["values"]["w.grad"].data
        assert answer["notes"][-1 if backend == BACKENDS[0] else 1] == "2 compiled regions", answer["notes"]


def test_inductor_errors_are_reported_by_their_innermost_class():
    tensors = {"a": normal("bfloat16", [64, 64], 1)}
    outcome = warm("torch-inductor").run(tensors, [step("mm", "a", "a", name="p", out_dtype="float32")],
                                         ["p"])["outcome"]
    assert (outcome["kind"],
            outcome["class"]) == ("raised", "RuntimeError") and "CUDA or XPU" in outcome["text"], outcome


def test_module_to_with_and_without_overwriting():
    tensors = {"x": normal("bfloat16", [22, 44], 1), "w": normal("float32", [66, 44], 2)}
    for overwrite in (False, True):
        steps = [
            step("module_to", "w", dtype="bfloat16", overwrite=overwrite),
            step("linear", "x", "w", name="o"),
            step("sum", "o", name="loss"),
            step("backward", "loss")
        ]
        answer = warm("torch-aot-eager").run(tensors, steps, ["w", "w.grad", "w.grad_metadata_dtype"],
                                             requires_grad=["w"])
        assert answer["outcome"]["kind"] == "completed", answer["outcome"]
        assert (answer["values"]["w"].dtype, answer["values"]["w.grad"].dtype) == ("bfloat16", "bfloat16")
        assert answer["observations"]["w.grad_metadata_dtype"] == "bfloat16"


def test_layer_norm_under_cpu_autocast_stays_bfloat16_without_a_cast():
    tensors = {
        "x": normal("bfloat16", [4, 64, 256], 1),
        "w": normal("float32", [256], 2),
        "b": normal("float32", [256], 3)
    }
    norm = step("layer_norm", "x", "w", "b", name="y", normalized_shape=[256], eps=1e-5)
    for steps in ([norm],
                  [step("autocast", device="cpu", dtype="bfloat16", enabled=True, cache=True, steps=[norm])]):
        answer = warm("torch-aot-eager").run(tensors, steps, ["y"])
        assert answer["values"]["y"].dtype == "bfloat16" and answer["casts"] == []


def test_scalars_strides_and_scopes():
    tensors = {"a": Tensor("float32", (3, 5), struct.pack("<15f", *range(15)))}
    steps = [
        step("mul", "a", 0.5, name="p"),
        step("no_grad", steps=[step("add", "p", 1, name="q")]),
        step("reshape", "q", name="flat", shape=[15])
    ]
    for backend in BACKENDS:
        answer = warm(backend).run(tensors, steps, ["q", "flat", "a.grad"], requires_grad=["a"],
                                   strides={"a": [1, 3]})
        assert values(answer["values"]["q"]) == values(
            answer["values"]["flat"]) == [v * 0.5 + 1 for v in range(15)]
        assert answer["observations"]["a.grad"] == "none"
        answer = warm(backend).run({"a": normal("bfloat16", [2, 2], 1)}, [step("mul", "a", "inf", name="r")],
                                   ["r"])
        assert answer["outcome"]["kind"] == "unsupported"  # "inf" is the name of a value here, not the scalar


def flags(answer):
    """stage -> of its casts, in order, whether each changes no value"""
    stages = {}
    for cast, flag in zip(answer["casts"], redundant(answer["nodes"], answer["casts"])):
        stages.setdefault(cast["stage"], []).append(flag)
    return stages


def test_a_redundant_pair_is_flagged_and_a_rounding_pair_is_not():
    up_and_down = [
        step("cast", "a", name="up", dtype="float32"),
        step("cast", "up", name="down", dtype="bfloat16"),
        step("add", "down", "a", name="r")
    ]
    answer = warm("torch-aot-eager").run({"a": normal("bfloat16", [8, 8], 1)}, up_and_down, ["r"])
    assert flags(answer) == {"dynamo": [True, True], "aot_forward": [True, True]}, answer["casts"]
    # Inductor finds it too, and removes it before it generates code.
    answer = warm("torch-inductor").run({"a": normal("bfloat16", [8, 8], 1)}, up_and_down, ["r"])
    assert flags(answer) == {
        "dynamo": [True, True],
        "aot_forward": [True, True],
        "generated": [False, False]
    }, answer["casts"]
    # With a backward the pair is in every graph; its gradient is another pair.
    answer = warm("torch-aot-eager").run(
        {"a": normal("bfloat16", [8, 8], 1)},
        [*up_and_down, step("sum", "r", name="loss"),
         step("backward", "loss")], ["a.grad"], requires_grad=["a"])
    assert flags(answer) == {
        "dynamo": [True, True],
        "aot_joint": [True] * 4,
        "aot_forward": [True, True],
        "aot_backward": [True, True]
    }, answer["casts"]
    down_and_up = [
        step("cast", "a", name="down", dtype="bfloat16"),
        step("cast", "down", name="up", dtype="float32"),
        step("add", "up", "a", name="r")
    ]
    for backend in BACKENDS:
        answer = warm(backend).run({"a": normal("float32", [8, 8], 1)}, down_and_up, ["r"])
        stages = ["dynamo", "aot_forward"] + ["post_grad"] * (backend == "torch-inductor")
        # And none in generated code: it leaves out the rounding that the program requests.
        assert flags(answer) == {stage: [False, False] for stage in stages}, answer["casts"]


def test_the_same_case_twice_gives_the_same_bytes():
    for backend in BACKENDS:
        first, _ = as_posted(warm(backend))
        second, _ = as_posted(warm(backend))
        assert first["values"] == second["values"] and first["casts"] == second["casts"]


def test_precompiled_headers_outlive_the_folder_for_temporary_files():
    """A run has a TMPDIR of its own: what inductor keeps there is compiled again in each run, four seconds long."""
    with tempfile.TemporaryDirectory() as scratch, start("torch-inductor", env={"TMPDIR": scratch}) as adapter:
        answer = adapter.run({"a": normal("float32", [8, 8], 1)}, [step("mul", "a", 2.0, name="s"), step("exp", "s", name="r")],
                             ["r"])
        assert answer["outcome"]["kind"] == "completed", answer["outcome"]
        left = [str(each) for each in pathlib.Path(scratch).rglob("precompiled_headers/*")]
        assert not left, left


def test_without_a_trace_nothing_is_recorded_and_compilation_is_still_proved():
    tensors, steps = matmul_out(1, 8, 1, batch=(32, 7))
    for backend in BACKENDS:
        traced = warm(backend).run(tensors, steps, ["product"])
        bare = warm(backend).run(tensors, steps, ["product"], trace=False)
        assert bare["values"] == traced["values"] and traced["nodes"] and traced["casts"]
        assert bare["nodes"] == bare["casts"] == []
        again = warm(backend).run(tensors, steps, ["product"])
        assert again["nodes"] == traced["nodes"] and again["notes"] == traced["notes"]


def test_what_was_not_compiled_is_refused():
    # Planted: dynamo switched off, so that everything would quietly run eagerly.
    tensors, steps = matmul_out(2, 8, 2)
    for backend in BACKENDS:
        with start(backend, env={"TORCHDYNAMO_DISABLE": "1"}) as adapter:
            steps32 = [step("cast", "x", name="x32", dtype="float32")]
            for trace in (True, False):
                outcome = adapter.run(tensors, steps32, ["x32"], trace=trace)["outcome"]
                assert outcome["kind"] == "unsupported" and outcome["text"].startswith(
                    "not compiled: dynamo captured 0"), outcome
    outcome = warm("torch-inductor").run(tensors, [step("set_data", "x", to={"cast": "float32"})],
                                         ["x"])["outcome"]
    assert outcome["kind"] == "unsupported" and outcome["text"].startswith(
        "not compiled: the program has no step")


def test_unsupported_names_what_is_missing():
    tensors = {"a": normal("float32", [4, 4], 1)}
    adapter = warm("torch-aot-eager")
    for steps, word in (([step("fft", "a", name="r")], "op fft"), ([step("aten::no_such", "a",
                                                                         name="r")], "aten::no_such"),
                        ([step("matmul", "a", "a", name="r", preferred_element_type="float32")],
                         "out_dtype"), ([step("exp", "a", name="r", approximate=True)], "approximate"),
                        ([step("cast", "a", name="r", dtype="float4")], "float4")):
        outcome = adapter.run(tensors, steps, ["r"])["outcome"]
        assert outcome["kind"] == "unsupported" and word in outcome["text"], (word, outcome)
    answer = adapter.run(tensors, [step("aten::tril", "a", name="r", diagonal=-1)], ["r"])
    assert values(answer["values"]["r"])[:4] == [0.0] * 4


def test_hello_refuses_devices_and_knobs_that_it_cannot_serve():
    for options, word in (({
            "device": "hip"
    }, "device hip"), ({
            "knobs": {
                "emulate_precision_casts": "true"
            }
    }, "emulate"), ({
            "knobs": {
                "mkldnn": "perhaps"
            }
    }, "mkldnn=perhaps")):
        with start("torch-aot-eager", stay_on_error=True, **options) as adapter:
            assert word in adapter.hello["error"], adapter.hello["error"]


def test_knobs_are_read_back_and_flush_denormal_shows_in_mxcsr():
    knobs = {
        "threads": "2",
        "mkldnn": "off",
        "deterministic": "on",
        "flush_denormal": "on",
        "float32_matmul_precision": "medium",
        "sdpa_backend": "math"
    }
    with start("torch-aot-eager", knobs=knobs) as adapter:
        answer = adapter.run({"a": normal("float32", [4], 1)}, [step("mul", "a", 2.0, name="r")], ["r"])
        assert answer["knobs"] == knobs, answer["knobs"]
        assert answer["fp"]["before"]["mxcsr"] & 0x8040 == 0x8040 and not answer["fp"]["before"][
            "subnormals_kept"]
        assert answer["fp"]["after"]["threads"] == 2


def test_unwritten_elements_keep_the_poison():
    tensors = {"a": normal("float32", [4], 1)}
    steps = [step("empty", name="buffer", shape=[4], dtype="bfloat16"), step("mul", "a", 2.0, name="r")]
    answer = warm("torch-inductor").run(tensors, steps, ["buffer", "r"])
    assert answer["values"]["buffer"].data == b"\xfa\xff" * 4


def test_a_buffer_that_out_fills_is_made_inside_and_any_other_before():
    """The graph that dynamo captures makes the one by empty, and takes the other as an input."""
    tensors = {"x": normal("bfloat16", [4, 1, 8], 1), "y": normal("bfloat16", [4, 8, 1], 2), "z": normal("float32", [4, 1, 1], 3)}
    make = step("empty", name="buffer", shape=[4, 1, 1], dtype="float32")
    product = step("matmul", "x", "y", out="buffer", name="product")
    for backend in BACKENDS:
        answer = warm(backend).run(tensors, [make, product], ["product"])
        ops = [node["op"] for node in answer["nodes"] if node["stage"] == "dynamo"]
        assert any("empty" in op for op in ops) and ops.count("input") == 2, ops
        assert answer["notes"][0] == "made inside the compiled region, and not poisoned there: buffer", answer["notes"]
        # A buffer that is read before it is filled is memory that the program requests uninitialised: poisoned, outside.
        read = [make, step("add", "buffer", "z", name="sum"), product]
        answer = warm(backend).run(tensors, read, ["sum", "product"])
        ops = [node["op"] for node in answer["nodes"] if node["stage"] == "dynamo"]
        assert not any("empty" in op for op in ops) and ops.count("input") == 4, ops
        assert answer["notes"][0] == "made before the region and passed in: buffer", answer["notes"]


def test_peak_bytes_counts_what_is_held_at_one_time():
    """By hand: y = a @ a and z = exp(y) are 256 KiB each and held together; without y in use, aot_eager holds both while z is made."""
    tensors = {"a": normal("float32", [256, 256], 1)}
    size = 256 * 256 * 4
    steps = [step("mm", "a", "a", name="y"), step("exp", "y", name="z")]
    for backend in BACKENDS:
        assert warm(backend).run(tensors, steps[:1], ["y", "peak_bytes"])["observations"]["peak_bytes"] == str(size)
        assert warm(backend).run(tensors, steps, ["y", "z", "peak_bytes"])["observations"]["peak_bytes"] == str(2 * size)


def test_detach_makes_a_leaf_of_a_cast():
    tensors = {"x": normal("bfloat16", [22, 44], 1), "w": normal("float32", [66, 44], 2), "g": normal("bfloat16", [22, 66], 3)}
    steps = [step("cast", "w", name="p", dtype="bfloat16"), step("detach_", "p", requires_grad=True), step("linear", "x", "p", name="y"),
             step("backward", "y", grad="g")]
    for backend in BACKENDS:
        answer = warm(backend).run(tensors, steps, ["p.grad", "p.grad_metadata_dtype", "w.grad"], requires_grad=["w"])
        assert answer["outcome"]["kind"] == "completed", answer["outcome"]
        assert answer["values"]["p.grad"].dtype == answer["observations"]["p.grad_metadata_dtype"] == "bfloat16"
        assert answer["observations"]["w.grad"] == "none"


if __name__ == "__main__":
    main(globals())
