"""A program as torch.export takes it: a module over its inputs, with backward() as torch.autograd.grad inside.

The gradients that it gives are those of its inputs. The steps above an input (the clone that it is of a leaf, the leaf's accumulation, the
engine's casts there) are left to autograd outside.
"""

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from ulpscope_adapter import Unsupported
from ulpscope_adapter.request import parse_step
from ulpscope_torch import ops, regions

class Program:
    """The steps of one package. `outputs` and `gradients` name what it returns, in this order."""
    def __init__(self, message):
        self._inputs = message["inputs"]
        placed, empties = regions.flatten([parse_step(step) for step in message["steps"]])
        if empties:
            raise Unsupported("an `empty` inside a package")  # the caller makes buffers, to poison them
        self._functions = self._bind(placed)
        made = {item.step.target for item in placed}
        self.outputs = [name for name in message["wanted"] if name in made]
        self._backward_inside = any(item.step.op == "backward" for item in placed)
        required = [entry["name"] for entry in self._own_inputs() if entry["requires_grad"]]
        self._wanted = required if self._backward_inside else []
        self.gradients = []  # known once the program has run: those that exist

    def exportable(self):
        """(module, example inputs) for torch.export.

        An export traces above autograd, where what a composite op (linear) saves for its backward is not seen. So a
        program with a backward() is first traced below autograd, both directions as one graph.
        """
        examples = tuple(self._examples())
        if not self._backward_inside:
            return _Module(self), examples
        joint = make_fx(lambda *tensors: self.run(tensors), tracing_mode="fake")(*examples)
        return joint, tuple(example.detach() for example in examples)

    def _examples(self):
        """Tensors with the layout of the inputs; the values do not matter to an export."""
        for entry in self._own_inputs():
            tensor = torch.empty_strided(entry["shape"], entry["strides"], dtype=ops.DTYPES[entry["dtype"]])
            yield tensor.zero_().requires_grad_(entry["requires_grad"])

    def run(self, tensors):
        env = dict(zip((entry["name"] for entry in self._own_inputs()), tensors))
        for entry in self._inputs:
            if entry["same_as"]:
                env[entry["name"]] = env[entry["same_as"]]
        gradients = {}
        for function in self._functions:
            function(env, gradients)
        self.gradients = [name for name in self._wanted if name in gradients]
        return (*(env[name] for name in self.outputs), *(gradients[name] for name in self.gradients))

    def _own_inputs(self):
        return [entry for entry in self._inputs if not entry["same_as"]]

    def _bind(self, placed):
        """Functions over (environment, gradients); the steps between two backward() calls are bound together."""
        functions, run = [], []

        def close():
            functions.extend(lambda env, _, step=step: step(env) for step in ops.bind_all(run))
            run.clear()

        for item in placed:
            if item.step.op == "backward":
                if item.scopes:
                    raise Unsupported(f"backward inside {item.scopes[0][1].op}: cutting the scope would change it")
                close()
                functions.append(lambda env, gradients, step=item.step: self._backward(step, env, gradients))
                continue
            if item.step.op in regions.OUTSIDE:
                raise Unsupported(f"{item.step.op} after the first operation: an exported program has no such step")
            if any(isinstance(operand, str) and "." in operand for operand in item.step.of):
                raise Unsupported(f"{item.step.op} of a gradient: an exported program has none to read")
            run.append(item)
        close()
        return functions

    def _backward(self, step, env, gradients):
        loss = env[step.of[0]]
        seed = env[step.attrs["grad"]] if step.attrs.get("grad") else torch.ones_like(loss)
        leaves = [env[name] for name in self._wanted]
        found = torch.autograd.grad([loss], leaves or [loss], [seed], retain_graph=True, allow_unused=True)
        for name, gradient in zip(self._wanted, found):
            if gradient is not None:
                gradients[name] = gradients[name] + gradient if name in gradients else gradient


class _Module(torch.nn.Module):
    """A program over its inputs."""
    def __init__(self, program):
        super().__init__()
        self._program = program

    def forward(self, *tensors):
        return self._program.run(tensors)
