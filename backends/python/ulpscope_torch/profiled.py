"""A program's profile from torch.profiler: each op with its time, and on CUDA the kernels that it launched, by name.

The program is run by a schedule (wait, warm-up, active), as torch.profiler.schedule has it; a time is the median of the active runs.
Importing this file imports no torch.
"""

import statistics
from dataclasses import dataclass, field

from ulpscope_adapter import TraceNode

_STEP = "ProfilerStep#"
_HIDDEN = (_STEP, "[memory]", "Activity Buffer Request")


@dataclass
class Event:
    """One slice of a run: an op of the host, or a kernel below the op that launched it."""

    name: str
    us: float
    inputs: tuple = ()
    children: list = field(default_factory=list)

    def shape(self):
        """The part that has to be the same in all active runs."""
        return self.name, tuple(child.shape() for child in self.children)

    def walk(self):
        yield self
        for child in self.children:
            yield from child.walk()


def add_profile(run, schedule, trace):
    """Runs `run`, an Execution that was executed before, by the schedule; adds nodes of the stage profile to a Trace. Gives notes."""
    import contextlib
    import torch
    from torch.profiler import ProfilerActivity
    cuda = str(run.device).startswith("cuda")
    wait, warmup, active = schedule
    seen = []

    def ready(profile):
        seen.extend(steps_of(profile.profiler.kineto_results.events()))

    listens, run.watch = run.__dict__.get("watch"), contextlib.nullcontext  # one profiler ends another
    try:
        with torch.profiler.profile(activities=[ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * cuda, record_shapes=True,
                                    schedule=torch.profiler.schedule(wait=wait, warmup=warmup, active=active, repeat=1),
                                    on_trace_ready=ready) as profile:
            for _ in range(wait + warmup + active):
                run.execute()
                if cuda:
                    torch.cuda.synchronize()
                profile.step()
    finally:
        del run.watch
        if listens is not None:
            run.watch = listens
    notes = add_steps(seen, trace)
    if not any(event.name and not event.name.startswith("aten::") for step in seen for event in step.walk()) and cuda:
        notes.append("profile: torch.profiler saw no kernel of the device")
    return [f"profile: medians of {active} runs, after {wait} that waited and {warmup} that warmed up", *notes]


def add_steps(steps, trace):
    """Nodes for the first of the active runs, with the median of each time where all ran the same."""
    if not steps:
        return ["profile: torch.profiler saw no run"]
    same = all(step.shape()[1] == steps[0].shape()[1] for step in steps)
    walks = [list(step.walk()) for step in (steps if same else steps[:1])]
    times = [statistics.median(each.us for each in alike) for alike in zip(*walks)]
    numbers = {}
    for event, us in zip(walks[0], times):
        numbers[id(event)] = len(trace.nodes)
        trace.nodes.append(TraceNode(id=len(trace.nodes), parent=-1, stage="profile", op=event.name, inputs=event.inputs, us=us))
    parents = {id(child): id(event) for event in walks[0] for child in event.children}
    for event in walks[0]:
        if id(event) in parents:
            place = numbers[id(event)]
            node = trace.nodes[place]
            trace.nodes[place] = TraceNode(id=node.id, parent=numbers[parents[id(event)]], stage=node.stage, op=node.op,
                                           inputs=node.inputs, us=node.us)
    return [] if same else ["profile: the active runs ran other ops; times are those of the first"]


def steps_of(events):
    """One Event for each active run, from kineto's: ops nested by their times on each thread, kernels by what launched them."""
    import torch
    host = [event for event in events if event.device_type() == torch.autograd.DeviceType.CPU]
    steps = [(event.start_ns(), event.start_ns() + event.duration_ns(), Event("profiled run", event.duration_ns() / 1e3))
             for event in host if event.name().startswith(_STEP)]
    steps.sort(key=lambda step: step[0])
    launched, opened = {}, {}
    for event in sorted(host, key=lambda event: (event.start_ns(), -event.duration_ns())):
        if event.name().startswith(_HIDDEN) or event.name().startswith(("cuda", "cu")) or getattr(event, "is_hidden_event", bool)():
            continue
        begin, end = event.start_ns(), event.start_ns() + event.duration_ns()
        step = next((each for first, last, each in steps if first <= begin < last), None)
        if step is None:
            continue
        stack = opened.setdefault((id(step), event.start_thread_id()), [(None, step)])
        while stack[-1][0] is not None and stack[-1][0] <= begin:
            stack.pop()
        made = Event(event.name(), (end - begin) / 1e3, _tensors(event))
        stack[-1][1].children.append(made)
        stack.append((end, made))
        launched[event.correlation_id()] = made
    for event in sorted((each for each in events if each.device_type() != torch.autograd.DeviceType.CPU), key=lambda each: each.start_ns()):
        op = launched.get(event.linked_correlation_id())
        if op is not None:
            op.children.append(Event(event.name(), event.duration_ns() / 1e3))
    return [step for _, _, step in steps]


_DTYPES = {"float": "float32", "double": "float64", "c10::Half": "float16", "c10::BFloat16": "bfloat16", "int": "int32", "long": "int64",
           "long int": "int64", "short": "int16", "short int": "int16", "signed char": "int8", "unsigned char": "uint8", "bool": "bool",
           "c10::Float8_e4m3fn": "float8_e4m3fn", "c10::Float8_e5m2": "float8_e5m2"}


def _tensors(event):
    """The operands that are tensors of a dtype of the harness."""
    return tuple((_DTYPES[name], tuple(shape)) for name, shape in zip(event.dtypes(), event.shapes()) if name in _DTYPES)
