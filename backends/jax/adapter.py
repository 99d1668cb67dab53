"""The JAX backends: jax (the whole program under one jit) and jax-eager (op by op). They round differently.

Under jit XLA sees the whole program and may keep more precision than the program states (`(a @ b).astype(float32)` of bfloat16 is not
rounded to bfloat16 in between); op by op every result is stored in its dtype.
"""

import glob
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

from ulpscope_adapter import Adapter, Result, Trace, cuda, serve, words, xla  # noqa: E402
from ulpscope_adapter.knobs import offered, reasons  # noqa: E402

# knob -> (its name in jax.config, a word of the knob as JAX takes it, what JAX holds as such a word)
_CONFIG = {
    "jax_enable_x64": ("jax_enable_x64", lambda word: word == "true", lambda held: str(held).lower()),
    "jax_matmul_precision": ("jax_default_matmul_precision", lambda word: None if word == "default" else word,
                             lambda held: str(held or "default")),
    "jax_numpy_dtype_promotion": ("jax_numpy_dtype_promotion", str, str)
}
# JAX keeps all that it has compiled, about 1 MiB an op and shape: after so much growth it forgets, or a long suite has no end of it.
_MAY_GROW_BYTES = 512 << 20
_NO_OUT = "JAX has no out= (the cases with preferred_element_type ask JAX the same question)"


class Jax(Adapter):
    """One worker serves one of the two backends."""
    def configure(self, backend, device, knobs):
        self._backend = backend
        self._knobs = knobs
        self._resident = 0  # bytes, when JAX last forgot
        self._traced = {}  # of jax-eager: what make_jaxpr gave, by program, dtypes and shapes
        self._device = device
        xla.set_before_import(knobs)
        kind, _, index = device.partition(":")
        os.environ["JAX_PLATFORMS"] = "cpu"  # also where the device is none of JAX's: that is said after hello
        if kind == "cuda":
            os.environ["JAX_PLATFORMS"] = kind
            cuda.require_device(device)
            os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the device is other adapters' too
            os.environ["CUDA_VISIBLE_DEVICES"] = index or "0"
        os.environ["JAX_TRACEBACK_FILTERING"] = "off"  # else errors get a made-up cause

    def capabilities(self):
        import jax
        import jaxlib
        import numpy
        import ops
        return {
            "name": "jax",
            "backends": ["jax", "jax-eager"],
            "versions": {
                "jax": jax.__version__,
                "jaxlib": jaxlib.__version__,
                "numpy": numpy.__version__
            },
            "devices": ["cpu", self._device if self._device.startswith("cuda") else "cuda"],
            "knobs": offered(self._backend, self._device),
            "ops": {
                name: words.attributes(name, without=("out_dtype",))
                for name in (*ops.OPS, "set_data", "detach_", "backward", "sync")
            },
            "dtypes": list(ops.DTYPES),
            "scopes": ["no_grad", "enable_grad"],
            "capabilities": ["autograd"],
            "observations": ["grad", "grad_metadata_dtype", *["peak_bytes"] * (self._backend == "jax")],
            "reasons": {
                **reasons(self._backend, self._device),
                "out": _NO_OUT,
                "empty": "JAX has no uninitialised arrays; " + _NO_OUT,
                "out_dtype": "out_dtype is PyTorch's; JAX has preferred_element_type",
                "autocast": "JAX has no autocast",
                "strides": "JAX arrays have no strides",
                "module_to": "JAX has no modules",
                "peak_bytes": "only an executable says what it takes (the backend jax)"
            }
        }

    def start(self):
        import jax
        taken = offered(self._backend, self._device)
        for knob, (name, to_jax, _) in _CONFIG.items():
            jax.config.update(name, to_jax(self._knobs.get(knob, taken[knob][0])))
        jax.devices()

    def run(self, request):
        import jax.numpy as jnp
        from program import Program
        program = Program(request)
        inputs = {spec.name: jnp.asarray(spec.numpy()) for spec in request.tensors}
        result = Result(values={}, notes=program.notes())
        self._observe = request.observe
        self._forget()
        carry_out = self._jit if self._backend == "jax" else self._op_by_op
        values = carry_out(program, inputs, request.trace, result)
        for name in request.observe:
            if name == "peak_bytes":  # _jit has answered it
                continue
            if name.endswith(".grad_metadata_dtype"):
                result.observations[name] = "none"  # an engine's book-keeping; JAX has no such engine
            else:
                result.values[name] = values[name]
                result.parts[name] = "backward" if name.endswith(".grad") else self._part()
        return result

    def _forget(self):
        import jax
        with open("/proc/self/statm") as file:
            resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        self._resident = self._resident or resident
        if resident - self._resident > _MAY_GROW_BYTES:
            jax.clear_caches()
            self._resident = resident

    def read_back(self):
        import jax
        return {
            "threads": str(self.threads()),
            **{knob: to_word(getattr(jax.config, name)) for knob, (name, _, to_word) in _CONFIG.items()}
        }

    def threads(self):
        """The threads of XLA's pool, counted by their names."""
        def name(path):
            try:
                with open(path) as file:
                    return file.read().strip()
            except OSError:  # a thread that has just ended
                return ""

        return sum(name(path) == "tf_XLAEigen" for path in glob.glob("/proc/self/task/*/comm"))

    def _part(self):
        return "compiled" if self._backend == "jax" else "eager"

    def _jit(self, program, inputs, trace, result):
        import jax
        import evidence
        from ulpscope_adapter import hlo
        begin = time.perf_counter()
        traced = jax.jit(program).trace(inputs)
        lowered = traced.lower()
        excess = self._knobs.get("xla_allow_excess_precision", "true") == "true"
        compiled = lowered.compile(compiler_options={"xla_allow_excess_precision": excess})
        ready = time.perf_counter()
        values = jax.block_until_ready(compiled(inputs))
        result.durations_ms = {
            "compile": (ready - begin) * 1e3,
            "execute": (time.perf_counter() - ready) * 1e3
        }
        if "peak_bytes" in self._observe:
            memory = compiled.memory_analysis()
            planned = memory.temp_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes
            result.observations["peak_bytes"] = planned
            result.notes.append("peak_bytes: temporaries and results of the executable, as XLA has planned them")
        if trace:
            found = Trace()
            found.add("jaxpr", evidence.jaxpr_nodes(traced.jaxpr), "program")
            found.add("stablehlo", evidence.stablehlo_nodes(lowered.as_text()), "program")
            for stage, text in (("hlo", lowered.as_text("hlo")), ("hlo_optimized", compiled.as_text())):
                found.add(stage, hlo.hlo_nodes(text), "program")
                result.notes.append(hlo.stage_note(text, found.casts, stage))
            result.nodes, result.casts = found.nodes, found.casts
        return values

    def _op_by_op(self, program, inputs, trace, result):
        import jax
        import evidence
        begin = time.perf_counter()
        values = jax.block_until_ready(program(inputs))
        result.durations_ms = {"execute": (time.perf_counter() - begin) * 1e3}
        if trace:
            # A trace follows from the program, the dtypes and the shapes, as do the kernels that JAX keeps.
            key = (program.key, *((name, str(value.dtype), value.shape) for name, value in inputs.items()))
            if key not in self._traced:
                if len(self._traced) > 256:
                    self._traced.clear()
                found = Trace()
                found.add("jaxpr", evidence.jaxpr_nodes(jax.make_jaxpr(program)(inputs)), "program")
                self._traced[key] = found
            result.nodes, result.casts = self._traced[key].nodes, self._traced[key].casts
        return values


if __name__ == "__main__":
    serve(Jax())
