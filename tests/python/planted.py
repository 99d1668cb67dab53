"""PyTorch op by op, but for one step, which it does otherwise: `planted:fault=FAULT,at=NAME` is wrong where NAME is computed.

Faults: rounds (its first operand, to float8_e4m3fn), order (a product from its last term to its first), unrounded (reads what its
first operand was before that was rounded), inside (a silu whose sigmoid is rounded), dtype (gives float32), raises, zero (gives -0 for
0), value (compares with a higher bound).
"""
import torch
from ulpscope_adapter import Adapter, Result, serve
from ulpscope_torch import ops
from ulpscope_torch.values import from_spec, to_wire

FAULTS = ("no", "rounds", "order", "unrounded", "inside", "dtype", "raises", "zero", "value")


def product(x, w):
    total = torch.zeros(*x.shape[:-1], w.shape[0])
    for k in reversed(range(x.shape[-1])):
        total = (total.double() + x[..., k:k + 1].double() * w[:, k].double()).float()  # the product unrounded, as in a fused step
    return total.to(x.dtype)


def wrong(fault, step, values, before):
    """The result of the step with its fault; `before`: the step that made its first operand."""
    first, *rest = step.operands(values)
    if fault == "rounds":
        return honest(step, {**values, step.of[0]: first.to(torch.float8_e4m3fn).to(first.dtype)})
    if fault == "order":
        return product(first, *rest)
    if fault == "unrounded" and before is not None:
        wide = {name: value.float() for name, value in values.items() if isinstance(value, torch.Tensor)}
        return honest(step, {**wide, before.target: honest(before, wide)}).to(first.dtype)
    if fault == "inside":
        return (first.float() * torch.sigmoid(first.float()).to(first.dtype).float()).to(first.dtype)
    result = honest(step, values)
    if fault == "dtype":
        return result.float()
    if fault == "zero":
        return torch.where(result == 0, -torch.zeros_like(result), result)
    if fault == "value":
        return first > rest[0] * 8
    if fault == "raises":
        raise RuntimeError(f"{step.op} does not like this")
    return result


def honest(step, values):
    here = dict(values)
    ops.bind(step)(here)
    return here[step.target]


class Planted(Adapter):
    def configure(self, backend, device, knobs):
        self.knobs = {"fault": "no", "at": "no", **knobs}
        torch.set_num_threads(1)

    def capabilities(self):
        return {"name": "planted", "backends": ["planted"], "versions": {"torch": torch.__version__},
                "knobs": {"threads": ["1"], "fault": list(FAULTS), "at": ["no", self.knobs["at"]]},
                "dtypes": ["float64", "float32", "float16", "bfloat16", "int64", "bool"], "ops": dict(ops.OPS)}

    def run(self, request):
        values, made = {}, {}
        for spec in request.tensors:
            values[spec.name] = from_spec(spec, False, "cpu")
        for step in request.steps:
            at = step.target == self.knobs["at"]
            values[step.target] = wrong(self.knobs["fault"], step, values, made.get(step.of[0])) if at else honest(step, values)
            made[step.target] = step
        return Result({name: to_wire(values[name]) for name in request.observe})

    def read_back(self):
        return {"threads": "1", "fault": self.knobs["fault"], "at": self.knobs["at"]}


if __name__ == "__main__":
    serve(Planted())
