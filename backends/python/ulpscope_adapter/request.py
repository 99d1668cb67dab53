"""The harness's request (Request) and an adapter's answer (Result)."""

from dataclasses import dataclass, field

from ulpscope_adapter.tensor import Tensor

# Observed by the harness alone: which values of steps the program writes to memory.
STORED = ".stored"
SCOPES = ("autocast", "no_grad", "enable_grad")


class Unsupported(Exception):
    """Raised by an adapter for what it cannot do; the text is the reason that the report shows."""


@dataclass(frozen=True)
class TensorSpec:
    """An input: its bits, contiguous, and the requested strides (in elements; empty = contiguous)."""

    name: str
    tensor: Tensor
    strides: tuple = ()
    requires_grad: bool = False

    @property
    def dtype(self):
        return self.tensor.dtype

    @property
    def shape(self):
        return self.tensor.shape

    def numpy(self):
        """The contiguous array; a program that requests strides needs an adapter that gives them."""
        return self.tensor.numpy()


@dataclass(frozen=True)
class Step:
    """One step. `of` holds names (str) and Python scalars; `name` is what the case calls `as`."""

    op: str
    of: tuple = ()
    out: str = ""
    name: str = ""
    attrs: dict = field(default_factory=dict)
    steps: tuple = ()

    def operands(self, values):
        """The operands, names looked up in `values`, scalars as they are."""
        return [values[operand] if isinstance(operand, str) else operand for operand in self.of]

    @property
    def target(self):
        """The name under which the result is known: `as`, or the buffer that it was written to."""
        return self.name or self.out


@dataclass
class Request:
    """One case to run."""

    id: int
    case: str
    seed: int
    trace: bool
    tensors: list
    steps: list
    observe: list
    knobs: dict
    poison: bool
    schedule: tuple = ()  # wait, warm-up, active of the runs for durations; empty: as the adapter likes
    timed: bool = False  # durations of the trace are wanted from a run whose kernels are set up already

    def all_steps(self):
        """Every step and scope, in program order."""
        yield from _walk(self.steps)


@dataclass(frozen=True)
class Cast:
    """A dtype conversion that a graph shows."""

    source: str
    target: str
    shape: tuple
    under: str
    stage: str
    node: int = -1  # id of the TraceNode that converts
    us: float | None = None  # how long it took, microseconds


@dataclass(frozen=True)
class TraceNode:
    """One operation as a stage of the framework names it (backends/PROTOCOL.md, "nodes")."""

    id: int
    stage: str
    op: str
    kind: str = "compute"
    parent: int = -1  # the node that encloses it
    sources: tuple = ()  # ids of the nodes whose results it reads, where known
    inputs: tuple = ()  # (dtype, shape) each
    outputs: tuple = ()
    us: float | None = None  # how long it took, nested nodes included, microseconds


@dataclass
class Result:
    """Results of one run. A value is a Tensor, anything NumPy can view, or None for no gradient."""

    values: dict
    observations: dict = field(default_factory=dict)
    parts: dict = field(default_factory=dict)
    casts: list = field(default_factory=list)
    nodes: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    untraced: list = field(default_factory=list)  # steps that ran outside of what the trace shows, and where
    durations_ms: dict = field(default_factory=dict)


def parse_step(message):
    """A Step from its JSON object."""
    operands = tuple(_scalar(o["scalar"]) if isinstance(o, dict) else o for o in message.get("of", []))
    return Step(op=message["op"], of=operands, out=message.get("out", ""), name=message.get("as", ""),
                attrs=dict(message.get("attrs",
                                       {})), steps=tuple(parse_step(s) for s in message.get("steps", [])))


def parse_request(message, tensors):
    """A Request from the JSON object of `run` and the tensors of its inputs file."""
    program = message["program"]
    specs = []
    for entry in program["tensors"]:
        tensor = tensors.get(entry["name"])
        if tensor is None or (tensor.dtype, list(tensor.shape)) != (entry["dtype"], list(entry["shape"])):
            raise ValueError(f"inputs: {entry['name']} is not {entry['dtype']}{entry['shape']}")
        specs.append(
            TensorSpec(name=entry["name"], tensor=tensor, strides=tuple(entry.get("strides", [])),
                       requires_grad=bool(entry.get("requires_grad", False))))
    return Request(id=message["id"], case=message.get("case", ""), seed=message.get("seed", 0),
                   trace=message.get("trace", False) or "trace" in program["observe"], tensors=specs,
                   steps=[parse_step(s) for s in program["steps"]],
                   observe=[name for name in program["observe"] if name != "trace"],
                   knobs=dict(message.get("knobs", {})), poison=message.get("poison", False),
                   timed="trace" in program["observe"], schedule=_schedule(message.get("schedule")))


def _schedule(counts):
    if counts is None:
        return ()
    if not (isinstance(counts, list) and len(counts) == 3 and all(type(each) is int and 0 <= each <= 1000 for each in counts)
            and counts[2]):
        raise ValueError(f"schedule: {counts!r} is no list of wait, warm-up and active runs")
    return tuple(counts)


def _scalar(value):
    """JSON has no words for infinity and NaN: they travel as text."""
    return float(value) if isinstance(value, str) else value


def _walk(steps):
    for step in steps:
        yield step
        yield from _walk(step.steps)
