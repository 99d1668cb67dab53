# What `import ulpscope` has, with types; held against the package by tests/python/test_types.py (and mypy --strict).
#
# An array is a tensor of torch, or an array of NumPy or JAX: of any shape and dtype that the case language has. Arguments nest (lists,
# tuples, dicts) as the framework's own do. Folders are made where they are not there. Seconds are wall-clock.
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Literal

class Reason(Enum):
    RANDOM = "random numbers"
    DATA_DEPENDENT = "depends on the values of a tensor"
    CONTROL_FLOW = "a loop or a branch in the graph"
    NOTHING_COMPUTED = "gives no tensor that it computes"
    UNWRITTEN_MEMORY = "memory that nothing writes"
    EMPTY = "a tensor without elements"
    COMPLEX = "complex numbers"
    LAYOUT = "a tensor that is not dense"
    DTYPE = "a dtype that no case has"
    FOREIGN_OP = "an op that is not PyTorch's own"
    MUTATION = "a write into what exists"
    INDEX_FORM = "an index that a step does not write"
    LIST_FORM = "a list of tensors that a step does not write"
    KEYWORD_TENSOR = "a tensor that has to be named"
    VALUE_FORM = "an argument that a step does not write"
    NO_WORD = "a primitive without a word"
    PRIMITIVE_FORM = "a form of a primitive that its word does not have"
    SEVERAL_RESULTS = "several results to differentiate"
    NO_GRADIENT = "nothing that requires a gradient"
    VERIFY = "a backend that runs no such function"
    EXPORT = "torch.export refuses it"
    HARNESS = "the harness refuses the case"
    UNSTABLE = "other bits the second time"
    UNFAITHFUL = "the case has other bits than the function"
    OWN_FAULT = "a fault of ulpscope's own"

class CaptureError(ValueError):
    reason: Reason
    def __init__(self, text: str, reason: Reason) -> None: ...

class Unfaithful(CaptureError):
    backend: str
    value: str
    step: Any | None
    def __init__(self, text: str, backend: str, value: str, step: Any | None) -> None: ...

class NotInstalled(RuntimeError): ...
class NothingToShrink(RuntimeError): ...

class PrecisionError(AssertionError):
    witness: str
    report: Any
    def __init__(self, text: str, witness: str, report: Any) -> None: ...

class NotProved(AssertionError):
    status: str
    reason: str
    report: Any
    def __init__(self, text: str, status: str, reason: str, report: Any) -> None: ...

class Case:
    name: str
    about: str
    inputs: list[Any]
    steps: list[Any]
    observe: list[str]
    source: str
    contract: dict[str, Any] | None
    notes: list[str]
    results: list[str | None]
    def yaml(self, tensors: str = "") -> str: ...
    def save(self, path: str | Path) -> Path: ...
    def ops(self) -> list[str]: ...

class Report:
    findings: list[str]
    matrix: dict[str, dict[str, str]]
    results: list[dict[str, Any]]
    run_dir: Path
    console: str
    exit_code: int
    case: Case | None
    own: dict[str, dict[str, str]]
    changed: dict[str, list[str]]
    notes: list[str]
    data: dict[str, Any]
    @property
    def ok(self) -> bool: ...
    @property
    def ledger(self) -> list[_Ledger]: ...
    @property
    def budgets(self) -> list[_Budget]: ...
    def steps(self, backend: str) -> list[tuple[str, str, str]]: ...
    def shrink(
        self, backends: Sequence[str] | None = None, *, kind: str | None = None, value: str | None = None, minutes: float = 10,
        out: str | Path | None = None
    ) -> Shrunk: ...

class OpCalls:
    op: str
    operands: list[str]
    arguments: list[str]
    calls: int
    places: dict[tuple[str, str, int], int]
    place: str
    inside: str
    status: str
    reason: Reason | None
    text: str
    label: str
    max_ulp: float | None
    rms: float | None
    again: dict[str, str]
    id: str

class OpsReport:
    name: str
    rows: list[OpCalls]
    notes: list[str]
    same_as_plain: bool | None
    run_dir: Path | None
    seconds: float
    @property
    def ok(self) -> bool: ...
    @property
    def violations(self) -> list[OpCalls]: ...
    @property
    def judged(self) -> list[OpCalls]: ...
    @property
    def outside(self) -> dict[Reason, int]: ...
    def share(self, rows: list[OpCalls]) -> float: ...

class _Ledger:
    value: str
    elements: int
    of: int
    rms: float
    atol: float
    rtol: float
    causes: list[dict[str, Any]]
    entries: list[dict[str, Any]]
    explained: float
    order_only: float
    nearness: dict[str, Any] | None

class _Budget:
    value: str
    backends: list[str]
    left_out: str
    elements: int
    of: int
    rms: float
    precision: float
    at_stored_values: bool
    steps: int
    together: int
    entries: list[dict[str, Any]]
    in_float32: dict[str, Any] | None

class FirstDifference:
    step: str
    of_f: str
    value: str
    element: tuple[int, ...]
    f: float
    g: float

class Comparison:
    same_function: bool
    first_difference: FirstDifference | None
    ledgers: list[_Ledger]
    summary: str
    details: list[str]
    data: dict[str, Any]
    @property
    def ledger(self) -> _Ledger | None: ...
    @property
    def nearer(self) -> str | None: ...

class KernelReport:
    kernel: str
    case: Case
    status: str
    reason: str
    advice: str
    inputs: dict[str, dict[str, Any]]
    elements: int
    excluded: dict[str, int]
    left: list[str]
    form: str
    resembles: list[tuple[str, float]]
    witness: dict[str, Any] | None
    seconds: float
    computed: float
    @property
    def ok(self) -> bool: ...

class Shrunk:
    kind: str
    value: str
    op: str
    edge: str
    sentence: str
    steps: int
    steps_before: int
    elements: int
    elements_before: int
    stopped_early: bool
    yaml: str
    script: str

class _Backend:
    name: str
    ops: dict[str, Callable[..., Any]]
    arrays: Literal["torch", "numpy", "jax"]

_Data = Literal["auto", "real", "inline", "synthetic"]

def capture(
    f: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, *, name: str | None = None,
    data: _Data = "auto", backward: bool = False, grad: Any = None, verify: str | Iterable[str] = ...
) -> Case: ...
def capture_jax(
    f: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, *, name: str | None = None,
    data: _Data = "auto", verify: str | Iterable[str] = ...
) -> Case: ...
def check(
    f: Callable[..., Any] | Case | str | Path, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, *,
    backends: Sequence[str | _Backend] | None = None, name: str | None = None, data: _Data = "auto", backward: bool = False, grad: Any = None,
    verify: str | Iterable[str] | None = None, contract: dict[str, Any] | None = None,
    steps: Literal["auto", "asked", "observed", "parts"] = "auto", knobs: Mapping[str, str] | None = None, seed: int = 0,
    out: str | Path | None = None, timeout: float | None = None, minutes: float | None = None, show: bool = False, progress: bool = True
) -> Report: ...
def check_ops(
    f: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, *,
    backends: Sequence[str | _Backend] | None = None, known: Mapping[str, Callable[..., Any]] | None = None,
    compiled: str | None = None, minutes: float = 10, most_elements: int = ..., out: str | Path | None = None, progress: bool = True
) -> OpsReport: ...
def compare(
    f: Callable[..., Any] | Case | str | Path, g: Callable[..., Any] | Case | str | Path, args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None, *, backend: str | _Backend | None = None, seed: int = 0, timeout: float | None = None
) -> Comparison: ...
def assert_precision(
    kernel: Callable[..., Any], args: Sequence[Any], *, reference: Callable[..., Any] | Case | None = None,
    acc: str | list[str] | None = None, mid: str | list[str] | dict[str, str] | None = "default",
    prod: str | list[str] | None = None, operands: str | list[str] | dict[str, str | list[str]] | None = "default",
    out: str | list[str] | None = None, op: str = "matmul", attrs: dict[str, Any] | None = None, data: _Data = "auto", seed: int = 0,
    keep: str | Path | None = None
) -> Report | KernelReport: ...
def backend(name: str, ops: Mapping[str, Callable[..., Any]], arrays: Literal["torch", "numpy", "jax"] = "torch",
            device: str = "cpu") -> _Backend: ...
def shrink(
    f: Callable[..., Any] | Case | str | Path, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, *,
    backends: Sequence[str] = ..., kind: str | None = None, value: str | None = None, minutes: float = 10, seed: int = 0,
    out: str | Path | None = None, name: str | None = None, data: _Data = "auto", backward: bool = False
) -> Shrunk: ...
