# What `import ulpscope` has, with types; held against the package by tests/python/test_types.py (and mypy --strict).
#
# An array is a tensor of torch, or an array of NumPy or JAX: of any shape and dtype that the case language has. Arguments nest (lists,
# tuples, dicts) as the framework's own do. Folders are made where they are not there. Seconds are wall-clock.
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

class CaptureError(ValueError): ...

class Unfaithful(CaptureError):
    backend: str
    value: str
    step: Any | None
    def __init__(self, text: str, backend: str, value: str, step: Any | None) -> None: ...

class NotInstalled(RuntimeError): ...
class NothingToShrink(RuntimeError): ...

class PrecisionError(AssertionError):
    witness: str
    report: Report
    def __init__(self, text: str, witness: str, report: Report) -> None: ...

class NotProved(AssertionError):
    status: str
    reason: str
    report: Report
    def __init__(self, text: str, status: str, reason: str, report: Report) -> None: ...

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
    def steps(self, backend: str) -> list[tuple[str, str, str]]: ...
    def shrink(
        self, backends: Sequence[str] | None = None, *, kind: str | None = None, value: str | None = None, minutes: float = 10,
        out: str | Path | None = None
    ) -> Shrunk: ...

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
    data: _Data = "auto", backward: bool = False, verify: str | Iterable[str] = ...
) -> Case: ...
def capture_jax(
    f: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, *, name: str | None = None,
    data: _Data = "auto", verify: str | Iterable[str] = ...
) -> Case: ...
def check(
    f: Callable[..., Any] | Case | str | Path, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, *,
    backends: Sequence[str | _Backend] | None = None, name: str | None = None, data: _Data = "auto", backward: bool = False,
    verify: str | Iterable[str] | None = None, contract: dict[str, Any] | None = None,
    steps: Literal["auto", "asked", "observed", "parts"] = "auto", knobs: Mapping[str, str] | None = None, seed: int = 0,
    out: str | Path | None = None, timeout: float | None = None, show: bool = False, progress: bool = True
) -> Report: ...
def assert_precision(
    kernel: Callable[..., Any], args: Sequence[Any], *, acc: str | list[str] | None = None, mid: str | list[str] | None = None,
    prod: str | list[str] | None = None, operands: str | list[str] | dict[str, str | list[str]] | None = "default",
    out: str | list[str] | None = None, op: str = "matmul", attrs: dict[str, Any] | None = None, data: _Data = "auto", seed: int = 0,
    keep: str | Path | None = None
) -> Report: ...
def backend(name: str, ops: Mapping[str, Callable[..., Any]], arrays: Literal["torch", "numpy", "jax"] = "torch",
            device: str = "cpu") -> _Backend: ...
def shrink(
    f: Callable[..., Any] | Case | str | Path, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, *,
    backends: Sequence[str] = ..., kind: str | None = None, value: str | None = None, minutes: float = 10, seed: int = 0,
    out: str | Path | None = None, name: str | None = None, data: _Data = "auto", backward: bool = False
) -> Shrunk: ...
