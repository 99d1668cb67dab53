#!/usr/bin/env python3
"""The cuBLAS adapter: without a device, and on stand-ins for CUDA's libraries that compute on the host.

usage: test_cublas.py [FOLDER_OF_BINARIES]   (default build/release/bin)

The stand-ins (fake_cuda/) know cuBLAS's rules (column-major, leading dimensions, which dtypes go together) and nothing of the
adapter; they write down every call. So shapes, transposes, batches, compute types and error statuses are checked without a GPU;
what a GPU computes is not."""

import atexit
import glob
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

from worker import Adapter, Tensor, bfloat16, step, values

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BIN = os.path.join(ROOT, "build/release/bin")
if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]):
    BIN = sys.argv.pop(1)
BINARY = os.path.join(BIN, "ulpscope-cublas")
SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_cuda")
TYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 14, "float8_e4m3fn": 28, "float8_e5m2": 29}
LIBRARIES = {"libcuda.so.1": "runtime", "libcudart.so.13": "runtime", "libcublas.so.13": "blas", "libcublasLt.so.13": "lt"}


def build(folder):
    """All stand-ins, and a libcublas that lacks its main function."""
    compiler = os.environ.get("CXX", "g++")
    jobs = [(source, source, []) for source in ("runtime", "blas", "lt")]
    jobs.append(("blas", "old", ["-DFAKE_WITHOUT_GEMM_EX"]))
    running = []
    for source, name, flags in jobs:
        command = [compiler, "-std=c++20", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", "-I", ROOT, *flags]
        command += [os.path.join(SOURCES, source + ".cc"), "-o", os.path.join(folder, name + ".so")]
        running.append(subprocess.Popen(command))
    assert all(process.wait() == 0 for process in running)


BUILT = tempfile.mkdtemp(prefix="ulpscope-fake-cuda-")
atexit.register(shutil.rmtree, BUILT)
build(BUILT)


class Stage:
    """A folder of stand-ins and an adapter that finds them; `without` leaves libraries out."""

    def __init__(self, backend="cublas", knobs=None, without=(), old=False, device="cuda", **environment):
        self.folder = tempfile.TemporaryDirectory(prefix="ulpscope-cuda-")
        self.log = os.path.join(self.folder.name, "calls")
        for library, source in LIBRARIES.items():
            name = "old" if old and source == "blas" else source
            if library not in without:
                os.symlink(os.path.join(BUILT, name + ".so"), os.path.join(self.folder.name, library))
        self.adapter = Adapter([BINARY, "--library-path", self.folder.name], backend, knobs=knobs, device=device,
                               env={"FAKE_CUDA_LOG": self.log, **environment}, stay_on_error=True)
        self.knobs = knobs or {}
        self.error = self.adapter.hello["error"]

    def run(self, tensors, steps, observe):
        return self.adapter.run(tensors, steps, observe, knobs=self.knobs)

    def calls(self):
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def products(self):
        return [call for call in self.calls() if "size" in call]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.adapter.__exit__()
        self.exit_calls = self.calls()
        self.folder.cleanup()


def e4m3(value):
    """The byte of a small integer (up to 16, exact)."""
    if value == 0:
        return 0
    exponent = abs(value).bit_length() - 1
    return (128 if value < 0 else 0) | (exponent + 7) << 3 | (abs(value) << 3 >> exponent) & 7


def tensor(dtype, shape, numbers):
    if dtype == "bfloat16":
        data = struct.pack(f"<{len(numbers)}H", *map(bfloat16, numbers))
    elif dtype == "float8_e4m3fn":
        data = bytes(map(e4m3, numbers))
    else:
        data = struct.pack(f"<{len(numbers)}{ {'float64': 'd', 'float32': 'f', 'float16': 'e'}[dtype] }", *numbers)
    return Tensor(dtype, tuple(shape), data)


def product(x, y, m, k, n):
    return [sum(x[i * k + t] * y[t * n + j] for t in range(k)) for i in range(m) for j in range(n)]


def small(count, modulus=5):
    return [i * 3 % modulus - modulus // 2 for i in range(count)]


@unittest.skipUnless(os.path.exists(BINARY), f"{BINARY} is not built")
class WithoutADevice(unittest.TestCase):
    @unittest.skipIf(glob.glob("/dev/nvidia[0-9]*"), "this machine has a GPU")
    def test_a_missing_device_is_an_answer(self):
        for backend in ("cublas", "cublaslt"):
            with Adapter([BINARY], backend, device="cuda", stay_on_error=True) as adapter:
                self.assertIn("no CUDA device", adapter.hello["error"])
                self.assertEqual(adapter.run({}, [], [])["outcome"]["kind"], "unsupported")

    def test_each_missing_thing_is_named(self):
        checked = 0
        for options, words in (
            ({"FAKE_CUDA_DEVICES": "0"}, ["no CUDA device", "counts none"]),
            ({"FAKE_CUDA_DEVICES": "-1"}, ["no CUDA device", "driver version is insufficient"]),
            ({"FAKE_CUDA_INIT": "100"}, ["no CUDA device", "cuInit gave error 100"]),
            ({"without": ["libcudart.so.13"]}, ["no CUDA runtime", "libcudart.so"]),
            ({"without": ["libcublasLt.so.13"]}, ["no cuBLASLt", "libcublasLt.so"]),
            ({"without": ["libcublas.so.13"]}, ["no cuBLAS", "libcublas.so"]),
            ({"old": True}, ["libcublas.so.13 has no function cublasGemmEx"]),
            ({"FAKE_CUBLAS_CREATE": "1"}, ["cublasCreate: NOT_INITIALIZED (1)"]),
            ({"device": "cpu"}, ["runs on cuda, not on 'cpu'"]),
            ({"device": "cuda:3"}, ["no CUDA device 3 of 1"]),
        ):
            if any(glob.glob(f"/usr/local/cuda/lib64/{name}") for name in options.get("without", ())):
                continue  # this machine has the real one, and the adapter finds it
            with Stage(**options) as stage:
                for word in words:
                    self.assertIn(word, stage.error)
                    checked += 1
        self.assertGreaterEqual(checked, 10)


@unittest.skipUnless(os.path.exists(BINARY), f"{BINARY} is not built")
class Products(unittest.TestCase):
    def completed(self, stage, *arguments):
        self.assertEqual(stage.error, "")
        answer = stage.run(*arguments)
        self.assertEqual(answer["outcome"]["kind"], "completed", answer["outcome"])
        return answer

    def test_shapes_follow_pytorch_with_no_copy(self):
        for backend in ("cublas", "cublaslt"):
            with Stage(backend) as stage:
                self.assertEqual(stage.adapter.hello["versions"]["device"], "Stand-in 0 sm_90")
                self.assertEqual(stage.adapter.hello["versions"][backend], "13.1.1")
                for a, b, want, batch in (([3], [3], (), 1), ([2, 3], [3], (2,), 1), ([3], [3, 4], (4,), 1),
                                          ([2, 3], [3, 5], (2, 5), 1), ([6, 2, 3], [6, 3, 5], (6, 2, 5), 6)):
                    m, k, n = (a[-2] if len(a) > 1 else 1), a[-1], (b[-1] if len(b) > 1 else 1)
                    x, y = small(batch * m * k, 7), small(batch * k * n)
                    tensors = {"a": tensor("float32", a, x), "b": tensor("float32", b, y)}
                    answer = self.completed(stage, tensors, [step("matmul", "a", "b", name="c")], ["c"])
                    self.assertEqual(answer["values"]["c"].shape, want)
                    exact = sum((product(x[i * m * k:], y[i * k * n:], m, k, n) for i in range(batch)), [])
                    self.assertEqual(values(answer["values"]["c"]), exact)
                    call = stage.products()[-1]
                    # Row-major C is column-major C^T = B^T A^T: b comes first, nothing is transposed.
                    self.assertEqual((call["op"], call["size"], call["ld"], call["batch"]), ([0, 0], [n, m, k], [n, k, n], batch))
                    if batch > 1:
                        self.assertEqual(call["stride"], [k * n, m * k, m * n])
                self.assertEqual(len(stage.products()), 5)
            self.assertEqual(stage.exit_calls[-1], {"leaked": 0})

    def test_linear_alpha_beta_and_empty_products(self):
        tensors = {
            "x": tensor("float64", [2, 3], [1, 2, 3, 4, 5, 6]),
            "w": tensor("float64", [2, 3], [1, 0, 0, 0, 1, -1]),
            "bias": tensor("float64", [2], [10, 20]),
            "c": tensor("float64", [1, 2, 2], [1, 1, 1, 1]),
            "p": tensor("float64", [2, 2, 1], [1, 2, 3, 4]),
            "q": tensor("float64", [2, 1, 2], [1, 2, 3, 4]),
            "none": tensor("float64", [0, 3], []),
        }
        for backend in ("cublas", "cublaslt"):
            with Stage(backend) as stage:
                answer = self.completed(stage, tensors, [
                    step("linear", "x", "w", "bias", name="l"),
                    step("baddbmm", "c", "p", "q", name="b", alpha=2, beta=-1),
                    step("linear", "none", "w", name="e")], ["l", "b", "e"])
                self.assertEqual(values(answer["values"]["l"]), [11, 19, 14, 19])
                self.assertEqual(values(answer["values"]["b"]), [1, 3, 3, 7, 17, 23, 23, 31])
                self.assertEqual(answer["values"]["e"].shape, (0, 2))
                linear, batched = stage.products()
                # The weight is read along its rows; cuBLASLt adds the bias itself, cuBLAS gets it as C.
                self.assertEqual((linear["op"], linear["ld"], linear["bias"]), ([1, 0], [3, 3, 2], int(backend == "cublaslt")))
                self.assertEqual(batched["batch"], 2)

    def test_dtypes_and_compute_types_as_cublas_has_them(self):
        # 1 + 2^-9 is a float32; rounded to 11 bits it stays, to 8 bits it is 1. 2^-11 + 1 in float16 sums is 1.
        x = {"float32": [1 + 2.0**-9] * 4, "float64": [1 + 2.0**-40] * 4, "float16": [1.0, 2.0**-11, 0, 0], "bfloat16": [1.0, 2.0**-11, 0, 0]}
        one = [1.0, 1.0, 1.0, 1.0]
        for word, dtype, out, number, want in (
            ("default", "float32", "float32", 68, 4 + 2.0**-7), ("default", "float64", "float64", 70, 4 + 2.0**-38),
            ("default", "bfloat16", "bfloat16", 68, 1.0), ("default", "bfloat16", "float32", 68, 1 + 2.0**-11),
            ("default", "float16", "float32", 68, 1 + 2.0**-11), ("32F", "float32", "float32", 68, 4 + 2.0**-7),
            ("32F_PEDANTIC", "float32", "float32", 69, 4 + 2.0**-7), ("32F_FAST_16F", "float32", "float32", 74, 4 + 2.0**-7),
            ("32F_FAST_16BF", "float32", "float32", 75, 4.0), ("32F_FAST_TF32", "float32", "float32", 77, 4 + 2.0**-7),
            ("32F_EMULATED_16BFX9", "float32", "float32", 78, 4 + 2.0**-7), ("16F", "float16", "float16", 64, 1.0),
            ("16F_PEDANTIC", "float16", "float16", 65, 1.0), ("64F", "float64", "float64", 70, 4 + 2.0**-38),
            ("64F_PEDANTIC", "float64", "float64", 71, 4 + 2.0**-38), ("64F", "float32", "float32", 70, None),
            ("16F", "bfloat16", "bfloat16", 64, None), ("32F_FAST_TF32", "bfloat16", "float32", 77, None)):
            for backend in ("cublas", "cublaslt"):
                with self.subTest(word=word, dtype=dtype, out=out, backend=backend), Stage(backend, {"cublas_compute_type": word}) as stage:
                    tensors = {"a": tensor(dtype, [1, 4], x[dtype]), "b": tensor(dtype, [4, 1], one)}
                    answer = stage.run(tensors, [step("mm", "a", "b", name="c", out_dtype=out)], ["c"])
                    if want is None:
                        self.assertEqual(answer["outcome"]["kind"], "unsupported")
                        for part in (f"{dtype} . {dtype} -> {out}, {word}", "NOT_SUPPORTED (15)"):
                            self.assertIn(part, answer["outcome"]["text"])
                        continue
                    self.assertEqual(answer["outcome"]["kind"], "completed", answer["outcome"])
                    self.assertEqual(values(answer["values"]["c"]), [want])
                    call = stage.products()[-1]
                    self.assertEqual((call["compute"], call["type"]), (number, [TYPES[dtype], TYPES[dtype], TYPES[out]]))
                    kernel = [node["op"] for node in answer["nodes"] if node["stage"] == "kernel"]
                    read_back = answer["knobs"]["cublas_compute_type"]
                    self.assertIn(f"{dtype} . {dtype} -> {out}, {read_back}", kernel[0])
                    self.assertEqual(read_back, word if word != "default" else {68: "32F", 70: "64F"}[number])

    def test_a_weight_gradient_is_accumulated_in_one_call(self):
        # Ones against 2^-9: a float32 accumulator keeps both, a bfloat16 temporary would not.
        tensors = {"main": tensor("float32", [2, 2], [2.0**-9] * 4), "dy": tensor("bfloat16", [2, 3], [1.0] * 6),
                   "x": tensor("bfloat16", [3, 2], [1, 1, 1, 1, 2.0**-9, 2.0**-9])}
        for backend in ("cublas", "cublaslt"):
            with Stage(backend) as stage:
                answer = self.completed(stage, tensors, [
                    step("addmm", "main", "dy", "x", out="main", name="fused"),
                    step("mm", "dy", "x", name="narrow")], ["fused", "narrow"])
                self.assertEqual(values(answer["values"]["fused"]), [2 + 2.0**-8] * 4)
                self.assertEqual(values(answer["values"]["narrow"]), [2.0] * 4)
                self.assertEqual((answer["casts"], answer["parts"]), ([], {}))
                self.assertEqual([call["type"] for call in stage.products()], [[14, 14, 0], [14, 14, 14]])

    def test_narrow_partial_sums_can_be_forbidden(self):
        # Each quarter of K sums to 1 + 2^-9, which bfloat16 cannot hold.
        k = 128
        row = ([1.0] + [2.0**-9] + [0.0] * (k // 4 - 2)) * 4
        tensors = {"a": tensor("bfloat16", [1, k], row), "b": tensor("bfloat16", [k, 1], [1.0] * k),
                   "c": tensor("bfloat16", [1, 1], [-4.0])}
        for backend in ("cublas", "cublaslt"):
            seen = {}
            for value in ("default", "on", "off"):
                with Stage(backend, {"reduced_precision_reduction": value}) as stage:
                    answer = self.completed(stage, tensors, [step("addmm", "c", "a", "b", name="d")], ["d"])
                    self.assertEqual(answer["knobs"]["reduced_precision_reduction"], "off" if value == "off" else "on")
                    seen[value] = (values(answer["values"]["d"])[0], stage.products()[-1]["narrow"])
            self.assertEqual(seen, {"default": (0.0, 1), "on": (0.0, 1), "off": (2.0**-7, 0)})
        with Stage("cublas", {"reduced_precision_reduction": "off"}, FAKE_CUBLAS_DEAF="1") as stage:
            self.assertIn("cuBLAS is in math mode 0", stage.error)

    def test_the_split_of_k_is_asked_for_and_read_from_the_algorithm(self):
        k = 128
        tensors = {"a": tensor("bfloat16", [2, k], small(2 * k)), "b": tensor("bfloat16", [k, 2], small(2 * k))}
        for knobs, parts, reduction, workspace in (
            ({}, 4, "output_type", 64), ({"cublaslt_workspace": "0"}, 1, "none", 0), ({"cublaslt_split_k": "2"}, 2, "compute_type", 32),
            ({"cublaslt_split_k": "1"}, 1, "none", 0), ({"cublaslt_split_k": "8", "cublaslt_reduction_scheme": "inplace"}, 8, "inplace", 128)):
            with Stage("cublaslt", knobs) as stage:
                answer = self.completed(stage, tensors, [step("mm", "a", "b", name="c", out_dtype="float32")], ["c"])
                found = [answer["knobs"]["cublaslt_" + name] for name in ("split_k", "reduction_scheme", "workspace")]
                self.assertEqual(found, [str(parts), reduction, str(workspace)], knobs)
                self.assertEqual(stage.products()[-1]["parts"], parts)
                kernel = next(node["op"] for node in answer["nodes"] if node["stage"] == "kernel")
                self.assertIn(f"algo 21 tile 5 stages 3 split_k {parts} reduction {reduction}", kernel)
                self.assertEqual(values(answer["values"]["c"]), product(small(2 * k), small(2 * k), 2, k, 2))
        for knobs in ({"cublaslt_split_k": "64"}, {"cublaslt_split_k": "4", "cublaslt_reduction_scheme": "none"}):
            with Stage("cublaslt", knobs) as stage:
                answer = stage.run(tensors, [step("mm", "a", "b", name="c")], ["c"])
                self.assertEqual(answer["outcome"]["kind"], "unsupported")
                self.assertIn("NOT_SUPPORTED", answer["outcome"]["text"])

    def test_what_several_products_ran_with_is_read_back_together(self):
        tensors = {"s": tensor("float32", [2, 2], [1, 2, 3, 4]), "d": tensor("float64", [2, 2], [1, 2, 3, 4]),
                   "long": tensor("float32", [128, 2], small(256))}
        steps = [step("mm", "s", "s", name="x"), step("mm", "d", "d", name="y"), step("t", "long", name="lt"),
                 step("mm", "lt", "long", name="z"), step("add", "x", "x", name="sum")]
        for backend in ("cublas", "cublaslt"):
            with Stage(backend) as stage:
                answer = self.completed(stage, tensors, steps, ["sum", "y", "z"])
                self.assertEqual(answer["knobs"]["cublas_compute_type"], "32F, 64F")
                if backend == "cublaslt":
                    self.assertEqual(answer["knobs"]["cublaslt_split_k"], "1, 4")
                again = self.completed(stage, tensors, steps[:1], ["x"])
                self.assertEqual(again["knobs"]["cublas_compute_type"], "32F")

    def test_float8_is_laid_out_along_k_and_has_its_own_accumulator(self):
        m = k = n = 16
        x, y = small(m * k), small(k * n, 7)
        tensors = {"a": tensor("float8_e4m3fn", [m, k], x), "b": tensor("float8_e4m3fn", [k, n], y),
                   "w": tensor("float8_e4m3fn", [n, k], [y[j * n + i] for i in range(n) for j in range(k)])}
        with Stage("cublaslt") as stage:
            answer = self.completed(stage, tensors, [step("mm", "a", "b", name="c", out_dtype="float32")], ["c"])
            self.assertEqual(values(answer["values"]["c"]), product(x, y, m, k, n))
            self.assertEqual((stage.products()[-1]["op"], stage.products()[-1]["type"]), ([1, 0], [28, 28, 0]))
            self.assertEqual(answer["notes"], ["mm: b laid out along K, as float8 kernels want it"])
            self.assertEqual((answer["knobs"]["cublaslt_fast_accum"], answer["casts"]), ("off", []))
            narrow = stage.run(tensors, [step("mm", "a", "b", name="c")], ["c"])
            self.assertEqual(narrow["outcome"]["kind"], "unsupported")
            self.assertIn("needs a scale", narrow["outcome"]["text"])
        with Stage("cublas") as stage:
            answer = stage.run(tensors, [step("mm", "a", "b", name="c", out_dtype="float32")], ["c"])
            self.assertEqual(answer["outcome"]["kind"], "unsupported")
        # 64 * 256 + 1 has fifteen bits: a float32 sum holds it, one of fourteen bits gives the tie to the even 16384.
        row = [16] * 64 + [1] + [0] * 15
        big = {"a": tensor("float8_e4m3fn", [16, 80], row * 16), "b": tensor("float8_e4m3fn", [80, 16], [16] * 1024 + [1] * 256)}
        for fast, want in (("off", 16385), ("on", 16384)):
            with Stage("cublaslt", {"cublaslt_fast_accum": fast}) as stage:
                answer = self.completed(stage, big, [step("mm", "a", "b", name="c", out_dtype="float32")], ["c"])
                self.assertEqual(answer["knobs"]["cublaslt_fast_accum"], fast)
                self.assertEqual(set(values(answer["values"]["c"])), {want})
        with Stage("cublaslt") as stage:
            odd = {"a": tensor("float8_e4m3fn", [2, 3], small(6)), "b": tensor("float8_e4m3fn", [3, 2], small(6))}
            answer = stage.run(odd, [step("mm", "a", "b", name="c", out_dtype="float32")], ["c"])
            self.assertIn("NOT_SUPPORTED (15)", answer["outcome"]["text"])

    def test_statuses_become_outcomes(self):
        tensors = {"a": tensor("float32", [2, 2], [1, 2, 3, 4])}
        steps = [step("mm", "a", "a", name="c")]
        for backend in ("cublas", "cublaslt"):
            for planted, kind, text in (("13", "raised", "EXECUTION_FAILED (13)"), ("7", "raised", "INVALID_VALUE (7)"),
                                        ("15", "unsupported", "NOT_SUPPORTED (15)"), ("8", "unsupported", "ARCH_MISMATCH (8)"),
                                        ("3", "out_of_memory", "ALLOC_FAILED (3)")):
                with Stage(backend, FAKE_CUBLAS_STATUS=planted) as stage:
                    outcome = stage.run(tensors, steps, ["c"])["outcome"]
                    self.assertEqual(outcome["kind"], kind)
                    self.assertIn(text, outcome["text"])
                self.assertEqual(stage.exit_calls[-1], {"leaked": 0})
            with Stage(backend, FAKE_CUDA_MEMORY="40") as stage:
                self.assertEqual(stage.run(tensors, steps, ["c"])["outcome"]["kind"], "out_of_memory")
            with Stage(backend, FAKE_CUDA_SYNC="700") as stage:
                outcome = stage.run(tensors, steps, ["c"])["outcome"]
                self.assertEqual((outcome["kind"], outcome["text"]), ("raised", "cudaDeviceSynchronize: some error (700)"))

    def test_unknown_knobs_and_values_are_errors(self):
        for backend, knobs in (("cublas", {"cublas_compute_type": "31F"}), ("cublas", {"cublaslt_split_k": "2"}), ("cublas", {"threads": "2"}),
                               ("cublas", {"reduced_precision_reduction": "maybe"}), ("cublaslt", {"cublaslt_split_k": "0"}),
                               ("cublaslt", {"cublaslt_reduction_scheme": "tree"}), ("cublaslt", {"cublaslt_workspace": "-1"}),
                               ("cublaslt", {"cublaslt_fast_accum": "yes"})):
            with Stage(backend, knobs) as stage:
                self.assertIn(next(iter(knobs)), stage.error)


if __name__ == "__main__":
    unittest.main()
