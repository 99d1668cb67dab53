"""One execution of one program over torch: parts that run eagerly, regions that a compiler takes.

A backend overrides the parts in which it differs: how a region is compiled, what listens to eager calls, which FSDP wraps a layer, on which
device the tensors live. Every value's part is reported. Importing this file imports no torch.
"""

import contextlib
import time

from ulpscope_adapter import Result, Unsupported
from ulpscope_adapter.request import STORED
from ulpscope_torch import memory, regions


class Execution:
    """`env` holds the values by name, `made_in` the part that made each of them."""

    outside = "eager"  # the part of what runs in no region

    def __init__(self, request, device):
        self.request = request
        self.device = device
        placed, self._empties = self.flatten(request.steps)
        self.parts = self.cut(placed)
        self.regions = sum(part.kind == "compiled" for part in self.parts)
        self.env = {}
        self.made_in = {}
        self.durations = {}
        self._functions = {}  # compiled, by the place of their part: a second execution compiles nothing

    def require_region(self):
        """Raises Unsupported when a compiler would be given nothing."""
        wrapped = any(item.step.op == "fsdp_linear" for part in self.parts for item in part.placed)
        if not self.regions and not wrapped:
            raise Unsupported("not compiled: the program has no step that a compiled region takes")

    def flatten(self, steps):
        """(steps as Placed, `empty` steps), see regions.flatten."""
        return regions.flatten(steps)

    def cut(self, placed):
        """The parts of the program, see regions.cut."""
        return regions.cut(placed)

    def compiled(self, region):
        """A function that does what `region` does, compiled."""
        raise NotImplementedError

    def sharded(self, step):
        """The layer of an `fsdp_linear` step, wrapped by the framework's own FSDP."""
        raise Unsupported("fsdp_linear is not served")

    def shown(self, name, tensor):
        """The tensor to observe for the value `name`, or for its gradient, which the framework holds as `tensor`."""
        return tensor

    def watch(self, what):
        """A context manager around every eager call of the engine or of a wrapped layer; `what` names it."""
        return contextlib.nullcontext()

    def walks(self, name, loss):
        """Called before each backward() from the value `name`."""

    def execute(self):
        from ulpscope_torch import ops, values
        self.env, self.made_in = {}, {}
        bound = [ops.bind_all(part.placed) if part.kind == "compiled" else None for part in self.parts]
        modules = {
            operand for part in self.parts for item in part.placed if item.step.op == "module_to"
            for operand in item.step.of
        }
        for spec in self.request.tensors:
            self.env[spec.name] = values.from_spec(spec, parameter=spec.name in modules, device=self.device)
        for step in self._empties:
            self.env[step.target] = values.buffer(step, self.request.poison, self.device)
        self.begin()
        for index, part in enumerate(self.parts):
            if part.kind == "compiled":
                self.region(part, bound[index], index)
            else:
                for item in part.placed:
                    self.eager(item)

    def begin(self):
        """Called when the inputs are there and nothing has been computed."""

    def result(self):
        from ulpscope_torch import values
        found, observations = {}, {}
        for name in self.request.observe:
            if name in (memory.WORD, STORED):  # of an execution of its own (memory.peak_bytes), of the compiler
                continue
            base, _, suffix = name.partition(".")
            tensor = self.env[base]
            if suffix == "grad_metadata_dtype":
                observations[name] = values.metadata_dtype(tensor)
            elif suffix == "grad_dtype":
                observations[name] = values.grad_dtype(tensor)
            elif suffix == "grad":
                gradient = tensor.grad if tensor.is_leaf else None
                found[name] = None if gradient is None else values.to_wire(self.shown(base, gradient))
                self.made_in[name] = "backward"
            else:
                found[name] = values.to_wire(self.shown(base, tensor))
        parts = {name: self.made_in[name] for name in self.request.observe if name in self.made_in}
        return Result(values=found, observations=observations, parts=parts, durations_ms=self.durations,
                      notes=self.notes(), untraced=regions.untraced(self.parts))

    def notes(self):
        """How the program was cut, in words."""
        return regions.notes(self.parts, self._empties)

    def value(self, name):
        """The value of an operand: a name, or NAME.grad."""
        base, _, suffix = name.partition(".")
        return self.env[base].grad if suffix == "grad" else self.env[name]

    def region(self, part, bound, index):
        """Carries out a compiled part."""
        inputs, outputs = regions.interface(part, self.parts[index + 1:], self.request.observe)

        def region(*arguments):
            env = dict(zip(inputs, arguments))
            for step in bound:
                step(env)
            return tuple(env[name] for name in outputs)

        # Dynamo keeps what it compiled by code object; regions of one program must not meet in one cache.
        region.__code__ = region.__code__.replace(co_name=f"region_{index}")
        function = self._functions.get(index) or self.compiled(region)
        self._functions[index] = function
        begin = time.perf_counter()
        results = function(*[self.value(name) for name in inputs])
        self.durations[f"region{index}"] = (time.perf_counter() - begin) * 1e3
        self.env.update(zip(outputs, results))
        self.made_in.update(dict.fromkeys(outputs, "compiled"))
        # A buffer that a region wrote is that region's, though the tensor was made outside.
        self.made_in.update({item.step.out: "compiled" for item in part.placed if item.step.out})

    def eager(self, item):
        """Carries out one Placed step as it stands."""
        from ulpscope_torch import ops
        step, env = item.step, self.env
        with ops.scopes_of(item):
            if step.op == "backward":
                self._backward(step)
                return
            if step.op == "fsdp_linear":
                layer = self.sharded(step)
                with self.watch("fsdp_linear"):
                    env[step.target] = layer(self.value(step.of[0]))
                self.made_in[step.target] = "compiled"
                return
            self._do(step)
        for name in {step.of[0], step.target} if step.op in regions.OUTSIDE else {step.target}:
            if name:
                if name not in env:
                    env[name] = env[step.of[0]]
                self.made_in[name] = self.outside

    def _do(self, step):
        from ulpscope_torch import ops, values
        env = self.env
        if step.op == "set_data":
            to = step.attrs["to"]
            target = env[step.of[0]]
            if "cast" in to:
                target.data = target.data.to(ops.DTYPES[to["cast"]])
            else:
                target.data = self.value(to["value"]).data
        elif step.op == "module_to":
            env[step.of[0]] = values.module_to(env[step.of[0]], ops.DTYPES[step.attrs["dtype"]],
                                               step.attrs.get("overwrite", False))
        elif step.op == "detach_":
            env[step.of[0]].detach_().requires_grad_(step.attrs.get("requires_grad", False))
        elif step.op == "empty":
            env[step.target] = values.buffer(step, self.request.poison, self.device)
        else:
            ops.bind(step)(env)

    def _backward(self, step):
        import torch
        grad = step.attrs.get("grad")
        loss = self.value(step.of[0])
        seed = self.value(grad) if grad else torch.ones_like(loss)
        self.walks(step.of[0], loss)
        with self.watch("backward"):
            loss.backward(gradient=seed, retain_graph=step.attrs.get("retain_graph", False))
