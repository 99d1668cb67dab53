"""ATen ops by their schema, over the torch family: of several results the first has the name; without one, a reason."""

import os
import sys

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
            # What follows takes the named result, and without its overload the op is found by its arguments.
            steps = [step("aten::max", "x", name="m", dim=1), step("neg", "m", name="r")]
            answer = worker.run({"x": x}, steps, ["r"])
            assert answer["outcome"]["kind"] == "completed", (backend, answer["outcome"])
            assert values(answer["values"]["r"]) == [-max(row) for row in rows], backend


def test_an_op_without_a_tensor_to_name_is_refused_with_the_reason():
    for backend in BACKENDS:
        with adapter(backend) as worker:
            for op in ("aten::unbind.int", "aten::dim"):
                answer = worker.run({"x": normal("float32", [3, 4], 1)}, [step(op, "x", name="r")], ["r"])
                outcome = answer["outcome"]
                assert (outcome["kind"], outcome["text"]) == (
                    "unsupported", f"op '{op}' gives no tensor to name 'r'"), (backend, outcome)


if __name__ == "__main__":
    if not os.path.exists(BINARY):
        sys.exit(f"{BINARY} is not built")
    main(globals())
