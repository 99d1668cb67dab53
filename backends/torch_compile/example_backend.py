"""`ulpscope_example`: a whole torch.compile backend in one screen, the default of torch-custom.

It takes the forward and the backward graph that AOTAutograd makes and runs them as they are, boxed. A real
one would hand the graph to its own compiler at the marked line. Registered under its name, it is a backend
like any other: `torch.compile(f, backend="ulpscope_example")`.
"""

import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd

NAME = "ulpscope_example"

graphs = []  # (direction, torch.fx.GraphModule): what was compiled since the list was cleared


def _compiler(direction):
    def compile_graph(graph, example_inputs):
        del example_inputs
        graphs.append((direction, graph))
        return make_boxed_func(graph.forward)  # here a vendor's compiler would take the graph

    return compile_graph


def register():
    """Makes the backend known to torch.compile."""
    backend = aot_autograd(fw_compiler=_compiler("forward"), bw_compiler=_compiler("backward"))
    torch._dynamo.register_backend(backend, name=NAME)
