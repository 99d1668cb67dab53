"""ATen ops by their schema, over the torch family: a step names one of several results, the first by default."""

import os
import sys

import numpy

from worker import PYTHON, ROOT, Adapter, main, normal, start, step, values

BINARY = os.environ.get("ULPSCOPE_BIN_DIR", os.path.join(ROOT, "build", "release", "bin")) + "/ulpscope-torch"
COMPILER = os.path.join(ROOT, "backends", "torch_compile", "aoti_compiler.py")
BACKENDS = ("torch-eager", "torch-traced", "torch-aoti", "torch-aot-eager", "torch-inductor")


def adapter(backend):
    if backend in ("torch-aot-eager", "torch-inductor"):
        return start(backend)
    return Adapter([BINARY, PYTHON, COMPILER], backend)


def test_of_several_results_the_first_is_named():
    x = normal("float32", [6, 16], 1)
    rows = [values(x)[i:i + 16] for i in range(0, 96, 16)]
    for backend in BACKENDS:
        with adapter(backend) as worker:
            answer = worker.run({"x": x}, [step("aten::max.dim", "x", name="m", dim=1)], ["m"])
            assert answer["outcome"]["kind"] == "completed", (backend, answer["outcome"])
            assert values(answer["values"]["m"]) == [max(row) for row in rows], backend
            # The next step takes the named result; without its overload the op is found by its arguments.
            steps = [step("aten::max", "x", name="m", dim=1), step("neg", "m", name="r")]
            answer = worker.run({"x": x}, steps, ["r"])
            assert answer["outcome"]["kind"] == "completed", (backend, answer["outcome"])
            assert values(answer["values"]["r"]) == [-max(row) for row in rows], backend


def test_a_step_names_any_of_the_results():
    x = normal("float32", [6, 16], 1)
    rows = [values(x)[i:i + 16] for i in range(0, 96, 16)]
    order = [sorted(range(16), key=lambda i: -row[i]) for row in rows]
    wanted = {"best": [row[i] for row, places in zip(rows, order) for i in places[:2]],
              "places": [i for places in order for i in places[:2]],
              "where": [places[0] for places in order], "second": [each for row in rows for each in row[4:8]],
              "last": rows[5], "low": [min(row) for row in rows], "high": [max(row) for row in rows]}
    steps = [step("topk", "x", name="best", k=2), step("topk", "x", name="places", k=2, result=1),
             step("aten::max.dim", "x", name="where", dim=1, result=1), step("split", "x", name="second", split_size=4, dim=1, result=1),
             step("unbind", "x", name="last", result=5), step("aminmax", "x", name="low", dim=1),
             step("aminmax", "x", name="high", dim=1, result=1)]
    for backend in BACKENDS:
        with adapter(backend) as worker:
            answer = worker.run({"x": x}, steps, list(wanted))
            assert answer["outcome"]["kind"] == "completed", (backend, answer["outcome"])
            for name, expected in wanted.items():
                assert values(answer["values"][name]) == expected, (backend, name)
            # Beyond the last one there is none.
            for op, attrs in (("topk", {"k": 2, "result": 2}), ("unbind", {"result": 6})):
                outcome = worker.run({"x": x}, [step(op, "x", name="r", **attrs)], ["r"])["outcome"]
                assert outcome["kind"] != "completed", (backend, op)


def test_neighbours_that_name_results_of_one_op_call_it_once():
    x = normal("float32", [6, 16], 1)
    steps = [step("topk", "x", name="v", k=2), step("topk", "x", name="i", k=2, result=1), step("neg", "v", name="n"),
             step("topk", "x", name="again", k=2)]
    for backend in ("torch-eager", "torch-aot-eager"):
        with adapter(backend) as worker:
            answer = worker.run({"x": x}, steps, ["v", "i", "n", "again"], trace=True)
            called = [node for node in answer["nodes"] if node["op"].endswith("topk") and node["stage"] == ("dispatch" if backend == "torch-eager" else "dynamo")]
            assert len(called) == 2, (backend, [(node["stage"], node["op"]) for node in answer["nodes"]])


def test_public_functions_of_pytorch_run_as_they_stand():
    x = normal("float32", [6, 16], 1)
    for backend in ("torch-aot-eager", "torch-inductor"):
        with adapter(backend) as worker:
            steps = [step("torch.nn.functional.gelu", "x", name="g", approximate="tanh"), step("gelu", "x", name="own", approximate="tanh"),
                     step("torch.var_mean", "x", name="m", dim=1, result=1), step("var_mean", "x", name="mean", dim=1, result=1)]
            answer = worker.run({"x": x}, steps, ["g", "own", "m", "mean"])
            assert answer["outcome"]["kind"] == "completed", (backend, answer["outcome"])
            assert answer["values"]["g"].data == answer["values"]["own"].data
            assert answer["values"]["m"].data == answer["values"]["mean"].data
    with adapter("torch-eager") as worker:
        outcome = worker.run({"x": x}, [step("torch.nn.functional.gelu", "x", name="g")], ["g"])["outcome"]
        assert outcome["kind"] == "unsupported", outcome


def test_a_case_reaches_no_function_but_of_tensors():
    """Every public name below the four modules: what is given runs an op of tensors, and nothing that opens, loads or sets."""
    import torch
    sys.path[:0] = [os.path.join(ROOT, "backends", "python")]
    from ulpscope_adapter import Unsupported
    from ulpscope_torch import functions
    given, refused = set(), set()
    for module in ("torch", "torch.nn.functional", "torch.special", "torch.linalg", "torch.hub", "torch.utils", "torch.jit", "torch.nn", "os"):
        names = dir(eval(module, {"torch": torch, "os": os}))
        for name in names:
            try:
                functions.named(f"{module}.{name}")
                given.add(f"{module}.{name}")
            except Unsupported:
                refused.add(f"{module}.{name}")
    assert len(given) > 400 and len(refused) > 1000, (len(given), len(refused))
    for op in ("torch.matmul", "torch.topk", "torch.nn.functional.cross_entropy", "torch.special.expit", "torch.linalg.solve"):
        assert op in given, op
    outside = [op for op in given if op.rpartition(".")[0] not in ("torch", "torch.nn.functional", "torch.special", "torch.linalg")]
    assert not outside, outside
    words = ("load", "save", "file", "hub", "compile", "import", "set_", "manual_seed", "seed", "print", "path", "open", "exec", "eval",
             "backend", "deploy", "script", "fork", "process", "thread", "device", "generator", "storage", "rand", "dropout", "bernoulli")
    suspects = sorted(op for op in given if any(word in op.rpartition(".")[2] for word in words))
    assert suspects == SUSPECTS, suspects
    for op in ("torch.load", "torch.save", "torch.from_file", "torch.hub.load", "torch.jit.load", "torch.utils.cpp_extension", "os.system",
               "torch.ops.aten.mm", "torch.nn.functional.torch.load", "torch.__import__", "torch._C", "torch.relu_", "torch.Tensor"):
        assert op not in given, op
        try:
            functions.named(op)
            raise AssertionError(f"{op} is in reach")
        except Unsupported:
            pass
    print(f"{len(given)} functions in reach, {len(refused)} names refused")


# Names in reach that a word of the test's list meets: ops of tensors each.
SUSPECTS = [
    "torch.affine_grid_generator", "torch.cudnn_affine_grid_generator", "torch.miopen_batch_norm", "torch.miopen_convolution",
    "torch.miopen_convolution_add_relu", "torch.miopen_convolution_relu", "torch.miopen_convolution_transpose", "torch.miopen_ctc_loss",
    "torch.miopen_depthwise_convolution", "torch.nn.functional.huber_loss",
]


def test_the_overload_without_a_name_is_called_default():
    x = normal("float32", [4, 2], 1)
    for backend in BACKENDS:
        with adapter(backend) as worker:
            answer = worker.run({"x": x}, [step("aten::atleast_3d.default", "x", name="y"), step("neg", "y", name="r")], ["r"])
            assert answer["outcome"]["kind"] == "completed", (backend, answer["outcome"])
            assert (list(answer["values"]["r"].shape), values(answer["values"]["r"])) == ([4, 2, 1], [-each for each in values(x)]), backend


def test_an_attribute_may_be_called_index():
    """Whatever an attribute is called, it reaches the op: index= of a step is not the adapter's own."""
    x, row = normal("float32", [3, 4], 1), normal("float32", [4], 2)
    wanted = [*values(x)[:4], *values(row), *values(x)[8:]]
    for backend in BACKENDS:
        with adapter(backend) as worker:
            answer = worker.run({"x": x, "row": row}, [step("aten::select_scatter", "x", "row", name="y", dim=0, index=1), step("neg", "y", name="r")], ["r"])
            assert answer["outcome"]["kind"] == "completed", (backend, answer["outcome"])
            assert values(answer["values"]["r"]) == [-each for each in wanted], backend


def test_an_operand_behind_a_named_argument_is_not_taken_for_it():
    """diff(self, n, dim, prepend): with n and dim named the second operand is prepend."""
    x, first = normal("float32", [2, 5], 1), normal("float32", [2, 1], 2)
    single = numpy.float32
    wanted = []
    for i in range(2):
        row = [single(each) for each in (values(first)[i], *values(x)[5 * i:5 * i + 5])]
        once = [b - a for a, b in zip(row, row[1:])]
        wanted += [float(-(b - a)) for a, b in zip(once, once[1:])]
    steps = [step("aten::diff", "x", "first", name="y", n=2, dim=-1), step("neg", "y", name="r")]
    for backend in BACKENDS:
        with adapter(backend) as worker:
            answer = worker.run({"x": x, "first": first}, steps, ["r"])
            assert answer["outcome"]["kind"] == "completed", (backend, answer["outcome"])
            assert values(answer["values"]["r"]) == wanted, backend


def test_an_op_without_a_tensor_to_name_is_refused_with_the_reason():
    for backend in BACKENDS:
        with adapter(backend) as worker:
            for op in ("aten::dim", ):
                answer = worker.run({"x": normal("float32", [3, 4], 1)}, [step(op, "x", name="r")], ["r"])
                outcome = answer["outcome"]
                assert (outcome["kind"], outcome["text"]) == (
                    "unsupported", f"op '{op}' gives no tensor to name 'r'"), (backend, outcome)


if __name__ == "__main__":
    if not os.path.exists(BINARY):
        sys.exit(f"{BINARY} is not built")
    main(globals())
