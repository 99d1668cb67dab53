"""Checks that a captured case is faithful: it is run and compared, bit by bit, with the function that it came from.

On every requested backend, the function runs as that backend would run it (eagerly, or compiled by torch.compile),
with one thread and on the same values. If the bits differ, the case is run once more with every step observed and
compared with the exported graph, node by node: the first step that differs is the place to look at.
"""

import contextlib
import pathlib
import re
import subprocess
import tempfile

from ulpscope import adapters, places
from ulpscope.case import every
from ulpscope.refusals import CaptureError, Reason

# A compiler keeps what backward() will need, and rounds it; eager folds a batched product into one if an operand
# requires a gradient (should_fold in ATen's LinearAlgebra.cpp), under torch.no_grad() too. Parameters of a case without
# backward require none.
BY_GRADIENTS = ("with parameters that require no gradients the function has the case's bits, so it is computed otherwise where gradients "
                "may be asked for")
# nn.MultiheadAttention and nn.TransformerEncoderLayer have a fused kernel for inference, which torch.export does not see.
BY_FAST_PATH = ("PyTorch's fast path for attention in inference computes it otherwise: the case is the function as it runs after "
                "torch.backends.mha.set_fastpath_enabled(False), whose bits it has")
BY_BOTH = ("with parameters that require no gradients, and after torch.backends.mha.set_fastpath_enabled(False), the function has the case's "
           "bits: PyTorch computes otherwise where gradients may be asked for, and has a fast path for attention where not")
COMPILERS = {"torch-eager": None, "torch-aot-eager": "aot_eager", "torch-inductor": "inductor"}


class Unfaithful(CaptureError):
    """The case does not compute the function's bits. `backend`, `value`, `step` (or None) give the place."""

    def __init__(self, text, backend, value, step):
        super().__init__(text, Reason.UNFAITHFUL)
        self.backend, self.value, self.step = backend, value, step


def check(case, f, args=(), kwargs=None, backends=("torch-eager",)):
    """Raises Unfaithful at the first value in which `case` and `f(*args, **kwargs)` part on one of `backends`."""
    kwargs = kwargs or {}
    for backend in backends:
        name, _, knobs = adapters.parsed(backend)
        if name not in COMPILERS and "backend_name" not in knobs:
            raise CaptureError(f"verify: {backend} runs no PyTorch function; one of {', '.join(COMPILERS)}", Reason.VERIFY)
        own = results(f, args, kwargs, case, knobs.get("backend_name") or COMPILERS[name])
        with adapters.Link(backend) as link:
            try:
                found = link.run(case)
            except adapters.AdapterFailed as error:
                step = _failing_step(case, backend) if name == "torch-eager" else None
                what, place = (f"op {step.op}: ", step.at()) if step is not None else ("", "")
                raise Unfaithful(f"{what}the function runs and the case does not: {error}{place}", backend, "", step) from error
            parted = [each for each in case.observe if difference(own[each], found[each])]
            if not parted:
                continue
            again = results(f, args, kwargs, case, knobs.get("backend_name") or COMPILERS[name])
            if any(difference(own[each], again[each]) for each in case.observe):
                raise CaptureError(f"{case.name} gives other bits the second time, on the same values", Reason.UNSTABLE)
            compiler = knobs.get("backend_name") or COMPILERS[name]
            if why := why_otherwise(case, f, args, kwargs, compiler, found):
                case.notes += [f"{backend}: {each}: {difference(own[each], found[each])}; {why}." for each in parted]
                continue
            step = _first_step(case, link) if name == "torch-eager" or _as_eagerly(case, f, args, kwargs, own) else None
        value = parted[0]
        text = f"{backend}: the case does not compute {value} as {case.name} does: {difference(own[value], found[value])}"
        if step is not None:
            text += f"; they part at the step {step.name} ({step.op}), {step.place() or 'of an unknown line'}"
        raise Unfaithful(text, backend, value, step)


def _failing_step(case, backend):
    """The first step that the backend does not get through; None where it gets through all, and fails at what is observed."""
    def fails(count):
        try:
            with adapters.Link(backend) as link:
                link.run(case.first(count))
        except adapters.AdapterFailed:
            return True
        return False

    steps = list(every(case.steps))
    runs, stops = 0, len(steps)
    if not fails(stops):
        return None
    while stops - runs > 1:
        middle = (runs + stops) // 2
        runs, stops = (runs, middle) if fails(middle) else (middle, stops)
    return steps[stops - 1]


def read(case):
    """Raises CaptureError if the harness refuses the case: with its reason, the op and the line of source."""
    with tempfile.TemporaryDirectory(prefix="ulpscope-") as folder:
        path = case.outline().save(pathlib.Path(folder, f"{case.name}.yaml"))
        done = subprocess.run([str(places.binary()), "lint", str(path)], env=places.environment(), capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
        said = re.search(rf"{re.escape(str(path))}:(\d+):\d+: (.*)", done.stdout + done.stderr)
        if said is None:
            raise CaptureError(f"{case.name}: the harness does not read the case: {(done.stderr or done.stdout).strip()[-500:]}", Reason.HARNESS)
        line = path.read_text(encoding="utf-8").splitlines()[int(said[1]) - 1]
    step = next((step for step in case.all_steps() if step.name and re.search(rf"\bas: \W?{step.name}\b", line)), None)
    what, place = (f"op {step.op}", step.at()) if step is not None else (case.name, "")
    raise CaptureError(f"{what}: the harness refuses it in a case: {said[2]} ({line.strip()}){place}", Reason.HARNESS)


def _as_eagerly(case, f, args, kwargs, own):
    """Whether the compiled function has the bits that it has eagerly: then the first step of the case that has not is the one."""
    eager = results(f, args, kwargs, case, None)
    return not any(difference(eager[each], own[each]) for each in case.observe)


def why_otherwise(case, f, args, kwargs, compiler, found):
    """The reason why `f` gives other bits here than `found`, the case's, as text; '' if it is neither gradients nor a
    fast path."""
    import torch
    from ulpscope import capturing
    asked = any(each.requires_grad for each in case.inputs)
    parameters = [] if asked else [each for each in capturing.wrapper(f).parameters() if each.requires_grad]
    attempts = [((_plain_attention, ), BY_FAST_PATH)] if torch.backends.mha.get_fastpath_enabled() else []
    if not asked:
        gradients = (torch.no_grad, lambda: _without_gradients(parameters))
        attempts += [(gradients, BY_GRADIENTS), *(((*gradients, *ways), BY_BOTH) for ways, _ in attempts)]
    for ways, text in attempts:
        with contextlib.ExitStack() as stack:
            for way in ways:
                stack.enter_context(way())
            own = results(f, args, kwargs, case, compiler)
        if not any(difference(own[each], found[each]) for each in found if own.get(each) is not None):
            return text
    return ""


@contextlib.contextmanager
def _without_gradients(parameters):
    for each in parameters:
        each.requires_grad_(False)
    try:
        yield
    finally:
        for each in parameters:
            each.requires_grad_(True)


@contextlib.contextmanager
def _plain_attention():
    """Attention modules without their fused kernel for inference, which torch.export does not see."""
    import torch
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def results(f, args, kwargs, case, compiler=None):
    """name -> what the function itself gives for each value that the case observes; computed with one thread."""
    import torch
    from torch.utils import _pytree as tree
    leaves = [each.name for each in case.inputs if each.requires_grad]
    with one_thread(), no_gradients_kept(f, args, kwargs) as (args, kwargs, gradients):
        if compiler is not None:
            torch._dynamo.reset()
            function = torch.compile(f, backend=compiler)
        else:
            function = f
        outputs = tree.tree_leaves(function(*args, **kwargs))
        named = {name: value for name, value in zip(case.results, outputs) if name}
        if leaves:
            loss = named[case.observe[0]]
            grad = upstream(case)
            loss.backward(torch.ones_like(loss) if grad is None else grad.to(loss.device))
            named.update(gradients(leaves))
    return {name: value.detach() if value is not None else None for name, value in named.items()}


def upstream(case):
    """The gradient that the case's backward begins with; None for ones."""
    name = next((step.attrs["grad"] for step in case.all_steps() if step.op == "backward" and "grad" in step.attrs), None)
    return next((each.tensor for each in case.inputs if each.name == name), None)


@contextlib.contextmanager
def one_thread():
    """PyTorch computes with one thread: the split of a sum depends on their number, and adapters have one."""
    import torch
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def no_gradients_kept(f, args, kwargs):
    """Private copies of the arguments (a function may write into them); buffers and the .grad of parameters are
    restored afterwards."""
    import torch
    from torch.utils import _pytree as tree
    from ulpscope import capturing

    def own(value):
        if not isinstance(value, torch.Tensor):
            return value
        copy = value.detach().clone()
        if 0 not in value.stride() and copy.stride() != value.stride():
            copy = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device).copy_(value.detach())
        return copy.requires_grad_(value.requires_grad)

    args, kwargs = tree.tree_map(own, args), tree.tree_map(own, kwargs)
    module = capturing.wrapper(f)
    parameters = dict(module.named_parameters())
    before = {name: each.grad for name, each in parameters.items()}
    buffers = [(each, each.detach().clone()) for each in module.buffers()]
    for each in parameters.values():
        each.grad = None

    def gradients(leaves):
        named = {capturing.word(name.removeprefix("self.")): each.grad for name, each in parameters.items()}
        for label, value in capturing.argument_names(f, args, kwargs):
            if isinstance(value, torch.Tensor):
                named.setdefault(capturing.word(label), value.grad)
        return {leaf + ".grad": named.get(leaf) for leaf in leaves}

    try:
        yield args, kwargs, gradients
    finally:
        for name, each in parameters.items():
            each.grad = before[name]
        with torch.no_grad():
            for each, value in buffers:
                if not torch.equal(each, value):
                    each.copy_(value)


def difference(one, other, first="by the function", second="by the case"):
    """'' where two tensors have the same dtype, shape and bits; else what differs, in a sentence that calls them so."""
    import torch
    if one is None or other is None:
        return "" if one is other else "one of them has no value"
    one, other = one.cpu(), other.cpu()
    if one.dtype != other.dtype or one.shape != other.shape:
        return f"{one.dtype}{list(one.shape)} against {other.dtype}{list(other.shape)}"
    if adapters.to_wire(one).data == adapters.to_wire(other).data:
        return ""
    width = one.element_size()
    integer = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[width]
    bits = one.contiguous().view(integer) != other.contiguous().view(integer)
    index = tuple(bits.nonzero()[0].tolist())
    return (f"{int(bits.sum())} of {one.numel()} elements differ, the first at {list(index)}: "
            f"{one[index].item()} {first}, {other[index].item()} {second}")


def _first_step(case, link):
    """The first step whose value differs from that of the graph's node, run eagerly; None if none does."""
    import torch
    with one_thread(), torch.no_grad():
        expected = node_values(case.program, case.graph_inputs)
    steps = [step for step in every(case.steps) if step.name]
    found = link.run(case, [step.name for step in steps])
    for step in steps:
        value = expected.get(step.node)
        if isinstance(value, (list, tuple)):
            value = value[step.position or 0]
        later = any(each.node is step.node and each.position == step.position for each in steps[steps.index(step) + 1:])
        if value is not None and not later and difference(value, found[step.name]):
            return step
    return None


def node_values(program, graph_inputs):
    """Node of an exported program's graph -> its value on these inputs, each op run eagerly."""
    return recorded(program.graph_module, own(graph_inputs))[1]


def own(values):
    """Tensors among `values` as copies of the same layout: some ops write into their operands (batch_norm into its statistics)."""
    import torch
    return [torch.empty_strided(each.shape, each.stride(), dtype=each.dtype, device=each.device).copy_(each)
            if isinstance(each, torch.Tensor) and 0 not in each.stride() else each.clone() if isinstance(each, torch.Tensor) else each
            for each in values]


def recorded(graph_module, inputs):
    """(what a graph gives, node -> its value)"""
    import torch

    values = {}

    class Recorder(torch.fx.Interpreter):
        def run_node(self, node):
            scope = str(node.target) if node.op == "call_function" else ""
            if "wrap_with" not in scope:
                found = super().run_node(node)
            else:
                args = self.map_nodes_to_values(node.args, node)
                if "autocast" in scope:
                    around, args = torch.autocast(args[0], dtype=args[1], enabled=args[2], cache_enabled=False), args[4:]
                else:
                    around, args = torch.set_grad_enabled(args[0]), args[1:]
                with around:
                    found = Recorder(args[0]).run(*args[1:])
            values[node] = torch.utils._pytree.tree_map(lambda each: each.clone() if isinstance(each, torch.Tensor) else each, found)
            return found

    return Recorder(graph_module).run(*inputs), values
