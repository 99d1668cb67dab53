"""PyTorch's own database of ops (OpInfo) as programs for capture(): what becomes of each.

outcomes() gives a Row for every op, dtype, direction and sample input: captured with the bits of the function, refused for a Reason that
the program bears out (capture_witness), or a fault of ulpscope's own. A forward case counts as captured when torch-eager's adapter and
the Python adapters' table of ops both give the function's bits, one with gradients when torch-eager's adapter does.
"""
import contextlib
import itertools
import pathlib
import re
import sys
import types
import unittest
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "harness/python"), str(ROOT / "backends/python"), str(pathlib.Path(__file__).parent)]

import capture_witness  # noqa: E402
import torch  # noqa: E402
from capture_gate import Row  # noqa: E402
from torch.utils import _pytree as tree  # noqa: E402
from ulpscope import adapters, capturing, faithful  # noqa: E402
from ulpscope.refusals import CaptureError  # noqa: E402
from ulpscope_adapter.request import parse_step  # noqa: E402
from ulpscope_torch import ops, regions  # noqa: E402

DTYPES = (torch.float32, torch.bfloat16)
DIRECTIONS = ("forward", "backward")
_LOOKED_AT = 40  # samples of one op among which those without an empty tensor are sought


def database():
    """op_db. Its test helpers import expecttest, from which the database itself uses nothing."""
    if "expecttest" not in sys.modules:
        stub = types.ModuleType("expecttest")
        stub.TestCase, stub.assert_expected_inline = unittest.TestCase, None
        sys.modules["expecttest"] = stub
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return op_db


def called(op):
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


class Program:
    """A sample as a function over its tensors alone. With `backward` the function gives the first result that depends on a tensor that
    requires a gradient."""

    def __init__(self, op, sample, backward=False):
        self._op, self._sample, self._backward, self._chosen = op, sample, backward, None
        self.upstream = None  # the gradient that backward begins with; ones without
        self._leaves, self._spec = tree.tree_flatten(((sample.input, *sample.args), dict(sample.kwargs)))
        self._places = [i for i, each in enumerate(self._leaves) if isinstance(each, torch.Tensor)]
        self.tensors = tuple(self._leaves[i].detach().requires_grad_(backward and self._leaves[i].requires_grad) for i in self._places)

    def _called(self, tensors, leaves):
        given = list(leaves)
        for place, tensor in zip(self._places, tensors):
            given[place] = tensor
        args, kwargs = tree.tree_unflatten(given, self._spec)
        found = self._op.op(*args, **kwargs)
        if not self._backward:
            return found
        results = [each for each in tree.tree_leaves(self._sample.output_process_fn_grad(found)) if isinstance(each, torch.Tensor)]
        if self._chosen is None:
            self._chosen = next((i for i, each in enumerate(results) if each.requires_grad), -1)
        return results[self._chosen] if self._chosen >= 0 else None

    def __call__(self, *tensors):
        return self._called(tensors, self._leaves)

    def again(self, make=lambda tensor: tensor.detach().clone()):
        """Tensors of one's own, with the layout and the need for gradients of the sample's."""
        return tuple(make(each).requires_grad_(each.requires_grad) for each in self.tensors)

    def run(self, tensors, leaves=None):
        """(results that are tensors, gradients of the tensors), computed with one thread."""
        with torch.set_grad_enabled(self._backward), faithful.one_thread():
            torch.manual_seed(0)
            found = self._called(tensors, self._leaves if leaves is None else leaves)
            if self._backward and found is not None:
                found.backward(torch.ones_like(found) if self.upstream is None else self.upstream.to(found.dtype))
        return ([each for each in tree.tree_leaves(found) if isinstance(each, torch.Tensor)],
                [each.grad for each in tensors] if self._backward else [])

    def in_float64(self):
        """run() on the same values as doubles, with float64 wherever an argument names a narrower dtype."""
        narrow = (torch.float32, torch.bfloat16, torch.float16)
        leaves = [torch.float64 if each in narrow else each for each in self._leaves]
        return self.run(self.again(lambda each: each.detach().double() if each.is_floating_point() else each.detach().clone()), leaves)

    def differentiates(self):
        return self._chosen is not None and self._chosen >= 0

    def has_empty(self):
        return any(each.numel() == 0 for each in self.tensors)


def by_python(case):
    """The results of a case by the Python adapters' table of ops."""
    placed, empties = regions.flatten([parse_step(each) for each in case.wire_program()["steps"]])
    env = {each.name: each.tensor.clone() for each in case.inputs}
    for step in empties:
        env[step.target] = torch.empty(step.attrs["shape"], dtype=ops.DTYPES[step.attrs["dtype"]])
    with torch.no_grad(), faithful.one_thread():
        for do in ops.bind_all(placed):
            do(env)
    return {name: env[name] for name in case.observe}


class Asked:
    """A backend's adapter, started again where a case ends it."""

    def __init__(self, backend="torch-eager"):
        self._backend, self._stack, self._link = backend, contextlib.ExitStack(), None

    def run(self, case):
        if self._link is None:
            self._link = self._stack.enter_context(adapters.Link(self._backend))
        try:
            return self._link.run(case)
        except adapters.AdapterFailed as error:
            if "went away" in str(error):
                self.close()
            raise

    def close(self):
        self._stack.close()
        self._link = None


def outcome(op, dtype, number, sample, asked, direction="forward", keep=None):
    """The Row of one sample; `keep(row, case, program, its own results)` is called with a captured one."""
    row = Row(called(op), str(dtype).removeprefix("torch."), direction, number)
    backward = direction == "backward"
    program = Program(op, sample, backward)
    try:
        program.run(program.again())
    except Exception as error:
        return row.ended("no program", f"the function itself raises: {type(error).__name__}")
    if backward and not program.differentiates():
        return row.ended("no program", "no result depends on a tensor that requires a gradient")
    name = re.sub(r"\W", "_", f"{row.op}_{row.dtype}_{direction}_{number}")
    try:
        case = capturing.capture(program, program.tensors, name=name, verify=(), backward=backward)
    except CaptureError as error:
        return row.refused(error, capture_witness.of_torch(program, error.reason))
    except Exception as error:
        return row.ended("fault", f"{type(error).__name__}: {' '.join(str(error).split())}")
    program.upstream = faithful.upstream(case)
    row.words = tuple(step.op for step in case.all_steps() if step.name)
    try:
        own = faithful.results(program, program.tensors, {}, case)
        parted = compared(own, asked.run(case), "torch-eager")
        if not parted and not backward:
            parted = compared(own, by_python(case), "the Python table")
    except Exception as error:
        parted = f"{type(error).__name__}: {' '.join(str(error).split())}"
    if not parted and keep is not None:
        keep(row, case, program, own)
    return row.ended("fault", parted) if parted else row.ended("captured")


def compared(own, found, where):
    said = [(name, faithful.difference(own[name], found[name])) for name in own]
    return next((f"{where}: {name}: {text}" for name, text in said if text), "")


def chosen_samples(op, dtype, count, backward):
    """The first `count` samples without an empty tensor, and the first with one."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        full, empty = [], []
        for index, sample in enumerate(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=backward), _LOOKED_AT)):
            kind = empty if Program(op, sample).has_empty() else full
            kind.append((index, sample))
            if len(full) == count:
                break
    return full + (empty[:1] if not backward else [])


def outcomes(chosen=None, samples=2, dtypes=DTYPES, directions=DIRECTIONS, keep=None):
    """Rows of the ops that `chosen(op, its number)` takes, of `samples` inputs of each."""
    asked = Asked()
    try:
        for number, op in enumerate(database()):
            if chosen is not None and not chosen(op, number):
                continue
            for dtype, direction in itertools.product(dtypes, directions):
                backward = direction == "backward"
                can = op.supported_backward_dtypes("cpu") if backward else op.supported_dtypes("cpu")
                if dtype not in can or backward and not op.supports_autograd:
                    continue
                for index, sample in chosen_samples(op, dtype, 1 if backward and samples < 4 else samples, backward):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        yield outcome(op, dtype, index, sample, asked, direction, keep)
    finally:
        asked.close()


def keep_reference(references, row, case, program, own):
    """Hands a captured case to capture_references.References with what its program gives in float64."""
    try:
        results, gradients = program.in_float64()
    except Exception:  # an op that takes no float64
        return
    named = {name: value for name, value in zip(case.results, results) if name}
    named.update({f"{each.name}.grad": gradient for each, gradient in _leaves(case, program, gradients)})
    references.add(row, case, {name: named[name].detach() if named.get(name) is not None else None for name in own if name in named}, own)


def _leaves(case, program, gradients):
    """(input of the case that requires a gradient, its gradient): arguments become inputs in their order."""
    given = {capturing.word(label): gradient for (label, _), gradient in
             zip(capturing.argument_names(program, program.tensors, {}), gradients)}
    return [(each, given[each.name]) for each in case.inputs if each.requires_grad and each.name in given]
