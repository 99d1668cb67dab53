"""A program as one pure function of its inputs, which JAX can trace whole or run op by op.

JAX has no leaves with a gradient attached and no mutation. backward() becomes jax.vjp of everything before
it, with respect to the tensors that require a gradient; several backward() add up. `set_data` on an input
that nothing has used yet is a plain cast of that input; anywhere else it has no meaning here, and the program
is refused.
"""

import jax
import jax.numpy as jnp

import ops
from ulpscope_adapter import Unsupported
from ulpscope_adapter.request import SCOPES


class Program:
    """Callable with {input name: array}; returns {observed name: array, or None without a gradient}.

    Programs of equal `key` compute the same from inputs of the same dtypes and shapes.
    """
    def __init__(self, request):
        self.key = repr((request.steps, request.observe, [spec.requires_grad for spec in request.tensors]))
        self._observe = [name for name in request.observe if name != "peak_bytes"]
        self._steps = []  # (step, True where gradients are off)
        self._flatten(request.steps, no_grad=False)
        inputs = {spec.name for spec in request.tensors}
        self._leaves = [spec.name for spec in request.tensors if spec.requires_grad]
        self._recast = self._take_set_data(inputs)
        self._backward = [i for i, (step, _) in enumerate(self._steps) if step.op == "backward"]

    def __call__(self, inputs):
        inputs = {name: self._prepared(name, inputs) for name in inputs}
        env, gradients = dict(inputs), {}
        for index in self._backward:
            env, found = self._gradients(inputs, gradients, index)
            for name, gradient in found.items():
                gradients[name] = gradients[name] + gradient if name in gradients else gradient
        self._carry_out(env, gradients, self._backward[-1] + 1 if self._backward else 0, len(self._steps))
        return {
            name: self._observed(name, env, gradients)
            for name in self._observe
            if not name.endswith(".grad_metadata_dtype")
        }

    def notes(self):
        """How steps were written for JAX, where more than one way exists."""
        lines = [ops.NOTES[step.op] for step, _ in self._steps if step.op in ops.NOTES]
        lines += [f"set_data {name}: the input was cast before everything else" for name in self._recast]
        lines += ["backward: jax.vjp of the steps before it"] if self._backward else []
        return list(dict.fromkeys(lines))

    def _flatten(self, steps, no_grad):
        for step in steps:
            if step.op in SCOPES:
                self._flatten(step.steps, no_grad=step.op == "no_grad")
            elif step.op != "sync":
                self._steps.append((step, no_grad))

    def _take_set_data(self, inputs):
        """Takes the set_data steps out of the program: {input: what its data becomes}."""
        recast, used, kept = {}, set(), []
        for step, no_grad in self._steps:
            if step.op == "set_data":
                name, to = step.of[0], step.attrs["to"]
                if name in used or name not in inputs or to.get("value", name) not in inputs:
                    raise Unsupported(
                        f"set_data {name}: JAX arrays are values; only an input that nothing has used yet "
                        "can be replaced")
                recast.setdefault(name, []).append(to)
                continue
            used |= {operand.partition(".")[0] for operand in step.of if isinstance(operand, str)}
            kept.append((step, no_grad))
        self._steps = kept
        return recast

    def _prepared(self, name, inputs):
        value = inputs[name]
        for to in self._recast.get(name, []):
            value = value.astype(to["cast"]) if "cast" in to else inputs[to["value"]]
        return value

    def _gradients(self, inputs, gradients, index):
        """(values after the steps before `index`, gradients of the loss of the step there)."""
        step, _ = self._steps[index]

        # Values that detach_ made leaves are differentiated as leaves: their values first, then the program as a function of them.
        detached = {}
        if any(each.op == "detach_" for each, _ in self._steps[:index]):
            self._carry_out(dict(inputs), gradients, 0, index, detached)

        def forward(leaves):
            own, inner = leaves
            env = {**inputs, **own}
            self._carry_out(env, gradients, 0, index, dict(inner))
            return env[step.of[0]], env

        leaves = ({name: inputs[name] for name in self._leaves}, detached)
        loss, pull, env = jax.vjp(forward, leaves, has_aux=True)
        seed = step.attrs.get("grad")
        ((found, inner),) = pull(env[seed] if seed else jnp.ones_like(loss))
        for place, gradient in inner.items():
            name = self._steps[place][0].of[0]
            found[name] = found[name] + gradient if name in found else gradient
        return env, found

    def _carry_out(self, env, gradients, begin, end, detached=None):
        """`detached`: the leaves that detach_ makes, by the place of the step; those that are missing are added."""
        for place, (step, no_grad) in enumerate(self._steps[begin:end], begin):
            if step.op == "backward":
                continue
            if step.op == "detach_":
                value = jax.lax.stop_gradient(env[step.of[0]])
                if step.attrs.get("requires_grad", False) and detached is not None:
                    value = detached.setdefault(place, value)
                env[step.of[0]] = value
                continue
            operands = [self._observed(o, env, gradients) if isinstance(o, str) else o for o in step.of]
            result = ops.apply(step, operands)
            if step.target:
                env[step.target] = jax.lax.stop_gradient(result) if no_grad else result

    @staticmethod
    def _observed(name, env, gradients):
        base, _, suffix = name.partition(".")
        return gradients.get(base) if suffix == "grad" else env[base]
