"""Knobs of the torch family that choose a kernel: each shows in bits, or is refused. CUDA answers fast."""

import os
import sys

from worker import ROOT, Adapter, main, normal, start, step

BINARY = os.environ.get("ULPSCOPE_BIN_DIR", os.path.join(ROOT, "build", "release", "bin")) + "/ulpscope-torch"
PYTHON_BACKENDS = ("torch-aot-eager", "torch-inductor")


def adapter(backend, **options):
    """A worker of any backend of the family."""
    if backend in PYTHON_BACKENDS:
        return start(backend, **options)
    return Adapter([BINARY], backend, **options)


def attention(dtype):
    tensors = {name: normal(dtype, [2, 4, 48, 32], seed) for seed, name in enumerate("qkv", 1)}
    return tensors, [step("aten::scaled_dot_product_attention", "q", "k", "v", name="r")], ["r"]


def attend(backend, value, dtype="bfloat16"):
    with adapter(backend, knobs={"sdpa_backend": value}) as worker:
        answer = worker.run(*attention(dtype), knobs={"sdpa_backend": value})
        assert answer["knobs"]["sdpa_backend"] == value, answer["knobs"]
        return answer


def test_sdpa_backend_chooses_another_kernel_with_other_bits():
    for backend in ("torch-eager", *PYTHON_BACKENDS):
        bits = {value: attend(backend, value)["values"]["r"] for value in ("default", "math", "flash")}
        assert bits["default"] == bits["flash"], backend
        assert bits["math"] != bits["flash"], backend
        assert bits["math"].dtype == "bfloat16"


def test_a_kernel_that_a_cpu_does_not_have_is_raised_by_torch():
    answer = attend("torch-eager", "efficient")
    assert answer["outcome"]["kind"] == "raised" and "No viable backend" in answer["outcome"]["text"], answer


def has_bfloat16_kernels():
    import torch
    return torch.ops.mkldnn._is_mkldnn_bf16_supported()


def test_freezing_packs_the_weight_and_fuses_what_follows():
    tensors = {
        "x": normal("bfloat16", [32, 64], 1),
        "w": normal("bfloat16", [64, 64], 2),
        "b": normal("bfloat16", [64], 3)
    }
    steps = [step("linear", "x", "w", "b", name="h"), step("gelu", "h", name="g"), step("add", "g", "x", name="r")]
    found = {}
    for value in ("false", "true"):
        with start("torch-inductor", knobs={"freezing": value}) as worker:
            found[value] = worker.run(tensors, steps, ["r"])
            assert found[value]["outcome"]["kind"] == "completed", found[value]
            assert found[value]["knobs"]["freezing"] == value
            if value == "true":
                training = worker.run(tensors, steps, ["r"], requires_grad=("w", ))
    assert "freezing: held as parameters: w, b" in found["true"]["notes"], found["true"]["notes"]
    if has_bfloat16_kernels():
        assert found["true"]["values"]["r"] != found["false"]["values"]["r"]
        assert any("mkldnn" in note for note in found["true"]["notes"]), found["true"]["notes"]
    else:
        print("     (oneDNN has no bfloat16 kernels on this processor: a weight is held, and not packed)")
    # With gradients there is nothing to freeze, and the answer has a note of it.
    assert training["values"]["r"] == found["false"]["values"]["r"]
    assert any("is not frozen" in note for note in training["notes"]), training["notes"]


def test_a_knob_that_cannot_act_is_refused_with_the_reason():
    refusals = (("torch-eager", "reduced_precision_reduction", "on", "torch-eager@cuda"),
                ("torch-inductor", "reduced_precision_reduction", "off", "torch-eager@cuda"),
                ("torch-eager", "freezing", "true", "torch-inductor"),
                ("torch-aot-eager", "max_autotune", "true", "torch-inductor"),
                ("torch-aoti", "freezing", "true", "weights as inputs"))
    for backend, knob, value, reason in refusals:
        with adapter(backend, knobs={knob: value}, stay_on_error=True) as worker:
            assert knob in worker.hello["error"] and reason in worker.hello["error"], (backend, worker.hello["error"])


def maps(worker):
    with open(f"/proc/{worker.process.pid}/maps") as file:
        return file.read()


def test_a_missing_cuda_device_is_said_before_torch_is_loaded():
    if os.path.exists("/proc/driver/nvidia"):
        print("     (there is a driver here: nothing to refuse)")
        return
    for backend in ("torch-eager", "torch-traced", *PYTHON_BACKENDS):
        with adapter(backend, device="cuda", stay_on_error=True) as worker:
            assert worker.hello["error"].startswith("no CUDA device"), worker.hello["error"]
            assert backend not in PYTHON_BACKENDS or "libtorch" not in maps(worker), backend
    with adapter("torch-aot-eager") as worker:
        assert "libtorch" in maps(worker), "this is how it shows"


if __name__ == "__main__":
    if not os.path.exists(BINARY):
        sys.exit(f"{BINARY} is not built")
    main(globals())
