"""The two ways in which PyTorch/XLA takes a program: lazy tensors, and torch.compile.

Lazily, steps are recorded until something needs a value: a `sync` step, the end of the program, or an operator that XLA lacks. The steps
recorded in between are one graph, forward and backward together. A name that neither a later step nor `observe` mentions is dropped where
it is last used, as a local variable would be: it is no output of its graph.
"""

import time

import evidence
from ulpscope_adapter import Unsupported
from ulpscope_torch import regions
from ulpscope_torch.execution import Execution


class _XlaRun(Execution):
    def __init__(self, request, session):
        import sharded
        self.session = session
        self.evidence = evidence.Evidence(session)
        self._sharded = sharded.ShardedLinears()
        self._fallbacks = set()
        super().__init__(request, device=session.device)

    def begin(self):
        self.session.sync()
        self.session.clear()

    def sharded(self, step):
        return self._sharded.layer(step, self.env)

    def finish(self, where):
        """Carries out what was recorded; the evidence is read first."""
        graph = evidence.pending(self._tensors()) if self.request.trace else None
        begin = time.perf_counter()
        self.session.sync()
        self.durations[f"graph{len(self.durations)}"] = (time.perf_counter() - begin) * 1e3
        if graph is not None:
            self.evidence.add(graph, where)

    def _tensors(self):
        """Every value and gradient, each once."""
        tensors = {}
        for value in self.env.values():
            for tensor in (value, value.grad if value.is_leaf else None):
                if tensor is not None:
                    tensors[id(tensor)] = tensor
        return list(tensors.values())

    def watch_fallbacks(self, step):
        """Notes operators that XLA lacks: they ran in plain torch, and what was recorded before was cut there."""
        for name in set(self.session.fallbacks()) - self._fallbacks:
            self.fell_back(name, f"{step}: ")

    def fell_back(self, name, where=""):
        if name not in self._fallbacks:
            self._fallbacks.add(name)
            self.evidence.notes.append(f"{where}{name} fell back to the CPU; the graph is cut there")

    def shown(self, name, tensor):
        return self._sharded.whole(name, tensor)

    def result(self):
        result = super().result()
        trace = self.evidence.trace
        result.nodes, result.casts = trace.nodes, trace.casts
        result.notes += self.evidence.notes
        return result


class LazyRun(_XlaRun):
    """Everything is recorded; `sync` cuts."""

    outside = "compiled"

    def flatten(self, steps):
        return regions.flatten(steps, kept=("sync",))

    def cut(self, placed):
        self._last = {}
        for index, item in enumerate(placed):
            for name in [*regions.names_used(item.step), item.step.target]:
                self._last[name.partition(".")[0]] = index
        for name in self.request.observe:
            self._last[name.partition(".")[0]] = len(placed)
        return [regions.Part("lazy", list(placed))]

    def execute(self):
        self._position = 0
        super().execute()
        self.finish("at the end")

    def eager(self, item):
        if item.step.op == "sync":
            self.finish("at sync")
        else:
            super().eager(item)
            self.watch_fallbacks(item.step.op)
        for name in [name for name in self.env if self._last.get(name, -1) <= self._position]:
            del self.env[name]
        self._position += 1

    def notes(self):
        compiled = self.session.compiled()
        return [f"lazy tensors: {len(self.durations)} graphs, UncachedCompile {compiled}"]


class DynamoRun(_XlaRun):
    """Regions go through torch.compile; what stands between them is recorded lazily."""
    def __init__(self, request, session):
        super().__init__(request, session)
        self.require_region()

    def require_compiled(self):
        """Raises Unsupported unless each region became one graph."""
        import torch._dynamo
        counters = torch._dynamo.utils.counters
        graphs, breaks = counters["stats"]["unique_graphs"], counters["graph_break"]
        if graphs != self.regions or breaks:
            why = "".join("; " + str(reason).splitlines()[0] for reason in breaks)
            raise Unsupported(f"not compiled: dynamo captured {graphs} graphs for {self.regions} regions{why}")

    def compiled(self, region):
        import torch
        return torch.compile(region, fullgraph=True, dynamic=False, backend="openxla")

    def region(self, part, bound, index):
        self.finish("before a region")  # what a region takes is computed by then, as a graph of its own
        super().region(part, bound, index)

    def finish(self, where):
        self._bridge.flush()
        super().finish(where)

    def execute(self):
        self._bridge = evidence.Bridge(self.evidence, self.request.trace, self.fell_back)
        with self._bridge:
            super().execute()
        self.finish("after the regions")
