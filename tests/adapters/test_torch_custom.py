"""torch-custom: the shipped example backend, a vendor's backend found by its entry point, unknown names."""

import os
import tempfile

from worker import count_bfloat16_valued, main, normal, start, step, warm

VENDOR = '''
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd

backend = aot_autograd(fw_compiler=lambda g, i: make_boxed_func(lambda *a: [2 * out for out in g(*a)]))
'''


def product(out=""):
    tensors = {"x": normal("bfloat16", [8, 16], 1), "y": normal("bfloat16", [16, 4], 2)}
    steps = [step("empty", name="buffer", shape=[8, 4], dtype="float32")] if out else []
    return tensors, steps + [step("matmul", "x", "y", out=out, name="product")]


def vendor_package(folder):
    """A package as pip would leave it: a module, and metadata that name its torch.compile backend."""
    info = os.path.join(folder, "vendor_compiler-1.0.dist-info")
    os.mkdir(info)
    files = {
        os.path.join(folder, "vendor_compiler.py"): VENDOR,
        os.path.join(info, "METADATA"): "Metadata-Version: 2.1\nName: vendor-compiler\nVersion: 1.0\n",
        os.path.join(info, "entry_points.txt"): "[torch_dynamo_backends]\nvendor = vendor_compiler:backend\n"
    }
    for path, text in files.items():
        with open(path, "w") as file:
            file.write(text)


def test_the_example_rounds_an_out_product_as_aot_eager_does_and_says_what_it_compiled():
    tensors, steps = product(out="buffer")
    answers = [warm(name).run(tensors, steps, ["product"]) for name in ("torch-custom", "torch-aot-eager")]
    values = [answer["values"]["product"] for answer in answers]
    assert values[0] == values[1] and count_bfloat16_valued(values[0]) == 8 * 4
    assert answers[0]["knobs"]["backend_name"] == "ulpscope_example"
    assert any(note.startswith("ulpscope_example: forward graph of") for note in answers[0]["notes"])
    assert [(c["from"], c["to"], c["stage"]) for c in answers[0]["casts"]] == \
        [("bfloat16", "float32", "aot_forward")]


def test_the_example_compiles_the_backward_graph_too():
    tensors = {"x": normal("float32", [4, 8], 1), "w": normal("float32", [6, 8], 2)}
    steps = [
        step("linear", "x", "w", name="y"),
        step("sum", "y", name="loss"),
        step("backward", "loss"),
    ]
    custom, aot = (warm(b).run(tensors, steps, ["w.grad"], requires_grad=("w", ))
                   for b in ("torch-custom", "torch-aot-eager"))
    assert custom["values"]["w.grad"] == aot["values"]["w.grad"]
    directions = [note.split()[1] for note in custom["notes"] if note.startswith("ulpscope_example:")]
    assert directions == ["forward", "backward"], custom["notes"]


def test_a_vendors_backend_is_taken_by_its_name_alone():
    with tempfile.TemporaryDirectory() as folder:
        vendor_package(folder)
        with start("torch-custom", knobs={"backend_name": "vendor"}, env={"PYTHONPATH": folder}) as adapter:
            tensors = {"x": normal("float32", [64], 1)}
            answer = adapter.run(tensors, [step("add", "x", 0.0, name="r")], ["r"])
            assert answer["outcome"]["kind"] == "completed", answer["outcome"]
            assert answer["knobs"]["backend_name"] == "vendor"
            doubled = adapter.run(tensors, [step("mul", "x", 1.0, name="r")], ["r"])["values"]["r"]
            plain = warm("torch-aot-eager").run(tensors, [step("mul", "x", 2.0, name="r")], ["r"])
            assert doubled == plain["values"]["r"]  # the vendor's compiler ran: it doubles everything


def test_an_unknown_name_is_refused_with_the_nearest():
    with start("torch-custom", knobs={"backend_name": "inducter"}, stay_on_error=True) as adapter:
        assert "did you mean inductor" in adapter.hello["error"], adapter.hello["error"]


def test_a_backend_whose_package_is_missing_is_unsupported():
    with start("torch-custom", knobs={"backend_name": "tvm"}) as adapter:
        answer = adapter.run({"x": normal("float32", [4], 1)}, [step("mul", "x", 2.0, name="r")], ["r"])
        assert answer["outcome"]["kind"] == "unsupported", answer["outcome"]
        assert "not installed" in answer["outcome"]["text"]


if __name__ == "__main__":
    main(globals())
