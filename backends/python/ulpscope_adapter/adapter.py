"""Adapter: the class that a backend's author derives from, and the checks made on its behalf."""

import traceback

from ulpscope_adapter.request import SCOPES, STORED, Unsupported

_LISTS = ("backends", "dtypes", "scopes", "capabilities", "devices")


class Adapter:
    """Serves one or more backends. Only `capabilities` and `run` must be written."""
    def configure(self, backend, device, knobs):
        """Called once, before everything else: set here what must be set before a library is loaded."""

    def capabilities(self):
        """A dict. Needed: name, backends, versions, dtypes, ops {op: [attributes], or None for any}.

        Optional: devices (["cpu"]), knobs {name: [values], "N" standing for a positive integer} (none),
        scopes (none), capabilities (words: "out", "autograd", "strides"), observations (suffixes after NAME.,
        such as "grad"; "peak_bytes"), reasons {word or knob: why it is not served}.
        """
        raise NotImplementedError

    def start(self):
        """Called once, when the backend, device and knobs were found to be among the capabilities."""

    def prepare(self, request):
        """Called before each run, before the floating-point environment and the threads are looked at."""

    def run(self, request):
        """Runs one program and returns a Result. An exception from it is reported as the framework's error."""
        raise NotImplementedError

    def read_back(self):
        """Knobs as the framework itself states them now; never an echo of the request."""
        return {}

    def threads(self):
        """How many threads the framework computes with now."""
        return 1

    def root_cause(self, error):
        """The exception to report, for a framework that wraps its errors."""
        return error

    def report_error(self, error):
        """Called with what `run` raised, for whoever reads this process's log."""
        traceback.print_exception(error)

    def error_text(self, error):
        """The framework's own error text, without the parts about this adapter's source."""
        return str(error)


def filled_capabilities(adapter):
    """The adapter's capabilities with every optional entry present."""
    table = dict(adapter.capabilities())
    for key in _LISTS:
        table.setdefault(key, ["cpu"] if key == "devices" else [])
    for key in ("knobs", "reasons", "versions"):
        table.setdefault(key, {})
    table.setdefault("observations", [])
    return table


def check_worker(table, backend, device, knobs):
    """Raises Unsupported when this worker cannot be had as requested."""
    if backend not in table["backends"]:
        raise Unsupported(f"backend {backend}: this adapter serves {', '.join(table['backends'])}")
    if device not in table["devices"]:
        raise Unsupported(f"device {device}: {backend} serves {', '.join(table['devices'])}")
    for knob, value in knobs.items():
        allowed = table["knobs"].get(knob)
        if allowed is None:
            known = f"not one of {backend}'s ({', '.join(sorted(table['knobs'])) or 'none'})"
            raise Unsupported(f"knob {knob}: {table['reasons'].get(knob, known)}")
        if value not in allowed and not ("N" in allowed and value.isdigit() and int(value) > 0):
            raise Unsupported(f"knob {knob}={value}: {backend} takes {', '.join(allowed)}")


def check_request(table, request):
    """Raises Unsupported, naming the first thing in `request` that the capabilities do not hold."""
    def refuse(word, where=""):
        reason = table["reasons"].get(word)
        raise Unsupported((f"{where}: " if where else "") + (reason or f"{word} is not served"))

    for spec in request.tensors:
        if spec.dtype not in table["dtypes"]:
            refuse(spec.dtype, f"tensor {spec.name}")
        if spec.strides and "strides" not in table["capabilities"]:
            refuse("strides", f"tensor {spec.name}")
    # An out= shows why its buffer exists, so it is named before the `empty` that makes the buffer.
    for step in request.all_steps():
        if step.out and "out" not in table["capabilities"]:
            refuse("out", f"{step.op} out={step.out}")
    for step in request.all_steps():
        _check_step(table, step, refuse)
    defined = {spec.name for spec in request.tensors} | {step.target for step in request.all_steps()}
    for step in request.all_steps():
        for operand in step.of:
            if isinstance(operand, str) and operand.partition(".")[0] not in defined:
                refuse(operand, f"{step.op}: operand {operand}")
    _check_observed(table, request, refuse)


def _check_step(table, step, refuse):
    if step.op in SCOPES:
        if step.op not in table["scopes"]:
            refuse(step.op, f"scope {step.op}")
        return
    family = "aten::*" if step.op.startswith("aten::") else "torch.*" if step.op.startswith("torch.") else step.op
    known = step.op if step.op in table["ops"] else family
    if known not in table["ops"]:
        refuse(step.op, f"op {step.op}")
    attributes = table["ops"][known]
    for attribute, value in step.attrs.items():
        if attributes is not None and attribute not in attributes:
            refuse(attribute, f"{step.op} {attribute}=")
        if attribute in ("dtype", "out_dtype", "preferred_element_type") and value not in table["dtypes"]:
            refuse(value, f"{step.op} {attribute}={value}")


def _check_observed(table, request, refuse):
    defined = {spec.name for spec in request.tensors}
    defined |= {step.target for step in request.all_steps() if step.target}
    for name in request.observe:
        if name in ("peak_bytes", STORED) and name in table["observations"]:
            continue
        base, _, suffix = name.partition(".")
        if base not in defined or (suffix and suffix not in table["observations"]):
            refuse(suffix if base in defined else name, f"observation {name}")
