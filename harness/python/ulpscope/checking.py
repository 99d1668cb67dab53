"""check(): a program, run on backends and judged."""

import concurrent.futures
import dataclasses
import json
import os
import pathlib
import sys
import time

from ulpscope import adapters, faithful, folders, kernels, splitting
from ulpscope.case import Case
from ulpscope.reporting import Report, findings_of



class RunFailed(RuntimeError):
    """The harness gave no report; the text is its message."""


class Refused(RunFailed, ValueError):
    """An unknown word in the call; the text names it, the expected words and the likely one."""


def check(f, args=(), kwargs=None, *, backends=None, name=None, data="auto", backward=False, grad=None, verify=None,
          contract=None, steps="auto", knobs=None, seed=0, out=None, timeout=None, minutes=None, show=False, progress=True):
    """Runs `f(*args, **kwargs)` as a case on `backends` and gives the Report.

    `f` is a function, an nn.Module, a Case, or the path of a case file. A backend is named as on the command line
    (NAME[@DEVICE][:knob=value,...]) or made by ulpscope.backend(). The default is torch-eager and torch-inductor on
    the device of the tensors (@cuda, for those on a GPU), or, if an argument is a JAX array, jax-eager and jax.
    `verify` is capture()'s (or capture_jax()'s): by default, the case is compared in bits with the function on
    torch-eager (or jax-eager), and on the compiled backends that are requested (where a difference is a finding, not
    an error).

    `steps` selects what is judged: "asked", the program unchanged, its steps from a second run that observes them,
    and the intermediate roundings of a result if observing changes it, as it does if a compiler fuses; "observed",
    the program with every step observed, and the number of elements in which that differs from the unchanged
    program; "parts", the program split at the ops that have no reference, each part on the operands that torch-eager
    computed; "auto" is "asked".

    `out` is a folder for the run, with the case in its folder program/; by default, the folder is removed with the
    report, at the end of the process at the latest. `minutes` limits everything but the capture, which cannot be
    interrupted: the report then has what was judged by that time, its notes list what was left out, and its exit
    code is 6. `show` prints the report; `progress` reports on stderr what was done, after how many seconds, and what
    is left.
    """
    from ulpscope import capturing_jax
    say = Progress(progress, minutes)
    case, own_jax = (f if isinstance(f, Case) else None), False
    if not isinstance(f, (Case, str, pathlib.Path)):
        own_jax = capturing_jax.is_jax(args, kwargs)
        case = _captured(f, args, kwargs, own_jax, name=name, data=data, backward=backward, grad=grad, verify=verify)
        if contract:
            case.contract = contract
        say(f"{case.name}: {sum(1 for _ in case.all_steps())} steps captured")
    backends = backends or (("jax-eager", "jax") if own_jax else _torch_backends(f, args, kwargs))
    how = _how(case, steps, contract)
    parts, values = splitting.split(case) if how == "parts" else ([], {})
    kept, temporary = folders.kept(out)
    path = pathlib.Path(f) if case is None else saved(parts or [_observing(case) if how == "observed" else case], kept / "program")
    computed = {}
    if case is not None and case.program is not None and case is not f and how == "asked" and not own_jax and all(
            isinstance(each, str) for each in backends):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            running = pool.submit(run, path, backends, out=kept, knobs=knobs, seed=seed, timeout=timeout, say=say)
            computed = _meanwhile(case, backends, f, args, kwargs)
            report = running.result()
    else:
        report = run(path, backends, out=kept, knobs=knobs, seed=seed, timeout=timeout, written=case is not None, say=say)
    report.folder = temporary
    say(f"run and judged: {len(report.findings)} findings")
    for sentence in report.findings[:3]:
        say("  " + sentence)
    report.case = case
    if parts:
        _say_parts(report, parts, values)
    if case is None or any(each.synthetic for each in case.inputs) or say.is_over():
        return _shown(report, show)
    _look_beside(report, f, args, kwargs, backends=backends, how=how, values=values if parts else None, own_jax=own_jax, computed=computed,
                 say=say)
    return _shown(report, show)


def _look_beside(report, f, args, kwargs, *, backends, how, values, own_jax, computed, say):
    """Notes where a run gives other bits than the program as it is, or than `f` itself in this process. `values`: of a run in parts, what
    torch-eager computed."""
    case = report.case
    given = {} if values is not None else _recorded(report)
    beside = own_jax or case.program is not None and case is not f
    if how == "observed":
        with concurrent.futures.ThreadPoolExecutor(jobs(backends)) as pool:
            asked = _started(case, backends, given, pool)
            computed = {} if own_jax or not beside else _computed(case, given, f, args, kwargs)  # meanwhile, in this process
            given = _asked(report, asked, given)
        say("run once more as it is, with nothing inside observed")
    elif values is None:
        report.changed = _changed(report)
    else:
        given = {each: values for each in backends if each == "torch-eager"}
    if beside:
        report.own = (_beside_own_jax(case, given, f, args, kwargs) if own_jax else
                      _beside_own(case, given, f, args, kwargs, computed))
        report.findings += [f"{backend}: {value} is not what {case.name} gives as it runs here ({text})"
                            for backend, values in report.own.items() for value, text in values.items() if text]
        say("compared in bits with the function itself")


class Progress:
    """Reports on stderr what was done and how many seconds after the start, or nothing. Knows the rest of `minutes`, if
    that is a limit."""

    def __init__(self, wanted=False, minutes=None):
        if minutes is not None and minutes <= 0:
            raise ValueError(f"minutes={minutes}: a limit is above 0")
        self._wanted, self._began, self._minutes = wanted, time.monotonic(), minutes
        if minutes:
            self(f"at most {60 * minutes:g} s, and the capture")

    def begin(self):
        """The arguments that limit a run of the harness: the clock of the limit starts."""
        self._end = time.monotonic() + 60 * self._minutes if self._minutes else None
        return ["--minutes", f"{self._minutes:g}"] if self._minutes else []

    def is_over(self):
        """Whether there was a limit, and it has come."""
        return bool(self._minutes) and time.monotonic() >= self._end

    def heard(self, line):
        """A line of the harness on its progress: the number of results so far and to come."""
        if line.startswith("running "):
            self(line)

    def __call__(self, text):
        if self._wanted:
            print(f"ulpscope {time.monotonic() - self._began:5.1f} s  {text}", file=sys.stderr, flush=True)


def saved(programs, folder):
    """Writes the cases into `folder`, which then holds no others; the path to run: the file of the one, the folder of several."""
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob("*.yaml"):
        stale.unlink()
    for each in programs:
        each.save(folder / f"{each.name}.yaml")
    return folder / f"{programs[0].name}.yaml" if len(programs) == 1 else folder


def jobs(backends):
    """How many backends may be at work at a time here."""
    return max(1, min(len(backends), len(os.sched_getaffinity(0))))


def _captured(f, args, kwargs, own_jax, *, backward, grad, verify, **options):
    if not own_jax:
        from ulpscope import capturing
        return capturing.capture(f, args, kwargs, backward=backward, grad=grad, verify=("torch-eager",) if verify is None else verify, **options)
    from ulpscope import capturing_jax
    if backward:
        raise ValueError("backward: of a function of JAX, jax.grad makes the function to check")
    return capturing_jax.capture_jax(f, args, kwargs, verify=("jax-eager",) if verify is None else verify, **options)


def _torch_backends(f, args, kwargs):
    """The default backends: PyTorch's two, on the device of the tensors."""
    from ulpscope import capturing
    is_program = isinstance(f, (Case, str, pathlib.Path))
    return adapters.on(("torch-eager", "torch-inductor"), "cpu" if is_program else capturing.device_of(f, args, kwargs))


def _shown(report, show):
    if show:
        print(report)
    return report


def run(path, backends, *, out=None, knobs=None, seed=0, timeout=None, written=True, say=None):
    """Runs a case file through the harness; its Report. `written`: this package wrote the file, not the caller. `say`:
    a Progress, which is notified, and may know a limit."""
    kept, temporary = folders.kept(out)
    say = say or Progress()
    command = ["run", str(path), "-o", str(kept), "--seed", str(seed), "-j", str(jobs(backends)), "--remedies"]
    tables = pathlib.Path(kept) / "tables.txt"
    command += ["--tables", str(tables)]
    for key, value in (knobs or {}).items():
        command += ["--knob", f"{key}={value}"]
    if timeout:
        command += ["--timeout", str(timeout)]
    code, console, said = kernels.called([*command, *say.begin()], backends, say.heard)
    report = pathlib.Path(kept) / "report.json"
    if code in (2, 3, 4) or not report.is_file():
        wrong = kernels.diagnostics(said)
        if code == 4 and wrong and written:  # the caller does not know lines of a file that was written here
            raise Refused("; ".join(dict.fromkeys(wrong)))
        raise RunFailed(f"ulpscope exits {code}: {(said or console).strip()[-2000:]}")
    data = json.loads(report.read_text(encoding="utf-8"))
    results = data["results"]
    matrix = {}
    for result in results:
        for value, entry in result["values"].items():
            matrix.setdefault(value, {})[result["backend"]] = entry.get("label") or entry["classification"]
    limit = data["run"].get("limit")
    notes = [f"the limit of {limit['minutes']:g} minutes left out: {', '.join(limit['left_out'])}"] if limit else []
    return Report(findings=findings_of(data), matrix=matrix, results=results, run_dir=pathlib.Path(kept), console=console,
                  exit_code=code, notes=notes, data=data, tables=tables.read_text(encoding="utf-8") if tables.is_file() else "",
                  folder=temporary)


def _how(case, steps, contract):
    """"asked", "observed" or "parts", see check()."""
    if case is None or contract or steps in ("asked", "auto") or any(step.op == "backward" for step in case.all_steps()):
        return "asked"
    return steps


def _say_parts(report, parts, values):
    """Notes for the reader of a run in parts; whether a part computes the same on torch-eager as the whole program
    does."""
    cut = sorted({step.op for part in parts for step in part.all_steps() if step.op.startswith("aten::")})
    report.notes.append(f"run in {len(parts)} parts, each on the operands that torch-eager computed: {', '.join(cut)} have no exact "
                        "reference, and all that comes after them would have none")
    other = [name for name, tensor in _recorded(report).get("torch-eager", {}).items() if faithful.difference(values[name], tensor)]
    if other:
        report.notes.append(f"on torch-eager {', '.join(other)} have other bits in their part than in the whole program (the layout of "
                            "an operand)")


def _observing(case):
    """The case with every value observed; programs that write into what exists, or differentiate, as they are."""
    made = [step.name for step in case.all_steps() if step.name]
    if any(step.op == "backward" or step.op.partition(".")[0].endswith("_") for step in case.all_steps()):
        return case
    return dataclasses.replace(case, observe=list(dict.fromkeys(made))[-256:])


def _started(case, backends, recorded, pool):
    """backend -> the future of what it gives for the case as it is, on the values that the case holds."""
    def ask(backend):
        with adapters.Link(backend) as link:
            return link.run(case)

    return {each: pool.submit(ask, each) for each in backends if isinstance(each, str) and each in recorded}


def _asked(report, started, recorded):
    """backend -> {value: torch tensor} of the case as it is; findings where observing all changes them."""
    case, found = report.case, {}
    for backend, asked in started.items():
        found[backend] = asked.result()
        report.changed[backend] = []
        for value in case.observe:
            text = faithful.difference(found[backend][value], recorded[backend][value], "as it is", "with every step observed")
            if text:
                report.changed[backend].append(value)
                report.findings.append(f"{backend} gives other bits of `{value}` where every step is observed ({text}): what is said of its "
                                       "steps holds for the program with every step observed")
    return found


def _changed(report):
    """backend -> values that have other bits where every step is observed."""
    return {each["backend"]: list(each["opened"]["changed"]) for each in report.results if each.get("opened")}


def _recorded(report):
    """backend -> {value: torch tensor} of the run."""
    found = {}
    for line in (report.run_dir / "journal.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)["record"]
        if record.get("type") == "result" and "tensors" in record and "~" not in record["case"]:
            tensors = adapters.read_safetensors(report.run_dir / record["tensors"]["file"])
            found.setdefault(record["backend"], {}).update((name, adapters.from_wire(tensor)) for name, tensor in tensors.items())
    return found


def _compiler(backend):
    """The compiler of a torch backend: None for eager; '' for one that runs no PyTorch function, or whose knobs
    torch.compile() does not get here: then the function's results in this process are no evidence about it."""
    name, _, knobs = adapters.parsed(backend)
    if any(knob != "backend_name" for knob in knobs):
        return ""
    return knobs.get("backend_name") or faithful.COMPILERS.get(name, "")


def _computed(case, given, f, args, kwargs):
    """compiler -> what `f` itself gives in this process, for the compilers of the backends in `given`."""
    return {compiler: faithful.results(f, args, dict(kwargs or {}), case, compiler)
            for compiler in dict.fromkeys(map(_compiler, given)) if compiler != ""}


def _meanwhile(case, backends, f, args, kwargs):
    """The results of `f` in this process, computed while the run is made in others; nothing if they are unknown before
    the run has ended."""
    if any(each.synthetic for each in case.inputs):
        return {}
    try:
        return _computed(case, backends, f, args, kwargs)
    except Exception:  # the run reports what `f` raises
        return {}


def _beside_own(case, given, f, args, kwargs, computed):
    """backend -> {value: '' or the difference}: the backends' results, compared with those of `f` itself in this
    process (or `computed`)."""
    computed, found = computed or _computed(case, given, f, args, kwargs), {}
    for backend, values in given.items():
        compiler = _compiler(backend)
        if compiler == "":
            continue
        own = computed[compiler]
        found[backend] = {key: faithful.difference(own[key], tensor, "by the function", "in the run")
                          for key, tensor in values.items() if own.get(key) is not None}
        if any(found[backend].values()) and (why := faithful.why_otherwise(case, f, args, dict(kwargs or {}), compiler, values)):
            found[backend] = {key: f"{text}; {why}" if text else "" for key, text in found[backend].items()}
    return found


def _beside_own_jax(case, given, f, args, kwargs):
    """The same for a function of JAX."""
    from ulpscope import capturing_jax
    return {backend: capturing_jax.differences_in_run(case, f, args, dict(kwargs or {}), adapters.parsed(backend)[0], values)
            for backend, values in given.items() if adapters.parsed(backend)[0] in capturing_jax.BACKENDS}
