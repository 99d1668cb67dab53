"""The Python adapter SDK: files, canaries, checks, casts, cuts, the protocol loop; a planted fault for each."""

import ctypes
import json
import os
import struct
import sys
import tempfile

from worker import (PYTHON, ROOT, Adapter, Tensor, main, normal, read_safetensors, step, values,
                    write_safetensors)

from ulpscope_adapter import Request, TensorSpec, Unsupported, poison_bytes
from ulpscope_adapter.adapter import check_request, check_worker
from ulpscope_adapter.fpenv import fp_environment
from ulpscope_adapter.graph import Node, Trace
from ulpscope_adapter.request import parse_step
from ulpscope_adapter.serve import plain_text
from ulpscope_adapter.dtypes import DTYPES

EXAMPLE = [PYTHON, os.path.join(ROOT, "backends", "python", "example_numpy.py")]
WITH_SDK = {"PYTHONPATH": os.path.join(ROOT, "backends", "python")}


def raises(error, function, *arguments):
    try:
        function(*arguments)
    except error as found:
        return str(found)
    raise AssertionError(f"{error.__name__} was not raised")


def test_safetensors_round_trip_every_dtype():
    tensors = {name: Tensor(name, (2, 3), bytes(range(6 * row["bytes"]))) for name, row in DTYPES.items()}
    tensors.update(scalar=Tensor("float64", (), b"12345678"), nothing=Tensor("int8", (0, 4), b""))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t")
        write_safetensors(path, tensors)
        assert read_safetensors(path) == tensors and len(tensors) == len(DTYPES) + 2
        # An independent reader; it knows no bfloat16 or float8 without ml_dtypes.
        from safetensors.numpy import load_file
        plain = {name: t for name, t in tensors.items() if "float8" not in name and name != "bfloat16"}
        write_safetensors(path, plain)
        loaded = load_file(path)
        assert len(loaded) == len(plain) >= 11
        assert all(loaded[name].tobytes() == tensors[name].data for name in loaded)


def test_malformed_safetensors_are_refused():
    header = json.dumps({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    good = struct.pack("<Q", len(header)) + header + b"\0" * 8
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t")
        for bad in (b"", good[:4], struct.pack("<Q", 1 << 40) + header, good[:-1],
                    good.replace(b"[2]", b"[3]")):
            with open(path, "wb") as file:
                file.write(bad)
            raises(ValueError, read_safetensors, path)
    raises(ValueError, write_safetensors, os.devnull, {"a": Tensor("float32", (2,), b"1234")})


def test_poison_is_a_nan_in_every_format():
    assert poison_bytes("float32", 1) == bytes.fromhex("a5a5faff") and poison_bytes("float16",
                                                                                    2) == b"\xfa\xff" * 2
    assert poison_bytes("float64", 1) == bytes.fromhex("a5a5a5a5a5a5faff") and poison_bytes("float8_e5m2",
                                                                                            3) == b"\xff" * 3
    for dtype in ("float64", "float32", "float16"):
        (value,) = values(Tensor(dtype, (1,), poison_bytes(dtype, 1)))
        assert value != value


def test_canary_sees_flush_to_zero_and_a_rounding_mode():
    libm = ctypes.CDLL("libm.so.6")
    saved, changed = ctypes.create_string_buffer(64), ctypes.create_string_buffer(64)
    libm.fegetenv(saved)
    clean = fp_environment(1)
    assert clean == {"mxcsr": 0x1F80, "subnormals_kept": True, "threads": 1}, clean
    for bits, kept in ((0x8000, False), (0x0040, False), (0x6000, True)):
        ctypes.memmove(changed, saved, 64)
        struct.pack_into("<I", changed, 28, 0x1F80 | bits)
        libm.fesetenv(changed)
        try:
            found = fp_environment(1)
        finally:
            libm.fesetenv(saved)
        assert found["mxcsr"] == 0x1F80 | bits and found["subnormals_kept"] is kept, (hex(bits), found)
    assert fp_environment(1) == clean


def test_a_trace_numbers_its_nodes_and_points_its_casts_at_them():
    graph = [
        Node("x", "bfloat16", (4,)),
        Node("f", "float32", (4,), "fusion f", ("x",)),
        Node("p", "bfloat16", (4,), "parameter", ("x",), parent="f"),
        Node("c", "float32", (4,), "convert", ("p",), cast_of="p", parent="f", us=2.5),
        Node("both", "float32", (), "minmax", ("f",), more=(("float32", ()),), reads=(("int64", (2,)),)),
        Node("s", "", (), "store", ("both", "unknown"))
    ]
    trace = Trace()
    trace.add("jaxpr", graph[:1])
    trace.add("hlo", graph, "program")
    assert [node.id for node in trace.nodes] == list(range(8))
    _, root, x, fusion, parameter, convert, both, store = trace.nodes
    assert root.parent == -1 and {x.parent, fusion.parent, both.parent, store.parent} == {root.id}
    assert parameter.parent == convert.parent == fusion.id and x.op == "input"
    assert both.inputs == (("float32", (4,)), ("int64", (2,))) and both.outputs == (("float32", ()),) * 2
    assert store.sources == (both.id,) and store.outputs == ()
    (cast,) = trace.casts
    assert (cast.node, cast.under, cast.us, cast.stage) == (convert.id, "fusion f", 2.5, "hlo")


LARGE = """
from ulpscope_adapter import Adapter, Cast, Result, TraceNode, serve
class Large(Adapter):
    def capabilities(self):
        return {"name": "large", "backends": ["large"], "versions": {}, "dtypes": ["float32"],
                "ops": {"neg": []}}
    def run(self, request):
        nodes = [TraceNode(i, "dispatch", "op", parent=i - 1, sources=(i - 1,)) for i in range(20001)]
        casts = [Cast("float32", to, (2,), "op", "dispatch", node=i)
                 for i, to in ((0, "bfloat16"), (20000, "uint32"), (1, "token"))]
        return Result({"r": -request.tensors[0].numpy()}, nodes=nodes[::-1], casts=casts)
serve(Large())
"""


def test_a_trace_that_is_too_long_is_cut_and_says_so():
    with Adapter([PYTHON, "-c", LARGE], "large", env=WITH_SDK) as adapter:
        answer = adapter.run({"a": normal("float32", [3], 1)}, [step("neg", "a", name="r")], ["r"])
    ids = {node["id"] for node in answer["nodes"]}
    assert len(ids) == 20000 and any("20000 of 20001" in note for note in answer["notes"])
    assert all(node["parent"] in ids | {-1} and set(node["from"]) <= ids for node in answer["nodes"])
    assert all(cast["node"] in ids | {-1} for cast in answer["casts"])
    assert [cast["bytes"] for cast in answer["casts"]] == [4, 8, 0]


ODD = """
import numpy
from ulpscope_adapter import Adapter, Result, serve
class Odd(Adapter):
    def capabilities(self):
        return {"name": "odd", "backends": ["odd"], "versions": {}, "dtypes": ["float32"], "ops": {"neg": [], "exp": []}}
    def run(self, request):
        (step,) = request.steps
        value = request.tensors[0].numpy()
        if step.op == "neg":
            return Result({"r": value.astype(numpy.complex64)})
        return Result({"r": value}, notes=["half a pair: \\udcff", "\u2028"], durations_ms={"a": float("inf"), "b": 1.5})
serve(Odd())
"""


def test_a_result_that_cannot_be_carried_is_said_and_disturbs_nobody():
    with Adapter([PYTHON, "-c", ODD], "odd", env=WITH_SDK) as adapter:
        tensors = {"a": normal("float32", [3], 1)}
        answer = adapter.run(tensors, [step("neg", "a", name="r")], ["r"])
        assert answer["outcome"]["kind"] == "unsupported" and "complex64" in answer["outcome"]["text"], answer
        answer = adapter.run(tensors, [step("exp", "a", name="r")], ["r"])
    assert answer["outcome"]["kind"] == "completed", answer
    assert answer["notes"] == ["half a pair: \ufffd", "\u2028"], answer["notes"]
    assert answer["durations_ms"].keys() == {"b", "run"}, answer["durations_ms"]


def request(steps, observe, dtype="float32"):
    return Request(id=1, case="", seed=0, trace=False, tensors=[TensorSpec("a", normal(dtype, [2], 1))],
                   steps=[parse_step(s) for s in steps], observe=observe, knobs={}, poison=True)


TABLE = {
    "backends": ["b"],
    "devices": ["cpu"],
    "knobs": {
        "threads": ["1", "N"]
    },
    "dtypes": ["float32"],
    "scopes": ["no_grad"],
    "capabilities": [],
    "observations": ["grad"],
    "reasons": {
        "out": "no buffers here"
    },
    "ops": {
        "exp": [],
        "cast": ["dtype"]
    }
}


def test_requests_beyond_the_capabilities_are_named():
    check_request(TABLE, request([step("no_grad", steps=[step("exp", "a", name="r")])], ["r", "a.grad"]))
    for steps, observe, dtype, word in (([step("log", "a", name="r")], ["r"], "float32",
                                         "op log"), ([step("exp", "a", name="r",
                                                           fast=True)], ["r"], "float32", "exp fast="),
                                        ([step("exp", "a", out="a",
                                               name="r")], ["r"], "float32", "no buffers here"),
                                        ([step("autocast", steps=[])], ["a"], "float32", "scope autocast"),
                                        ([step("no_grad", steps=[step("log", "a",
                                                                      name="r")])], ["a"], "float32",
                                         "op log"), ([step("cast", "a", name="r",
                                                           dtype="float16")], ["r"], "float32",
                                                     "dtype=float16"), ([step("exp", "b",
                                                                              name="r")], ["r"], "float32",
                                                                        "operand b"), ([], ["z"], "float32",
                                                                                       "observation z"),
                                        ([], ["a.norm"], "float32",
                                         "observation a.norm"), ([], ["a"], "float64", "tensor a: float64")):
        text = raises(Unsupported, check_request, TABLE, request(steps, observe, dtype))
        assert word in text, (word, text)


def test_workers_beyond_the_capabilities_are_named():
    check_worker(TABLE, "b", "cpu", {"threads": "16"})
    for arguments, word in ((("c", "cpu", {}), "backend c"), (("b", "cuda", {}), "device cuda"),
                            (("b", "cpu", {
                                "mkldnn": "on"
                            }), "knob mkldnn"), (("b", "cpu", {
                                "threads": "0"
                            }), "threads=0")):
        text = raises(Unsupported, check_worker, TABLE, *arguments)
        assert word in text, (word, text)


def test_texts_hold_no_absolute_paths():
    assert plain_text('File "/opt/venv/lib/x.py", line 3') == 'File "x.py", line 3'
    assert plain_text("1/2 and https://host/a/b and n/a") == "1/2 and https://host/a/b and n/a"
    assert len(plain_text("x" * 9999)) == 4096


def test_the_example_is_a_complete_adapter():
    tensors = {
        "x": normal("bfloat16", [4, 8], 1),
        "y": normal("bfloat16", [8, 4], 2),
        "b": normal("float32", [4, 4], 3)
    }
    steps = [
        step("matmul", "x", "y", name="p"),
        step("add", "p", "b", name="s"),
        step("cast", "s", name="r", dtype="bfloat16")
    ]
    with Adapter(EXAMPLE, "numpy", env=WITH_SDK) as adapter:
        assert adapter.hello["ops"] == ["add", "cast", "matmul"] and adapter.hello["protocol"] == 1
        first, second = adapter.run(tensors, steps,
                                    ["p", "s", "r"]), adapter.run(tensors, steps, ["p", "s", "r"])
        assert first["values"] == second["values"] and first["values"]["r"].dtype == "bfloat16"
        answer = adapter.run({"x": tensors["x"]}, [step("matmul", "x", "x", name="p")], ["p"])
        assert answer["outcome"]["kind"] == "raised" and answer["outcome"]["class"] == "ValueError", answer[
            "outcome"]
        assert adapter.run(tensors, [step("exp", "x", name="p")], ["p"])["outcome"] == \
            {"kind": "unsupported", "class": "", "text": "op exp: exp is not served"}
    assert adapter.exit_code == 0
    with open(EXAMPLE[1]) as file:
        assert len(file.read().splitlines()) <= 45


NOISY = """
import os, sys
print("noise before the first message"); os.write(1, b"\\xff\\x00 raw noise\\n"); os.write(2, b"more\\n")
from ulpscope_adapter import Adapter, Result, serve
class Noisy(Adapter):
    def capabilities(self):
        print('{"verb": "bye"}', flush=True)
        return {"name": "noisy", "backends": ["noisy"], "versions": {}, "dtypes": ["float32"], "ops": {"neg": []}}
    def run(self, request):
        print("x" * 1000000, flush=True)
        if request.steps[0].of[0] == "oom":
            raise MemoryError("not enough")
        import subprocess
        inherited = subprocess.run(["ls", "/proc/self/fd"], capture_output=True, text=True).stdout.split()
        assert "ULPSCOPE_FD" not in os.environ and len(inherited) <= 4, inherited
        return Result({"r": -request.tensors[0].numpy()}, notes=["fine"])
serve(Noisy())
"""


def test_noise_on_stdout_does_not_reach_the_protocol():
    with Adapter([PYTHON, "-c", NOISY], "noisy", env=WITH_SDK) as adapter:
        answer = adapter.run({"a": normal("float32", [3], 1)}, [step("neg", "a", name="r")], ["r"])
        assert answer["outcome"]["kind"] == "completed" and answer["notes"] == ["fine"], (answer,
                                                                                          adapter.said("stderr"))
        assert "noise before" in adapter.said("stdout") and len(adapter.said("stdout")) > 1000000
        answer = adapter.run({"oom": normal("float32", [3], 1)}, [step("neg", "oom", name="r")], ["r"])
        assert answer["outcome"]["kind"] == "out_of_memory"
    assert adapter.exit_code == 0


def test_a_refused_hello_refuses_runs_and_a_vanished_harness_ends_the_adapter():
    with Adapter(EXAMPLE, "other", env=WITH_SDK, stay_on_error=True) as adapter:
        assert "backend other" in adapter.hello["error"]
        answer = adapter.run({"x": normal("float32", [1], 1)}, [], ["x"])
        assert answer["outcome"]["kind"] == "unsupported"
        adapter.link.close()
        adapter.lines.close()
        assert adapter.process.wait(timeout=30) == 0


def test_cutting_a_program():
    sys.path.insert(0, os.path.join(ROOT, "backends", "torch_compile"))
    from ulpscope_torch import regions
    names = {
        "c": step("set_data", "w", to={"cast": "bfloat16"}),
        "k": step("clone", "w", name="v"),
        "f": step("linear", "x", "w", name="o"),
        "b": step("backward", "o"),
        "e": step("empty", name="buffer"),
        "s": step("sync"),
        "a": step("autocast", steps=[step("linear", "x", "w", name="o"),
                                     step("backward", "o")])
    }
    for program, expected in (("f", "C1"), ("cfb", "E1 C1 E1"), ("fcb", "C1 E2"), ("cfcb", "E1 C1 E2"),
                              ("kcfb", "E2 C1 E1"), ("kfb", "C2 E1"), ("fbfb", "C1 E1 C1 E1"), ("efsf", "C2"),
                              ("ca", "E1 C1 E1"), ("c", "E1")):
        placed, empties = regions.flatten([parse_step(names[letter]) for letter in program])
        parts = regions.cut(placed)
        found = " ".join(f"{part.kind[0].upper()}{len(part.placed)}" for part in parts)
        assert found == expected, (program, found, expected)
        assert len(empties) == program.count("e")
    independent = [
        step("linear", "x", "w", name="o"),
        step("exp", "x", name="e"),
        step("exp", "o", name="p"),
        step("backward", "p")
    ]
    for last, expected in ((step("backward", "e"), [2, 1, 2]), (step("backward",
                                                                     "o"), [3, 2]), (step("sync"), [3, 1])):
        placed, _ = regions.flatten([parse_step(s) for s in [*independent, last]])
        assert [len(part.placed) for part in regions.cut(placed)] == expected
    placed, _ = regions.flatten([parse_step(names[letter]) for letter in "kcfb"])
    parts = regions.cut(placed)
    assert regions.interface(parts[1], parts[2:], ["w.grad"]) == (["x", "w"], ["o"])


if __name__ == "__main__":
    main(globals())
