"""A case in Python: tensors, steps, what is observed; written as YAML for people, as JSON for adapters.

The case language (cases/README.md) defines what a case may contain: this module only writes it. Numbers are written
so that the harness reads back the original bits.
"""

import dataclasses
import hashlib
import json
import math
import pathlib
import re
from dataclasses import dataclass, field

# The harness refuses files above 1 MiB and 250,000 entries; larger data goes into a file of tensors next to the case
# file.
MOST_TEXT = 900_000
MOST_VALUES = 200_000
WIDTH = 118

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z_]+)?")
_YAML_WORDS = ("true", "false", "null")
_PACKAGES = {"site-packages", "dist-packages"}


def _from_here(file):
    """The path of a source file from the current folder, as who reads a report looks for it; its name where it lies elsewhere, or is an
    installed package's."""
    path = pathlib.Path(file)
    try:
        here = path.resolve().relative_to(pathlib.Path.cwd().resolve())
    except (OSError, ValueError):
        return path.name
    return path.name if _PACKAGES & set(here.parts) else here.as_posix()


@dataclass
class Step:
    """One step: `of` holds names and numbers, `where` the lines of source that it comes from (file, line, text,
    function), outermost first."""

    op: str
    of: tuple = ()
    name: str = ""
    attrs: dict = field(default_factory=dict)
    steps: list = field(default_factory=list)
    out: str = ""
    where: tuple = ()
    position: int | None = None  # which of several results it is
    node: object = None  # of the exported graph
    module: str = ""  # the path of the nn.Module that it is in: "model.layers.0.self_attn"

    def origin(self):
        """The origin of the step in a case file: {module, file, line}, as far as known."""
        found = {"module": self.module} if self.module else {}
        if self.where:
            found |= {"file": _from_here(self.where[-1][0]), "line": self.where[-1][1]}
        return found

    def place(self):
        """'file.py:12: the line', or '' where the source is not known."""
        if not self.where:
            return ""
        file, line, text, _ = self.where[-1]
        return f"{pathlib.Path(file).name}:{line}: {text}"

    def at(self):
        """', at /path/to/file.py:12: the line', or '' where the source is not known: the end of an error."""
        return ", at {}:{}: {}".format(*self.where[-1]) if self.where else ""


@dataclass
class Input:
    """A tensor of a case: the real one, and whether the case holds its values, names a file with them, or has a fill of
    the same scale."""

    name: str
    tensor: object  # torch.Tensor
    requires_grad: bool = False
    synthetic: bool = False
    beside: bool = False
    fill: str = ""  # replaces the values

    @property
    def dtype(self):
        return str(self.tensor.dtype).removeprefix("torch.")

    @property
    def strides(self):
        """In elements, where the tensor lies otherwise than row-major; [] else."""
        tensor = self.tensor
        if tensor.is_contiguous() or any(stride < 1 for stride in tensor.stride()):
            return []
        return list(tensor.stride())


@dataclass
class Case:
    """A captured program. `notes` holds what a reader has to know: what was left out, what was written differently."""

    name: str
    about: str
    inputs: list
    steps: list
    observe: list
    source: str = ""
    contract: dict | None = None
    notes: list = field(default_factory=list)
    results: list = field(default_factory=list)  # of each thing that the function returns: the value's name, None for a constant
    program: object = None  # torch.export.ExportedProgram
    graph_inputs: list = field(default_factory=list)  # the values of its placeholders

    def all_steps(self):
        """Every step but scopes, in program order."""
        yield from every(self.steps)

    def ops(self):
        """The words of the vocabulary, and the aten:: ops, that the program uses."""
        return sorted({step.op for step in self.all_steps()})

    def yaml(self, tensors=""):
        """The case file; `tensors`: the file of larger tensors next to it (NAME.safetensors by default)."""
        lines = [f"about: {quoted(self.about)}"]
        lines += [line for note in self.notes for line in _comment(note)]
        lines += ["cases:", f"  - name: {self.name}"]
        if self.source:
            lines.append(f"    source: {quoted(self.source)}")
        lines.append("    tags: [nightly]")
        if self.inputs:
            lines.append("    tensors:")
            for each in self.inputs:
                lines += _tensor_lines(each, tensors or f"{self.name}.safetensors")
        lines.append("    program:")
        lines += _step_lines(self.steps, 6, [None])
        lines.append("    observe: " + flow(self.observe))
        if self.contract:
            lines.append("    contract: " + flow(self.contract))
        return "\n".join(lines) + "\n"

    def outline(self):
        """The case with zeros for the values of its tensors: its structure, without its data."""
        return dataclasses.replace(self, inputs=[dataclasses.replace(each, fill="zeros", beside=False) for each in self.inputs])

    def first(self, count):
        """The case that ends after its first `count` steps and observes as little as possible: one of its own tensors,
        unchanged."""
        smallest = min(self.inputs, key=lambda each: each.tensor.numel(), default=None)
        steps = _first(self.steps, [count])
        made = [step.name for step in every(steps) if step.name]
        return dataclasses.replace(self, steps=steps, observe=[smallest.name] if smallest is not None else made[-1:])

    def save(self, path):
        """Writes the case file, and the file of the tensors that do not fit into it, of the same name; the path of the first."""
        path = pathlib.Path(path)
        beside = path.with_suffix(".safetensors")
        path.write_text(self.yaml(beside.name), encoding="utf-8")
        held = {each.name: each for each in self.inputs if each.beside}
        if held:
            from ulpscope import adapters
            adapters.write_safetensors(str(beside), {name: adapters.to_wire(each.tensor) for name, each in held.items()})
        return path

    def fit(self, data):
        """fit() of its inputs, with a note that names those which are made."""
        if synthetic := fit(self.inputs, data):
            self.notes.append(f"made from a seed, with the dtype, shape, layout and scale of the real ones: {', '.join(synthetic)}.")

    def wire_program(self, observe=None):
        """The program as the protocol carries it (backends/PROTOCOL.md, "run")."""
        tensors = [{"name": each.name, "dtype": each.dtype, "shape": list(each.tensor.shape), "strides": each.strides,
                    "requires_grad": each.requires_grad} for each in self.inputs]
        return {"tensors": tensors, "steps": [_wire_step(step) for step in self.steps],
                "observe": list(self.observe if observe is None else observe)}

    def __str__(self):
        return self.yaml()


def fit(inputs, data):
    """Decides where the values of tensors are stored. `data`: "real" (or "auto"): in the case file until it is full,
    then in a file next to it; "inline": in the case file, or an error; "synthetic": nowhere, since the harness makes
    others of their scale. Returns the names of the tensors that are made so."""
    values = text = 0
    for each in sorted(inputs, key=lambda each: each.tensor.numel()):
        if short_fill(each):
            continue
        if data == "synthetic":
            each.synthetic = True
            continue
        values += each.tensor.numel()
        text += len(_values_text(each)) if values <= MOST_VALUES else MOST_TEXT
        if values > MOST_VALUES or text > MOST_TEXT:
            if data == "inline":
                raise ValueError(f"the values do not fit into a case file (1 MiB): {each.name} {each.dtype}"
                                 f"{list(each.tensor.shape)}; capture(..., data=\"real\") puts them into a file beside it")
            each.beside = True
    return [each.name for each in inputs if each.synthetic]


def _first(steps, left):
    """The first `left[0]` steps that are no scopes, in their scopes."""
    kept = []
    for step in steps:
        if left[0] > 0:
            kept.append(dataclasses.replace(step, steps=_first(step.steps, left)) if step.steps else step)
            left[0] -= not step.steps
    return kept


def every(steps):
    """Every step but scopes, in program order."""
    for step in steps:
        if step.steps:
            yield from every(step.steps)
        else:
            yield step


def number(value):
    """A Python number as YAML text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return repr(value)


def quoted(text):
    """Text as a YAML scalar."""
    plain = text and not text[0].isspace() and all(c.isalnum() or c in " _-.,;/()?" for c in text) and text[0].isalpha()
    return text if plain and text == text.strip() else json.dumps(text, ensure_ascii=True)


def flow(value):
    """A value in flow style, on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(flow(each) for each in value) + "]"
    if value is None:
        return "null"
    if isinstance(value, str):
        return value if _WORD.fullmatch(value) and value not in _YAML_WORDS else json.dumps(value)
    return number(value)


def _comment(text):
    words, line = text.split(), "#"
    for word in words:
        if len(line) + len(word) >= WIDTH:
            yield line
            line = "#"
        line += " " + word
    yield line


def _tensor_lines(each, file):
    entry = f"      {each.name}: {{dtype: {each.dtype}, shape: {flow(list(each.tensor.shape))}"
    if each.strides:
        entry += f", layout: {{strides: {flow(each.strides)}}}"
    if each.requires_grad:
        entry += ", requires_grad: true"
    fill = each.fill or (_scale_fill(each) if each.synthetic else short_fill(each))
    if each.beside:
        from ulpscope import adapters
        digest = hashlib.sha256(adapters.to_wire(each.tensor).data).hexdigest()
        fill = f'{{file: {{path: {file}, tensor: {each.name}, sha256: "{digest}"}}}}'
    if fill:
        return [f"{entry}, fill: {fill}}}"]
    return [entry + ", fill: {values: [", *_wrapped(elements(each), 10), "      ]}}"]


def _wrapped(texts, indent):
    lines, line = [], " " * indent
    for index, text in enumerate(texts):
        piece = text + ("," if index + 1 < len(texts) else "")
        if len(line) + len(piece) > WIDTH:
            lines.append(line)
            line = " " * indent
        line += (" " if not line.isspace() else "") + piece
    return [*lines, line]


def _values_text(each):
    return "\n".join(_wrapped(elements(each), 10))


def elements(each):
    """Every element, row-major, as text that reads back to its bits."""
    import torch
    flat = each.tensor.detach().cpu().contiguous().reshape(-1)
    if not each.tensor.dtype.is_floating_point:
        return [str(int(value)) for value in flat.tolist()]  # of booleans too: 0 and 1
    width = flat.element_size()
    patterns = flat.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[width]).tolist()
    precision = 1 - math.log2(torch.finfo(each.tensor.dtype).eps)  # bits of a significand
    digits = math.ceil(1 + precision * math.log10(2))  # decimals that distinguish all values
    texts = []
    for value, pattern in zip(flat.double().tolist(), patterns):
        if math.isfinite(value) and (value != 0 or math.copysign(1, value) > 0):
            texts.append(f"{value:.{digits}g}")
        else:
            texts.append(f"bits:0x{pattern % (1 << 8 * width):0{2 * width}x}")
    return texts


def short_fill(each):
    """The fill of a tensor that one word describes: one value everywhere, or a count."""
    import torch
    flat = each.tensor.detach().cpu().reshape(-1)
    first = flat[0].item()
    if isinstance(first, float) and (not math.isfinite(first) or (first == 0 and math.copysign(1, first) < 0)):
        return ""
    if torch.equal(flat, flat[:1].expand_as(flat)):
        if first in (0, 1):
            return "ones" if first else "zeros"
        return f"{{full: {{value: {_element_of(flat[:1])}}}}}"
    if flat.dtype in (torch.int64, torch.int32) and torch.equal(flat, torch.arange(flat.numel(), dtype=flat.dtype) + first):
        return "arange" if first == 0 else f"{{arange: {{start: {first}}}}}"
    return ""


def _element_of(flat):
    return elements(Input("", flat))[0] if flat.dtype.is_floating_point else str(int(flat[0].item()))


def _scale_fill(each):
    """A fill of the same scale as the tensor: positive where it is, of the same mean and deviation else."""
    flat = each.tensor.detach().cpu().reshape(-1)
    if not each.tensor.dtype.is_floating_point:
        return f"{{integers: {{low: {int(flat.min())}, high: {int(flat.max())}}}}}"
    flat = flat.double()
    flat = flat[flat.isfinite()]
    low, high = (float(flat.min()), float(flat.max())) if flat.numel() else (0.0, 1.0)
    if low >= 0 and high > low:
        return f"{{uniform: {{low: {low:.4g}, high: {high:.4g}}}}}"
    deviation = float(flat.std()) or 1.0
    return f"{{normal: {{scale: {deviation:.4g}, mean: {float(flat.mean()):.4g}}}}}"


def _step_lines(steps, indent, last):
    lines = []
    for step, names in _calls(steps):
        if not step.steps and step.place() and step.place() != last[0]:
            last[0] = step.place()
            lines.append(" " * indent + "# " + last[0][:WIDTH])
        entry = {"op": step.op}
        if step.of:
            entry["of"] = list(step.of)
        entry.update(step.attrs)
        if step.out:
            entry["out"] = step.out
        if step.name:
            entry["as"] = names if len(names) > 1 else step.name
        if not step.steps and (origin := step.origin()):
            entry["at"] = origin
        if not step.steps:
            lines.append(" " * indent + "- " + flow(entry))
            continue
        lines.append(f"{' ' * indent}- op: {step.op}")
        lines += [f"{' ' * indent}  {key}: {flow(value)}" for key, value in step.attrs.items()]
        lines.append(f"{' ' * indent}  steps:")
        lines += _step_lines(step.steps, indent + 4, last)
    return lines


def _calls(steps):
    """(step, the names of its results): neighbours that name the first, the second, ... result of one call are one step of a case."""
    calls = []
    for step in steps:
        said = {key: value for key, value in step.attrs.items() if key != "result"}
        before, names = calls[-1] if calls else (None, [])
        if before is not None and (step.op, step.of, said) == (before.op, before.of, before.attrs) and not step.out + before.out \
                and not step.steps and step.attrs.get("result") == len(names):
            names.append(step.name)
        else:
            calls.append((step, [step.name]))
    return calls


def _wire_step(step):
    attrs = {key: _wire_number(value) for key, value in step.attrs.items()}
    if step.op == "autocast":
        attrs = {"device": "auto", "dtype": "bfloat16", "enabled": True, "cache": True, **attrs}
    return {"op": step.op, "of": [each if isinstance(each, str) else {"scalar": _wire_number(each)} for each in step.of],
            "out": step.out, "as": step.name, "attrs": attrs, "steps": [_wire_step(each) for each in step.steps]}


def _wire_number(value):
    return number(value) if isinstance(value, float) and not math.isfinite(value) else value
