"""check_ops(): every op of a real eager run, judged by itself on the operands that it had.

Nothing is exported: the function runs, with its branches, its shapes that depend on values and its custom ops
(recording.py). Each distinct call is a case of its own (calls.py). The recorded results are judged; the backends of
the run compute each call once more for comparison.
"""

import contextlib
import json
import pathlib
import re
import subprocess
import tempfile
import time

import torch
from torch.utils import _pytree as tree

from ulpscope import adapters, capturing, capturing_jax, checking, faithful, folders, kernels, places, recording
from ulpscope.ops_report import OpCalls, OpsReport, as_text
from ulpscope.refusals import CaptureError, Reason

places.find_sdk()
from ulpscope_adapter import Adapter, Result, Unsupported  # noqa: E402

AS_RUN = "as-run"


def check_ops(f, args=(), kwargs=None, *, backends=None, known=None, compiled=None, minutes=10, most_elements=1 << 24, out=None,
              progress=True):
    """Runs `f(*args, **kwargs)` op by op, in eager PyTorch with one thread or in JAX, and judges every op of it; an
    OpsReport.

    `f` is a function or an nn.Module; it may branch on values, have shapes that depend on them, and call custom ops.
    An op is one of the dispatcher's ops below autograd. Calls of one op are one row if dtypes, shapes and strides of
    their operands and all other arguments are the same; the judged call of a row is the one whose result is furthest
    from the same op in float64.

    backends       compute each judged call once more, from the same operands: by default torch-eager on the device of
                   the tensors; () for none. The report states where their bits differ from those of the run.
    known          {"library::op": a function of PyTorch}: the definition of a custom op, with the op's arguments.
                   Without it, the calls that a custom op's own Python makes are judged.
    compiled       "aot_eager": the function is also compiled, and the report states which results of the eager run
                   occur in its graphs, bit by bit; for a compiler that fuses ("inductor") it states that no op is
                   observed by itself
    minutes        after which nothing more is judged; the report has what was judged by then
    most_elements  calls whose operands have more elements together are counted, and not judged
    out            a folder that keeps the cases and the runs; without it, they are removed with the report

    If an argument is a JAX array, an op is a primitive: those inside functions that JAX compiles by itself, and
    inside branches and loops, are run one by one, the first call of a row is judged, and jax-eager computes it once
    more.

    An op that computes in float32 or better inside and rounds once, to its result, conforms. Exceptions of `f` pass
    through.
    """
    began = time.monotonic()
    say = checking.Progress(progress)
    kwargs = dict(kwargs or {})
    report = OpsReport(name=capturing.name_of(f))
    own_jax = capturing_jax.is_jax(args, kwargs)
    if own_jax and (known or compiled):
        raise ValueError("known= and compiled= are for functions of PyTorch")
    if own_jax:
        recorder = _run_jax(f, tuple(args), kwargs, most_elements, report)
    else:
        recorder = _run(f, tuple(args), kwargs, most_elements, 15 * minutes, report, compiled)
    say(f"{report.name}: {sum(each.calls for each in recorder.groups.values())} calls of ops recorded, {len(recorder.groups)} distinct")
    kept, report.folder = folders.kept(out)
    report.run_dir = pathlib.Path(kept)
    if backends is None:
        backends = ((f"jax-eager:threads={capturing_jax.threads()}", ) if own_jax
                    else adapters.on(("torch-eager", ), capturing.device_of(f, args, kwargs)))
    cases = _cases(recorder, known or {}, report, own_jax)
    report.notes += [f"{name}: an op with functions inside, none of whose ops were recorded ({calls} calls)"
                     for name, calls in recorder.opaque.items()]
    say(f"{len(cases)} of them written as cases")
    with tempfile.TemporaryDirectory(prefix="ulpscope-") as folder:
        cases = _without_refused(cases, pathlib.Path(folder))
    _judge(cases, backends, report, began + 60 * minutes - time.monotonic())
    say(f"{len(report.judged)} distinct calls judged")
    for row in report.rows:
        _compare_again(row)
    report.seconds = time.monotonic() - began
    return report


def _run(f, args, kwargs, most_elements, screen, report, compiled):
    """Runs `f` recorded, and, where that leaves things as they were, once more as it is; the Recorder."""
    module = capturing.wrapper(f)
    recorder = recording.Recorder({id(each): name for name, each in module.named_modules()}, most_elements, screen, compiled is not None)
    parameters = list(module.parameters())
    versions = [each._version for each in parameters]
    with torch.random.fork_rng(), faithful.one_thread(), faithful.no_gradients_kept(f, args, kwargs) as (own_args, own_kwargs, _):
        found = recording.recorded(f, own_args, own_kwargs, recorder)
    if versions != [each._version for each in parameters]:
        report.notes.append(f"{report.name} writes into its parameters, and was not run a second time without being recorded")
        return recorder
    try:
        with faithful.one_thread(), faithful.no_gradients_kept(f, args, kwargs) as (own_args, own_kwargs, _):
            plain = f(*own_args, **own_kwargs)
    except Exception as error:  # a second call of some functions is another one
        report.notes.append(f"{report.name} raises {type(error).__name__} when it is run a second time, without being recorded")
        return recorder
    pairs = [(one, other) for one, other in zip(tree.tree_leaves(found), tree.tree_leaves(plain)) if isinstance(one, torch.Tensor)]
    other = [text for one, two in pairs if (text := faithful.difference(two.detach(), one.detach(), "by itself", "recorded"))]
    report.same_as_plain = not other
    if other:
        report.notes.append(f"{report.name} gives other bits where its ops are recorded ({other[0]}): it is random, or PyTorch chooses "
                            "other ops where a mode sees them")
    if compiled is not None:
        from ulpscope import ops_compiled
        report.notes += ops_compiled.sentences(f, args, kwargs, recorder, compiled, torch.is_grad_enabled())
    return recorder


def _run_jax(f, args, kwargs, most_elements, report):
    """The same for a function of JAX."""
    import jax

    from ulpscope import recording_jax
    recorder = recording_jax.Recorder(most_elements)
    found = recording_jax.recorded(f, args, kwargs, recorder)
    pairs = zip(jax.tree_util.tree_leaves(found), jax.tree_util.tree_leaves(f(*args, **kwargs)))
    other = [text for one, two in pairs if hasattr(one, "dtype") and not jax.dtypes.issubdtype(one.dtype, jax.dtypes.prng_key)
             and (text := faithful.difference(kernels.as_torch(two), kernels.as_torch(one), "by itself", "recorded"))]
    report.same_as_plain = not other
    if other:
        report.notes.append(f"{report.name} gives other bits where its primitives are recorded ({other[0]}): functions that JAX compiles by "
                            "themselves are run primitive by primitive here")
    return recorder


def _cases(recorder, known, report, own_jax):
    """[(Case, {value: recorded tensor}, row)] of the groups that a case can express; every group is a row of the
    report."""
    if own_jax:
        from ulpscope.recording_jax import case_of
    else:
        from ulpscope.calls import case_of
    found = []
    for number, group in enumerate(recorder.groups.values()):
        row = OpCalls.of(group)
        report.rows.append(row)
        if group.kind == "view":
            row.status, row.text = "view", "shows memory otherwise"
            continue
        if group.kept is None:
            row.text = group.unlike or f"{group.too_large} elements, more than most_elements"
            continue
        name = f"op{number:04d}_{capturing.word(group.op.rpartition('::')[2])}"
        try:
            meant = known.get(group.op)
            row.meant = meant is not None
            case, results = _meant(meant, group.kept, name) if meant else case_of(group.kept, name)
        except CaptureError as error:
            row.reason, row.text = error.reason, str(error).partition(", at /")[0]
            if group.kind == "opened":
                row.text += "; the calls that its Python makes are rows of their own"
            continue
        except Exception as error:  # one op that cannot be written takes nothing from the others
            row.reason, row.text = Reason.OWN_FAULT, f"{type(error).__name__}: {error}"
            continue
        if not results:
            row.status, row.label, row.max_ulp = "conforms", "hands an operand on, bit by bit", 0.0
            continue
        found.append((case, results, row))
    return sorted(found, key=lambda each: sum(one.tensor.numel() for one in each[0].inputs))


def _meant(function, call, name):
    """A call of a custom op as the program that it is meant to compute."""
    case = capturing.capture(function, call.args, call.kwargs, name=name, verify=())
    results = {value: tensor for value, tensor in zip(case.results, call.results) if value}
    case.contract = {"status": "de_facto", "accept": {value: {"acc": "at_least_float32", "mid": "none"} for value in results}}
    return case, results


def _without_refused(cases, folder):
    """The cases that the harness accepts; the rows of the others state why it does not."""
    if not cases:
        return cases
    path = checking.saved([case.outline() for case, _, _ in cases], folder)
    done = subprocess.run([str(places.binary()), "lint", str(path)], env=places.environment(), capture_output=True, text=True, check=False)
    refused = {}
    for file, said in re.findall(r"(?m)^(\S+):\d+:\d+: (?!warning: )(.*)$", done.stdout + done.stderr):
        refused.setdefault(pathlib.Path(file).stem, said)
    if done.returncode == 0:
        refused = {}
    for case, _, row in cases:
        if case.name in refused:
            row.reason, row.text = Reason.HARNESS, refused[case.name]
    return [each for each in cases if each[0].name not in refused]


class _AsRun:
    """A backend whose results are the recorded ones."""

    name = AS_RUN

    def __init__(self, results):
        self.results = results

    def adapter(self):
        return _Recorded(self.results)


class _Recorded(Adapter):
    def __init__(self, results):
        self._results = results

    def configure(self, backend_name, device, knobs):
        pass

    def threads(self):
        return 1

    def capabilities(self):
        from ulpscope_torch import ops
        return {"name": AS_RUN, "backends": [AS_RUN], "versions": {"torch": str(torch.__version__)}, "knobs": {"threads": ["1", "N"]},
                "dtypes": list(ops.DTYPES), "ops": {**ops.OPS, "aten::*": None}, "capabilities": ["strides"]}

    def run(self, request):
        results = self._results.get(request.case.partition("~")[0].rpartition("/")[2])
        if results is None or not set(request.observe) <= set(results):
            raise Unsupported("only what the run gave is known")
        return Result(values={name: adapters.to_wire(results[name]) for name in request.observe})


def _judge(cases, backends, report, seconds):
    """Judges the cases in one run of the harness, which is interrupted after `seconds`; fills the rows."""
    if not cases:
        return
    path = checking.saved([case for case, _, _ in cases], report.run_dir / "program")
    own = _AsRun({case.name: results for case, results, _ in cases})
    command = ["run", str(path), "-o", str(report.run_dir), "-j", str(checking.jobs([own, *backends])), "--no-steps", "--no-trace"]
    code, console, said = kernels.called(command, [own, *backends], seconds=max(seconds, 1.0))
    found = report.run_dir / "report.json"
    if code in (3, 4) or not found.is_file():
        raise checking.RunFailed(f"ulpscope exits {code}: {(said or console).strip()[-2000:]}")
    rows = {case.name: (case, row) for case, _, row in cases}
    late = 0
    for result in json.loads(found.read_text(encoding="utf-8"))["results"]:
        case, row = rows[result["id"].rpartition("/")[2]]
        row.id = result["id"]
        if result["backend"] == AS_RUN and result["status"] == "NOT_RUN":
            row.text, late = "no time was left", late + 1
        elif result["backend"] == AS_RUN:
            row.judged(case, result)
        elif not row.meant and result["status"] != "NOT_RUN":
            row.beside[result["backend"]] = result
    if late:
        report.notes.append(f"{late} distinct calls are not judged: the time was over")


def _compare_again(row):
    """States for each backend whether it gives the recorded bits, and, if torch-eager does not, whether the op does so
    here."""
    again = {}
    for backend, result in row.beside.items():
        outcome = result["outcome"]
        if result["status"] == "SKIP":
            again[backend] = f"skipped: {result['reason']}"
        elif outcome["kind"] != "completed":
            again[backend] = f"{outcome['kind']}: {outcome.get('text') or result['reason']}"
        elif all(each["bits"] == row.bits.get(value) for value, each in result["values"].items()):
            again[backend] = ""
        elif backend.partition("@")[0].partition(":")[0] == "torch-eager":
            again[backend] = f"other bits; {_here(row.call)}"
        else:
            again[backend] = "other bits: " + "; ".join(dict.fromkeys(f"{each['dtype']}, {as_text(each)}" for each in result["values"].values()))
    row.again = again


def _here(call):
    """The op's result when it is run again in this process, compared with the recorded one."""
    args, kwargs = tree.tree_map(recording.copied, (call.args, call.kwargs))
    with torch.no_grad(), faithful.one_thread(), contextlib.suppress(Exception):
        found = tree.tree_leaves(call.func(*args, **kwargs))
        other = any(isinstance(two, torch.Tensor) and faithful.difference(one, two) for one, two in zip(call.results, found))
        return ("run again in this process, it gives other bits too: it is not deterministic" if other else
                "run again in this process, it gives the recorded ones: the layout or the op is another one there")
    return "run again in this process, it raises"
