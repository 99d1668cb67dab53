"""Public functions of PyTorch by name, as far as a case may request them.

A case is data, often a stranger's. So a name is looked up in four modules and nowhere else, and what stands there is called only where
the dispatcher has an op behind it of which some overload takes tensors, gives tensors and nothing else, writes into none and draws no
random numbers: nothing that opens a file, loads code or sets a switch is such an op.
"""

import re

import torch

from ulpscope_adapter import Unsupported

_MODULES = {"torch": torch, "torch.nn.functional": torch.nn.functional, "torch.special": torch.special, "torch.linalg": torch.linalg}
_OTHERWISE = {"cross_entropy": "cross_entropy_loss", "interpolate": "upsample_nearest2d", "normalize": "linalg_vector_norm"}
_PUBLIC = re.compile("[A-Za-z](?:[A-Za-z0-9_]*[A-Za-z0-9])?")
_TENSORS = ("Tensor", "Optional[Tensor]", "List[Tensor]", "List[Optional[Tensor]]")


def named(op):
    """The function called `op` ("torch.nn.functional.gelu"); Unsupported where a case cannot reach it."""
    module, _, name = op.rpartition(".")
    function = getattr(_MODULES.get(module), name, None) if _PUBLIC.fullmatch(name) else None
    if function is None or isinstance(function, type) or not callable(function):
        raise Unsupported(f"op {op}: PyTorch has no public function of this name")
    inner = module.removeprefix("torch").lstrip(".")
    behind = [name, f"{inner}_{name}"] if inner in ("special", "linalg") else [_OTHERWISE.get(name, name)]
    overloads = [getattr(packet, each) for packet in (getattr(torch.ops.aten, each, None) for each in behind) if packet is not None
                 for each in packet.overloads()]
    if not any(_is_data(each) for each in overloads):
        raise Unsupported(f"op {op}: no op of the dispatcher that takes and gives tensors stands behind it; a case reaches no other function")
    return function


def _is_data(overload):
    schema = overload._schema
    return (any(str(each.type) in _TENSORS for each in schema.arguments) and bool(schema.returns)
            and all(str(each.type) in _TENSORS for each in schema.returns) and not schema.is_mutable
            and torch.Tag.nondeterministic_seeded not in overload.tags)
