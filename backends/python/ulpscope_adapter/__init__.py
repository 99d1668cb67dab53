"""ulpscope_adapter: write a backend for ulpscope in Python; the protocol is hidden here.

An adapter is a program that the harness starts, that answers `hello`, `run` and `bye` over a socket, and that
states facts only: which tensors came out, in which dtype, what was raised, what could not be done. It never
judges. An author writes one class:

    class MyAdapter(Adapter):
        def capabilities(self): ...    # what can be served, as data
        def run(self, request): ...    # run one straight-line program, give back a Result

and calls `serve(MyAdapter())`. `capabilities()["ops"]` is the table of ops with their attributes; what a
program asks beyond it is answered `unsupported` with the word that is missing before `run` is called, so
`run` never sees it. Anything that `run` raises is taken for the framework's own error; `Unsupported` says
that something cannot be done here.

example_numpy.py beside this package is a complete adapter. The wire itself is described in
backends/PROTOCOL.md.
"""

from ulpscope_adapter.adapter import Adapter
from ulpscope_adapter.graph import Trace
from ulpscope_adapter.request import Cast, Request, Result, Step, TensorSpec, TraceNode, Unsupported
from ulpscope_adapter.serve import serve
from ulpscope_adapter.tensor import Tensor, numpy_dtype, poison_bytes

__all__ = [
    "Adapter", "Cast", "Request", "Result", "Step", "Tensor", "TensorSpec", "Trace", "TraceNode",
    "Unsupported", "numpy_dtype", "poison_bytes", "serve"
]
