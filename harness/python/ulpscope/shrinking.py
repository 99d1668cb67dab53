"""shrink(): the smallest program on which two backends differ as they do on this one, and a script that shows it
upstream."""

import json
import pathlib
import tempfile
from dataclasses import dataclass, field

from ulpscope import folders, kernels
from ulpscope.case import Case


class NothingToShrink(RuntimeError):
    """The two backends do not differ, or in another way; the text states how."""


@dataclass
class Shrunk:
    """The result of a search. `print(shrunk)` shows the case; `shrunk.script` goes into a report upstream.

    kind, value, op, edge   the divergence: its kind, value, op and edge
    sentence                the same as the report says it
    steps, steps_before     how many steps the program has, and had; `elements` those of its tensors
    stopped_early           time was up: it may be smaller yet
    yaml, script            the case, and a Python script without ulpscope ("" if neither side is a Python stack:
                            `no_script`)
    folder                  where case.yaml, repro.py and shrunk.json lie; a temporary one goes with this object
    """

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
    no_script: str
    folder: pathlib.Path
    temporary: object = field(default=None, compare=False, repr=False)

    def __str__(self):
        return self.yaml


def shrink(f, args=(), kwargs=None, *, backends=("torch-eager", "torch-inductor"), kind=None, value=None, minutes=10, seed=0, out=None,
           name=None, data="auto", backward=False):
    """Shrinks `f(*args, **kwargs)` as long as the two `backends` differ in the same kind, at the same value and edge.

    `f` is a function, an nn.Module, a Case, or the path of a case file. The first backend's results replace the
    steps that are removed. `kind` (outcome, dtype, precision, order, value, special, casts) and `value` select the
    divergence, by default the first. `minutes` bounds the search. `out` is the folder for the files, else a
    temporary one. Raises NothingToShrink.
    """
    if len(backends) != 2:
        raise ValueError(f"two backends, not {len(backends)}: {', '.join(map(str, backends))}")
    if isinstance(f, (str, pathlib.Path)):
        return _shrunk(pathlib.Path(f), backends, kind, value, minutes, seed, out)
    if not isinstance(f, Case):
        from ulpscope import capturing
        f = capturing.capture(f, args, kwargs, name=name, data=data, backward=backward, verify=())
    with tempfile.TemporaryDirectory(prefix="ulpscope-") as folder:
        return _shrunk(f.save(pathlib.Path(folder) / f"{f.name}.yaml"), backends, kind, value, minutes, seed, out)


def _shrunk(path, backends, kind, value, minutes, seed, out):
    folder, temporary = folders.kept(out, "ulpscope-shrunk-")
    command = ["shrink", str(path), "-o", str(folder), "-q", "--minutes", str(minutes), "--seed", str(seed)]
    command += ["--kind", kind] if kind else []
    command += ["--value", value] if value else []
    code, _, said = kernels.called(command, backends)
    if code == 1:
        raise NothingToShrink(said.strip().removeprefix("ulpscope: "))
    if code != 0:
        from ulpscope.checking import RunFailed
        raise RunFailed(f"ulpscope exits {code}: {said.strip()[-2000:]}")
    facts = json.loads((folder / "shrunk.json").read_text(encoding="utf-8"))
    script = folder / "repro.py"
    return Shrunk(**{key: facts[key] for key in ("kind", "value", "op", "edge", "sentence", "steps", "steps_before", "elements",
                                                 "elements_before", "stopped_early", "no_script")},
                  yaml=(folder / "case.yaml").read_text(encoding="utf-8"),
                  script=script.read_text(encoding="utf-8") if script.is_file() else "", folder=folder, temporary=temporary)
