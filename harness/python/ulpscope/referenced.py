"""assert_precision(reference=): judges a kernel against the program that it computes in one go."""

import dataclasses
import time
import types

from ulpscope import adapters, capturing, capturing_jax, faithful, fused, kernels, varying
from ulpscope.case import Case
from ulpscope.vocabulary import CaptureError


def judge(kernel, args, reference, *, name, keywords, rounds, store, seed, seconds=None):
    """The KernelReport of a kernel. An error of the kernel's own on its arguments is raised as its own."""
    began = time.monotonic()
    arrays = next((kernels.library_of(each) for each in args if _is_array(each)), None)
    if arrays is None:
        raise ValueError("assert_precision: no argument of the kernel is an array")
    kernel(*[_copy(each) for each in args], **keywords)
    case, stored, places = _captured(reference, args, keywords)
    device = adapters.device_of(args)
    made = kernels.Backend("kernel", {}, arrays, device)

    def call(tensors):
        """({input: tensor}, {result: tensor}) of the kernel on these inputs, the caller's own without any."""
        tensors = {each.name: each.tensor.detach().cpu() for each in case.inputs} if tensors is None else tensors
        return tensors, _results(kernel(*handed(tensors), **keywords), case)

    def handed(tensors):
        given = [_copy(each) for each in args]
        for input_name, place in places.items():
            given[place] = kernels.given(tensors[input_name].clone(), made)
        return given

    def vary(number):
        own = {each.name: each.tensor.detach().cpu() for each in case.inputs}
        varied = {key: each for key, each in own.items() if key in places}
        if not any(map(varying.is_free, varied.values())):
            return None
        varied = varying.vary(varied, number, seed)
        tensors = {**own, **varied.tensors}
        if number == 0 and not isinstance(reference, Case) and arrays == "torch":
            env = dict(tensors)
            _carried_out(case, env)
            _compare(case, env, reference, handed(tensors), keywords)  # each input is the argument that it is taken for
        return varied._replace(tensors=tensors)

    return fused.Judge(name, case, stored, call, vary, rounds, store, seconds or fused.SECONDS, began).run()


def _is_array(value):
    try:
        return bool(kernels.library_of(value))
    except TypeError:
        return False


def _copy(value):
    """A copy that a kernel may write into without harm to the caller's own."""
    return value.clone() if hasattr(value, "clone") else value.copy() if _is_array(value) else value


def _results(given, case):
    """{result: torch tensor} of what the kernel gave."""
    given = list(given) if isinstance(given, (tuple, list)) else [given]
    names = [each for each in case.results if each] or list(case.observe)
    if len(given) != len(names):
        raise ValueError(f"assert_precision: the kernel gives {len(given)} results, its reference {len(names)}")
    return {name: kernels.as_torch(each).detach().cpu() for name, each in zip(names, given)}


def _captured(reference, args, keywords):
    """(the Case of the reference, {value: PyTorch's stored result}, {input: position among the arguments})."""
    if isinstance(reference, Case):
        case, handed = reference, [each for each in args if _is_array(each)]
        if len(handed) != len(case.inputs):
            raise ValueError(f"assert_precision: the reference has {len(case.inputs)} tensors ({', '.join(each.name for each in case.inputs)}), "
                             f"the kernel {len(handed)}")
        given = [kernels.as_torch(each) for each in handed]
        positions = [index for index, each in enumerate(args) if _is_array(each)]
        case = dataclasses.replace(case, inputs=[dataclasses.replace(each, tensor=tensor.detach())
                                                 for each, tensor in zip(case.inputs, given)])
        places = {each.name: position for each, position in zip(case.inputs, positions)}
    else:
        own_jax = capturing_jax.is_jax(args, keywords)
        # One tensor in two places would be one input of the program.
        given = [each if own_jax or not _is_array(each) else kernels.as_torch(each).detach().clone() for each in args]
        take = capturing_jax.capture_jax if own_jax else capturing.capture
        case = take(reference, tuple(given), keywords, verify=())
        places = _places(case, args, given)
    env = {each.name: each.tensor.detach().cpu() for each in case.inputs}
    _carried_out(case, env)
    if not isinstance(reference, Case) and not own_jax:
        _compare(case, env, reference, given, keywords)
    return case, env, places


def _places(case, args, given):
    """{input: position of the argument that it is}; parameters and closed-over tensors are none."""
    places, taken = {}, set()
    for each in case.inputs:
        bits = adapters.to_wire(each.tensor)
        for index, value in enumerate(given):
            if index in taken or not _is_array(args[index]):
                continue
            tensor = kernels.as_torch(value)
            if tensor.dtype == each.tensor.dtype and tensor.shape == each.tensor.shape and adapters.to_wire(tensor) == bits:
                places[each.name] = index
                taken.add(index)
                break
    return places


def _carried_out(case, env):
    """Adds PyTorch's result of every step, after its output rounding."""
    import torch
    from ulpscope_torch import ops
    with torch.no_grad():
        for step in case.all_steps():
            ops.bind(types.SimpleNamespace(op=step.op, of=step.of, out=step.out, name=step.name, target=step.name or step.out,
                                           attrs=step.attrs, steps=()))(env)


def _compare(case, env, reference, given, keywords):
    """Raises where the case gives other bits than the reference: then it is another program."""
    import torch
    with torch.no_grad():
        own = reference(*given, **keywords)
    own = list(own) if isinstance(own, (tuple, list)) else [own]
    for name, each in zip(case.results, own):
        if name and isinstance(each, torch.Tensor) and (text := faithful.difference(env[name], each.detach().cpu(), "captured", "as it runs")):
            raise CaptureError(f"the reference as it was captured gives other bits of {name} than it does here ({text})")
