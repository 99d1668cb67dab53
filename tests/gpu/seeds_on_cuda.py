#!/usr/bin/env python3
"""The seeds' checks of CUDA, on a machine that has it: raises, autocast's table, memory, schedules, kernels under ops, a user's trace.

    python3 tests/gpu/seeds_on_cuda.py BUNDLE OUT

BUNDLE is what ci/gpu wrote (build/ulpscope-gpu.tar.gz), OUT a folder for results. Needs nothing but a PyTorch with CUDA; with cmake, ninja
and a compiler the LibTorch adapter is built as well, while the rest runs. Takes three minutes at most. Without a CUDA device it prints so
and exits 3. Otherwise the last line is "N passed, N failed".
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD_SECONDS, RUN_SECONDS = 100, 60
CASES = ("layer_norm_without_cuda or layer_norm_cuda or detached_cast or memory/constructed or as_posted_cuda or "
         "matmul_mixed_without or autocast/matmul_mixed")
counts = {"passed": 0, "failed": 0}


def check(what, holds, seen=""):
    counts["passed" if holds else "failed"] += 1
    print(f"{'ok    ' if holds else 'FAILED'}  {what}" + (f": {seen}" if seen != "" else ""), flush=True)


def export_trace(path):
    """A trace as the notebook records one: a schedule, a bfloat16 activation into float32 layer_norm and a product under autocast."""
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule
    x = torch.randn(4, 64, 256, device="cuda", dtype=torch.bfloat16)
    norm = torch.nn.LayerNorm(256, device="cuda")
    linear = torch.nn.Linear(256, 128, device="cuda")
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True,
                 schedule=schedule(wait=1, warmup=1, active=2, repeat=1), on_trace_ready=lambda each: each.export_chrome_trace(str(path))) as each:
        for _ in range(4):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                linear(norm(x))
            torch.cuda.synchronize()
            each.step()


def judge_trace(ulpscope, out):
    export_trace(out / "user_trace.json")
    told = subprocess.run([ulpscope, "trace", out / "user_trace.json"], capture_output=True, text=True)
    (out / "user_trace.txt").write_text(told.stdout + told.stderr)
    print(told.stdout + told.stderr)
    read = subprocess.run([ulpscope, "trace", out / "user_trace.json", "--json", "-"], capture_output=True, text=True)
    found = json.loads(read.stdout)["conversions"] if read.returncode == 0 else []
    check("a user's trace is read", told.returncode == 0, told.stderr[:200])
    widening = [each for each in found if (each["from"], each["to"]) == ("bfloat16", "float32")]
    check("layer_norm casts the activation up, once a step", [each["shape"] for each in widening] == [[4, 64, 256]] * 2, widening[:2])
    check("conversions have kernels and times on the device", found and all(each["kernels"] and each["kernel_us"] > 0 for each in found),
          [each["kernels"] for each in found][:2])


def run(ulpscope, out, name, backends, environment):
    ended = subprocess.run([ulpscope, "run", ROOT / "cases/seeds", "-k", CASES, "-b", backends, "-o", out / name, "-j", "2", "--schedule", "1,1,3",
                            "--trace-out", out / f"{name}.trace.json"], capture_output=True, text=True, timeout=RUN_SECONDS, env=environment)
    (out / f"{name}.txt").write_text(ended.stdout + ended.stderr)
    print(ended.stdout[-4000:], ended.stderr[-500:])
    report = out / name / "report.json"
    return json.loads(report.read_text())["results"] if report.is_file() else []


def judge_run(results, out, name, backends):
    by = {(each["id"].removeprefix("seeds/"), each["backend"]): each for each in results}

    def kind(case, backend):
        result = by.get((case, backend), {})
        return result.get("outcome", {}).get("kind", "absent") + " " + result.get("reason", "")[:80]

    for backend in backends:
        at = f"{backend}: "
        if "inductor" not in backend:
            check(at + "layer_norm of bfloat16 with float32 weight raises", kind("autocast/layer_norm_without_cuda", backend).startswith("raised"),
                  kind("autocast/layer_norm_without_cuda", backend))
        norm = by.get(("autocast/layer_norm_cuda", backend), {}).get("values", {}).get("result", {})
        check(at + "layer_norm under autocast gives float32", norm.get("dtype") == "float32", norm.get("dtype"))
        grad = by.get(("sum_loss/detached_cast", backend), {})
        check(at + "detach_ leaves a bfloat16 gradient", grad.get("values", {}).get("p.grad", {}).get("dtype") == "bfloat16",
              grad.get("observations"))
        peak = by.get(("memory/constructed", backend), {}).get("observations", {}).get("peak_bytes")
        check(at + "peak_bytes", isinstance(peak, int) and peak > 0, peak)
    trace = out / f"{name}.trace.json"
    events = json.loads(trace.read_text())["traceEvents"] if trace.is_file() else []
    processes = {each["pid"]: each["args"]["name"] for each in events if each["name"] == "process_name"}
    for backend in backends:
        kernels = {each["name"][:60] for each in events if each.get("cat") == "profile" and processes[each["pid"]].endswith(backend)
                   and re.search("kernel|gemm|cutlass|sm[0-9]{2}|triton_", each["name"])}
        check(f"{backend}: kernels under ops, by name", bool(kernels), sorted(kernels)[:3])


def main(bundle, out):
    try:
        import torch
    except ImportError:
        torch = None
    if torch is None or not torch.cuda.is_available():
        print("no CUDA device: nothing was run")
        return 3
    print(torch.__version__, torch.cuda.get_device_name(0), flush=True)
    began = time.monotonic()
    out = pathlib.Path(out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    home = pathlib.Path(tempfile.mkdtemp(prefix="seeds-on-cuda-"))
    with tarfile.open(bundle) as archive:
        archive.extractall(home)
    home = home / "ulpscope-gpu"
    ulpscope = home / "bin/ulpscope"
    environment = {**os.environ, "ULPSCOPE_ROOT": str(home), "ULPSCOPE_PYTHON": sys.executable, "PATH": f"{home / 'bin'}:{os.environ['PATH']}"}
    log = open(out / "build.txt", "w")
    builds = None
    if shutil.which("cmake") and shutil.which("ninja"):
        builds = subprocess.Popen(["timeout", str(BUILD_SECONDS), "bash", "-c",
                                   f"cmake -S . -B build -G Ninja -DPython3_EXECUTABLE={sys.executable} && cmake --build build"],
                                  cwd=home, stdout=log, stderr=subprocess.STDOUT)
    judge_trace(ulpscope, out)
    compiled = ["torch-aot-eager@cuda", "torch-inductor@cuda"]
    judge_run(run(ulpscope, out, "compiled", ",".join(compiled), environment), out, "compiled", compiled)
    if builds is not None and builds.wait() == 0:
        judge_run(run(ulpscope, out, "eager", "torch-eager@cuda", environment), out, "eager", ["torch-eager@cuda"])
    else:
        check("the LibTorch adapter is built", False, (out / "build.txt").read_text()[-300:])
    backend = "torch-eager@cuda" if (home / "bin/ulpscope-torch").exists() else "torch-aot-eager@cuda"
    told = subprocess.run([sys.executable, ROOT / "ci/autocast", "-b", backend, "-o", out / "autocast"], capture_output=True, text=True,
                          timeout=RUN_SECONDS, env=environment)
    (out / "autocast.txt").write_text(told.stdout + told.stderr)
    print(told.stdout, told.stderr[-500:])
    rows = {line.split()[0]: line for line in told.stdout.splitlines() if line[:1].isalpha()}
    check("autocast's table on CUDA", len(rows) >= 30 and "f32" in rows.get("layer_norm", "") and "bf16" in rows.get("matmul", ""), len(rows))
    # The returned folder has few files and no tensors.
    for each in ("compiled", "eager", "autocast"):
        if (out / each / "report.json").is_file():
            shutil.copy(out / each / "report.json", out / f"{each}.report.json")
        shutil.rmtree(out / each, ignore_errors=True)
    for each in [*out.glob("*.trace.json"), out / "compiled.txt", out / "eager.txt"]:
        each.unlink(missing_ok=True)
    print(f"{time.monotonic() - began:.0f} s")
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
