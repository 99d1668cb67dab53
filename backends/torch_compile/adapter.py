"""The torch.compile backends: torch-aot-eager, torch-inductor, and torch-custom for any other by its name.

A program is cut (regions.py), its compilable part becomes one straight-line function, which torch.compile
takes whole (fullgraph, no dynamic shapes) or not at all. A result is given only with proof that it was
compiled (evidence.py).
"""

import os
import sys
import time
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

import knobs as knob_table  # noqa: E402
import regions  # noqa: E402
from ulpscope_adapter import Adapter, Result, Tensor, Trace, Unsupported, poison_bytes, serve  # noqa: E402

BACKENDS = {"torch-aot-eager": "aot_eager", "torch-inductor": "inductor", "torch-custom": None}


class TorchCompile(Adapter):
    """One worker serves one of the backends."""
    def configure(self, backend, device, knobs):
        self._backend = backend
        self._compiler = BACKENDS.get(backend)  # what torch.compile takes: a name, or the function itself
        self._knobs = knobs
        knob_table.set_before_import(knobs)
        # Inductor's first use of old TorchScript helpers warns many times; nothing else is silenced.
        warnings.filterwarnings("ignore", message=".*torch.jit.script.*")

    def capabilities(self):
        import numpy
        import torch
        import ops
        table = {name: attributes for name, (_, attributes, _) in ops.OPS.items()}
        knobs = dict(knob_table.COMMON)
        if self._backend == "torch-inductor":
            knobs.update(knob_table.INDUCTOR)
        if self._backend == "torch-custom":
            import custom
            name = self._knobs.get("backend_name", custom.example_backend.NAME)
            self._compiler = custom.resolve(name)
            knobs["backend_name"] = [name]
        return {
            "name": "torch_compile",
            "backends": list(BACKENDS),
            "versions": {
                "torch": torch.__version__,
                "numpy": numpy.__version__
            },
            "knobs": knobs,
            "ops": {
                **table,
                **ops.OUTSIDE_OPS, "aten::*": None
            },
            "dtypes": list(ops.DTYPES),
            "scopes": ["autocast", "no_grad", "enable_grad"],
            "capabilities": ["autograd", "out", "strides", "aten"],
            "observations": ["grad", "grad_dtype", "grad_metadata_dtype"],
            "reasons": {
                "preferred_element_type": "torch has no preferred_element_type; out_dtype is the nearest"
            }
        }

    def start(self):
        import torch
        import torch._dynamo
        import torch._functorch.config
        import torch._inductor.config
        import evidence
        knob_table.apply(self._knobs)
        # Graphs are rebuilt for every case, so that their evidence exists; kernels come from the cache by
        # source text.
        torch._inductor.config.fx_graph_cache = False
        torch._functorch.config.enable_autograd_cache = False
        torch._inductor.config.compile_threads = 1
        torch._dynamo.config.specialize_float = True  # a scalar of the program is a constant, as written
        torch._functorch.config.donated_buffer = False  # else retain_graph is refused
        self._recorder = evidence.Recorder()
        self._recorder.attach()

    def run(self, request):
        import evidence
        import torch._dynamo.exc
        self._recorder.clear()
        if self._backend == "torch-custom":
            import custom
            custom.clear()
        try:
            run = _Run(request, self._compiler)
            run.execute()
        except torch._dynamo.exc.Unsupported as error:
            if _innermost(error) is error:
                raise Unsupported(f"not compiled: {str(error).splitlines()[0]}") from None
            raise
        except torch._dynamo.exc.BackendCompilerFailed as error:
            if isinstance(_innermost(error), ImportError):  # of another vendor's backend: what it needs
                raise Unsupported(f"the backend is not installed: {_innermost(error)}") from None
            raise
        evidence.require_compiled(self._recorder, run.regions, self._backend)
        result = run.result()
        if request.trace:
            trace = Trace()
            result.notes += evidence.add_trace(self._recorder, trace)
            run.engine.add_to(trace)
            result.nodes, result.casts = trace.nodes, trace.casts
        if self._backend == "torch-custom":
            import custom
            result.notes += custom.describe_graphs()
        return result

    def read_back(self):
        values = knob_table.read_back(self._backend)
        if self._backend == "torch-custom":
            import custom
            values["backend_name"] = custom.name_of(self._compiler)
        return values

    def threads(self):
        import torch
        return torch.get_num_threads()

    def root_cause(self, error):
        return _innermost(error)

    def error_text(self, error):
        # Dynamo appends where in the traced function it stood: that is this adapter's source, not the case.
        return str(error).partition("\n\nfrom user code:")[0]


class _Run:
    """One execution of one program."""
    def __init__(self, request, backend):
        import engine_casts
        import fsdp
        self._request = request
        self._backend = backend
        placed, self._empties = regions.flatten(request.steps)
        self._parts = regions.cut(placed)
        self._regions = sum(part.kind == "compiled" for part in self._parts)
        self._sharded = fsdp.ShardedLinears(backend)
        if not self._regions and not any(item.step.op == "fsdp_linear" for item in placed):
            raise Unsupported("not compiled: the program has no step that a compiled region takes")
        self._made_in = {}
        self._durations = {}
        self._env = {}
        self.engine = engine_casts.EngineCasts(request.trace)

    @property
    def regions(self):
        """How many graphs the compiler has to have taken."""
        return self._regions + len(self._sharded)

    def execute(self):
        import ops
        bound = [ops.bind_all(part.placed) if part.kind == "compiled" else None for part in self._parts]
        modules = {
            operand for part in self._parts for item in part.placed if item.step.op == "module_to"
            for operand in item.step.of
        }
        for spec in self._request.tensors:
            self._env[spec.name] = _input(spec, parameter=spec.name in modules)
        for step in self._empties:
            self._env[step.target] = _buffer(step, self._request.poison)
        for index, part in enumerate(self._parts):
            if part.kind == "eager":
                for item in part.placed:
                    self._eager(item)
            else:
                self._compiled(part, bound[index], self._parts[index + 1:], index)

    def result(self):
        values, observations = {}, {}
        for name in self._request.observe:
            base, _, suffix = name.partition(".")
            tensor = self._env[base]
            if suffix == "grad_metadata_dtype":
                observations[name] = _metadata_dtype(tensor)
            elif suffix == "grad_dtype":
                observations[name] = _grad_dtype(tensor)
            elif suffix == "grad":
                gradient = tensor.grad if tensor.is_leaf else None
                values[name] = None if gradient is None else _output(gradient)
                self._made_in[name] = "backward"
            else:
                values[name] = _output(tensor)
        parts = {name: self._made_in[name] for name in self._request.observe if name in self._made_in}
        return Result(values=values, observations=observations, parts=parts, durations_ms=self._durations,
                      notes=regions.notes(self._parts, self._empties))

    def _compiled(self, part, bound, later, index):
        import torch
        inputs, outputs = regions.interface(part, later, self._request.observe)

        def region(*arguments):
            env = dict(zip(inputs, arguments))
            for step in bound:
                step(env)
            return tuple(env[name] for name in outputs)

        # Dynamo keeps what it compiled by code object; regions of one program must not meet in one cache.
        region.__code__ = region.__code__.replace(co_name=f"region_{index}")
        compiled = torch.compile(region, fullgraph=True, dynamic=False, backend=self._backend)
        begin = time.perf_counter()
        results = compiled(*[self._value(name) for name in inputs])
        self._durations[f"region{index}"] = (time.perf_counter() - begin) * 1e3
        self._env.update(zip(outputs, results))
        self._made_in.update(dict.fromkeys(outputs, "compiled"))
        # A buffer that a region wrote is that region's, though the tensor was made outside.
        self._made_in.update({item.step.out: "compiled" for item in part.placed if item.step.out})

    def _eager(self, item):
        import torch
        import ops
        step, env = item.step, self._env
        with ops.scopes_of(item):
            if step.op == "backward":
                grad = step.attrs.get("grad")
                loss = self._value(step.of[0])
                seed = self._value(grad) if grad else torch.ones_like(loss)
                retain, repeat = step.attrs.get("retain_graph", False), step.attrs.get("repeat", 1)
                for count in range(repeat):
                    with self.engine.watch():
                        loss.backward(gradient=seed, retain_graph=retain or count + 1 < repeat)
                return
            if step.op == "fsdp_linear":
                layer = self._sharded.layer(step, env)
                with self.engine.watch("fsdp_linear"):
                    env[step.target] = layer(self._value(step.of[0]))
                self._made_in[step.target] = "compiled"
                return
            if step.op == "set_data":
                to = step.attrs["to"]
                target = env[step.of[0]]
                if "cast" in to:
                    target.data = target.data.to(ops.DTYPES[to["cast"]])
                else:
                    target.data = self._value(to["value"]).data
            elif step.op == "module_to":
                env[step.of[0]] = _module_to(env[step.of[0]], ops.DTYPES[step.attrs["dtype"]],
                                             step.attrs.get("overwrite", False))
            elif step.op == "requires_grad_":
                env[step.of[0]].requires_grad_()
            else:
                ops.bind(step)(env)
        for name in {step.of[0], step.target} if step.op in regions.OUTSIDE else {step.target}:
            if name:
                env.setdefault(name, env[step.of[0]])
                self._made_in[name] = "eager"

    def _value(self, name):
        base, _, suffix = name.partition(".")
        return self._env[base].grad if suffix == "grad" else self._env[name]


def _input(spec, parameter):
    """The tensor of a TensorSpec, its bits reinterpreted, in the layout asked for."""
    import torch
    import ops
    dtype = ops.DTYPES[spec.dtype]
    # Not a view of the bytes: set_data on a view of a float32 base leaves a tensor that no compiler accepts.
    tensor = torch.empty(spec.shape, dtype=dtype)
    _fill_bits(tensor, spec.tensor.data)
    if spec.strides:
        tensor = _laid_out(tensor, spec.strides)
    if parameter:
        return torch.nn.Parameter(tensor, requires_grad=spec.requires_grad)
    return tensor.requires_grad_() if spec.requires_grad else tensor


def _fill_bits(tensor, data):
    """Overwrites a contiguous tensor with row-major bytes."""
    import torch
    if data:
        tensor.reshape(-1).view(torch.uint8).copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))


def _laid_out(tensor, strides):
    """A copy of a tensor with other strides."""
    import torch
    result = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype)
    written = result
    for dim, stride in enumerate(strides):
        if stride == 0 and tensor.shape[dim] > 1:  # one element shown many times: written once
            written, tensor = written.narrow(dim, 0, 1), tensor.narrow(dim, 0, 1)
    written.copy_(tensor)
    return result


def _buffer(step, poison):
    """An `empty` buffer, poisoned; a bool has no pattern that is no value."""
    import torch
    import ops
    dtype = step.attrs["dtype"]
    buffer = torch.empty(step.attrs["shape"], dtype=ops.DTYPES[dtype])
    if poison and dtype != "bool":
        _fill_bits(buffer, poison_bytes(dtype, buffer.numel()))
    return buffer


def _output(tensor):
    import fsdp
    import torch
    import ops
    flat = fsdp.local(tensor).detach().contiguous().reshape(-1)
    data = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    return Tensor(ops.dtype_name(tensor.dtype), tuple(tensor.shape), data)


def _module_to(tensor, dtype, overwrite):
    """nn.Module.to on a module that holds `tensor` as its one parameter: what `w` is afterwards."""
    import torch
    module = torch.nn.Module()
    module.register_parameter("w", tensor)
    before = torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(overwrite)
    try:
        return module.to(dtype).w
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(before)


def _metadata_dtype(tensor):
    """The dtype for which the autograd engine would take a gradient of `tensor` now, or "none"."""
    import torch
    import ops
    if not tensor.requires_grad:
        return "none"
    edge = torch.autograd.graph.get_gradient_edge(tensor)
    return ops.dtype_name(edge.node._input_metadata[edge.output_nr].dtype)


def _grad_dtype(tensor):
    """The dtype that the engine demands of a leaf's gradient; "any" when it demands none."""
    import ops
    if not tensor.requires_grad:
        return "none"
    if not tensor.is_leaf:
        raise Unsupported("grad_dtype of a tensor that is no leaf: Python has no way to read it")
    return "any" if tensor.grad_dtype is None else ops.dtype_name(tensor.grad_dtype)


def _innermost(error):
    """torch.compile wraps the operator's own error, several times over; this is the operator's.

    Dynamo keeps it as the cause, inductor in an attribute, and inductor's lowering only as the context.
    """
    while True:
        inner = error.__cause__ or getattr(error, "inner_exception", None)
        if inner is None and type(error).__name__ == "LoweringException":
            inner = error.__context__
        if inner is None:
            return error
        error = inner


if __name__ == "__main__":
    serve(TorchCompile())
