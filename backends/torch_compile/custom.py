"""torch-custom: any backend that torch.compile knows by name, a hardware vendor's own among them.

A vendor's package registers its backend with torch (an entry point of the group `torch_dynamo_backends`, or
`torch._dynamo.register_backend`); the name is then all that is needed here.
"""

import difflib

import torch
import torch._dynamo
from torch._dynamo.backends import registry

import example_backend
from ulpscope_adapter import Unsupported


def resolve(name):
    """The backend registered as `name`; Unsupported, with the names nearest to it, when there is none."""
    example_backend.register()
    known = torch._dynamo.list_backends(exclude_tags=())
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise Unsupported(f"backend_name={name}: torch.compile knows no such backend{hint} "
                          f"(known: {', '.join(known)})")
    try:
        return torch._dynamo.lookup_backend(name)
    except ImportError as error:
        raise Unsupported(f"backend_name={name}: {error}") from None


def name_of(function):
    """The name under which torch holds a backend."""
    return next((name for name, held in registry._COMPILER_FNS.items() if held is function), "")


def describe_graphs():
    """The graphs that the example backend compiled, in words; nothing for any other backend."""
    return [
        f"{example_backend.NAME}: {direction} graph of {_calls(graph)} ops"
        for direction, graph in example_backend.graphs
    ]


def clear():
    example_backend.graphs.clear()


def _calls(graph):
    return sum(node.op == "call_function" for node in graph.graph.nodes)
