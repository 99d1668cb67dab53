"""fsdp_linear: FSDP's casts around a compiled layer, its gradients, what is refused."""

import struct

from worker import count_bfloat16_valued, main, normal, step, warm

BACKENDS = ("torch-aot-eager", "torch-inductor")
WRAP = {"compute_dtype": "bfloat16", "reduce_dtype": "float32"}


def linear(*of, **attributes):
    return step("fsdp_linear", *of, name="y", **{**WRAP, **attributes})


def tensors():
    return {
        "x": normal("float32", [22, 44], 1),
        "w": normal("float32", [66, 44], 2),
        "g": normal("bfloat16", [22, 66], 3)
    }


def bfloat16_of(tensor):
    """The float32 values of a tensor, each rounded to nearest even bfloat16."""
    rounded = []
    for value in struct.unpack(f"<{len(tensor.data) // 4}f", tensor.data):
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000
        rounded.append(struct.unpack("<f", struct.pack("<I", bits))[0])
    return rounded


def test_operands_and_weight_gradient_go_through_bfloat16():
    for backend in BACKENDS:
        inputs = tensors()
        answer = warm(backend).run(inputs, [linear("x", "w"), step("backward", "y", grad="g")],
                                   ["y", "w", "w.grad", "x.grad", "w.grad_metadata_dtype"],
                                   requires_grad=("x", "w"))
        assert answer["outcome"]["kind"] == "completed", answer["outcome"]
        values = answer["values"]
        assert [values[n].dtype for n in ("y", "w", "w.grad", "x.grad")] == \
            ["bfloat16", "float32", "float32", "float32"]
        assert values["w"] == inputs["w"]  # the shard keeps what was put in
        gradient = values["w.grad"]
        assert count_bfloat16_valued(gradient) == 66 * 44  # rounded, then widened
        g = struct.unpack(f"<{22 * 66}H", inputs["g"].data)
        g = [struct.unpack("<f", struct.pack("<I", bits << 16))[0] for bits in g]
        x = bfloat16_of(inputs["x"])
        observed = struct.unpack(f"<{66 * 44}f", gradient.data)
        for index in (0, 17, 66 * 44 - 1):
            row, column = divmod(index, 44)
            exact = sum(g[n * 66 + row] * x[n * 44 + column] for n in range(22))
            size = sum(abs(g[n * 66 + row] * x[n * 44 + column]) for n in range(22))
            assert abs(observed[index] - exact) <= 2.0**-9 * abs(exact) + 22 * 2.0**-24 * size
        assert answer["parts"]["y"] == "compiled" and answer["parts"]["w.grad"] == "backward"
        assert any("FSDP's casts around it are eager" in note for note in answer["notes"])


def test_casts_stand_under_the_hooks_that_made_them():
    for backend in BACKENDS:
        answer = warm(backend).run(tensors(), [linear("x", "w"), step("backward", "y", grad="g")],
                                   ["y", "w.grad"], requires_grad=("w", ))
        casts = {(c["from"], c["to"], c["under"]) for c in answer["casts"] if c["stage"] == "dispatch"}
        assert ("float32", "bfloat16", "FSDP::cast_forward_inputs") in casts, casts
        assert ("float32", "bfloat16", "FSDP::pre_forward") in casts, casts
        assert ("bfloat16", "float32", "fsdp::chunk_cat") in casts, casts


def test_a_float32_compute_dtype_rounds_nothing():
    answer = warm("torch-aot-eager").run(
        tensors(), [linear("x", "w", compute_dtype="float32"),
                    step("sum", "y", name="loss"),
                    step("backward", "loss")], ["y", "w.grad"], requires_grad=("w", ))
    assert answer["outcome"]["kind"] == "completed", answer["outcome"]
    for value in answer["values"].values():
        assert value.dtype == "float32" and count_bfloat16_valued(value) * 20 < len(value.data) // 4


def test_a_second_micro_batch_goes_through_the_same_layer():
    inputs = tensors()
    inputs["x2"] = normal("float32", [22, 44], 5)
    once = [linear("x", "w"), step("backward", "y", grad="g")]
    again = [
        step("fsdp_linear", "x2", "w", name="z", **WRAP),
        step("backward", "z", grad="g"),
    ]
    run = warm("torch-aot-eager").run
    first = run({k: inputs[k] for k in ("x", "w", "g")}, once, ["w.grad"], requires_grad=("w", ))
    both = run(inputs, once + again, ["w.grad"], requires_grad=("w", ))
    assert both["outcome"]["kind"] == "completed", both["outcome"]
    assert both["values"]["w.grad"] != first["values"]["w.grad"]
    # The sum of two bfloat16 gradients is kept in float32: most of it is no bfloat16 any more.
    assert count_bfloat16_valued(both["values"]["w.grad"]) < 66 * 44 * 3 // 4


def test_what_cannot_be_sharded_is_refused_with_the_reason():
    run = warm("torch-aot-eager").run
    answer = run({k: v for k, v in tensors().items() if k != "g"}, [linear("x", "w")], ["y"])
    assert answer["outcome"]["kind"] == "unsupported"
    assert "w is no leaf that requires a gradient" in answer["outcome"]["text"]
    wider = step("fsdp_linear", "x", "w", name="z", compute_dtype="float16")
    answer = run({k: v for k, v in tensors().items() if k != "g"}, [linear("x", "w"), wider], ["z"],
                 requires_grad=("w", ))
    assert answer["outcome"]["kind"] == "unsupported"
    assert "wrapped already, with other dtypes" in answer["outcome"]["text"]


if __name__ == "__main__":
    main(globals())
