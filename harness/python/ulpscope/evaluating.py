"""A fused program (fusing.py) carried out over an arithmetic: Enclosing (enclosing.py), or Plain (narrowing.py)."""

import math
import types


def evaluate(program, inputs, arithmetic, known=None, alike=None):
    """{name: value} of every node; `inputs` are tensors. Nodes in `known` whose operands are known too are not computed
    again; `alike`: those of them that belong to this program."""
    env, fresh = {}, set()
    arithmetic.env = env
    for name, tensor in inputs.items():
        if known is None or arithmetic.reads(name):
            env[name] = arithmetic.read(name, arithmetic.given(tensor))
            fresh.add(name)
        else:
            env[name] = known[name]
    for node in program.nodes:
        arithmetic.node = node
        stale = known is None or arithmetic.touches(node) or alike is not None and node.name not in alike
        stale = stale or any(each in fresh for each in node.of if isinstance(each, str))
        if not stale:
            env[node.name] = known[node.name]
            continue
        operands = [env[each] if isinstance(each, str) else arithmetic.number(each) for each in node.of]
        env[node.name] = arithmetic.after(node, _OPS.get(node.op, _plain)(arithmetic, node, operands))
        fresh.add(node.name)
    return env


def _plain(arithmetic, node, operands):
    return getattr(arithmetic, node.op)(*operands, **{key: value for key, value in node.attrs.items() if key != "step"})


def _shape(value):
    return (value.v if hasattr(value, "v") else value).shape


def _function(node):
    """The op's function of PyTorch's."""
    from ulpscope_torch import ops
    step = node.attrs["step"]
    op = "reshape" if step.op == "view" else step.op
    attrs = {key: value for key, value in step.attrs.items() if key != "dtype"}
    function, keywords = ops._function(types.SimpleNamespace(op=op, attrs=attrs, of=node.of, out="", name=node.name, target=node.name))
    return lambda *operands: function(*operands, **keywords)


def _move(arithmetic, node, operands):
    return arithmetic.move(_function(node), *operands)


def _index(arithmetic, node, operands):
    return arithmetic.index(_function(node), *operands)


def _made(arithmetic, node, operands):
    import torch
    from ulpscope_torch import ops
    del operands
    step = node.attrs["step"]
    keywords = {**step.attrs, "dtype": getattr(torch, step.attrs.get("dtype", "float32"))}
    return arithmetic.given(ops._FUNCTIONS[step.op](**keywords))


def _dims(dim):
    return () if dim is None else dim if isinstance(dim, int) else tuple(dim)


def _sum(arithmetic, node, operands):
    return arithmetic.sum(operands[0], _dims(node.attrs["dim"]), node.attrs["keepdim"])


def _amax(arithmetic, node, operands):
    return getattr(arithmetic, node.op)(operands[0], _dims(node.attrs["dim"]), node.attrs["keepdim"])


def _mean(arithmetic, node, operands):
    total, of = operands
    shape, dim = _shape(of), node.attrs["dim"]
    dims = range(len(shape)) if dim is None else [dim] if isinstance(dim, int) else dim
    return arithmetic.div(total, arithmetic.number(math.prod(shape[each] for each in dims)))


def _scale(arithmetic, node, operands):
    scale = node.attrs["scale"]
    return arithmetic.mul(operands[0], arithmetic.number(1 / math.sqrt(_shape(operands[1])[-1]) if scale is None else scale))


def _heads(arithmetic, node, operands):
    import torch
    del node
    given, like = operands
    times = _shape(like)[-3] // _shape(given)[-3]
    return arithmetic.move(lambda x: torch.repeat_interleave(x, times, -3), given)


def _mask(arithmetic, node, operands):
    """The mask of attention: causal without one, true where a key is seen, else added."""
    import torch
    scores = operands[0]
    if len(operands) == 1:
        seen = torch.ones(_shape(scores)[-2:], dtype=torch.bool).tril()
        return arithmetic.where(arithmetic.given(seen), scores, arithmetic.number(-math.inf))
    mask = operands[1]
    is_truth = getattr(mask, "v", mask).dtype == torch.bool
    del node
    return arithmetic.where(mask, scores, arithmetic.number(-math.inf)) if is_truth else arithmetic.add(scores, mask)


def _compare(arithmetic, node, operands):
    import torch
    return arithmetic.compare(getattr(torch, node.attrs["function"]), *operands)


def _logic(arithmetic, node, operands):
    import torch
    return arithmetic.logic(getattr(torch, node.attrs["function"]), *operands)


def _whole(arithmetic, node, operands):
    import torch
    return arithmetic.whole(operands[0], getattr(torch, node.attrs["function"]))


def _same(arithmetic, node, operands):
    del arithmetic, node
    return operands[0]


def _to(arithmetic, node, operands):
    return getattr(arithmetic, node.op)(operands[0], node.attrs["format"])


def _clamp(arithmetic, node, operands):
    return arithmetic.clamp(operands[0], node.attrs["low"], node.attrs["high"])


def _contract(arithmetic, node, operands):
    """Two operands of an einsum, as one matrix product."""
    (a, b, right), (batch, rows, summed, columns) = node.attrs["letters"], node.attrs["parts"]
    sizes = {**dict(zip(a, _shape(operands[0]))), **dict(zip(b, _shape(operands[1])))}

    def arranged(value, letters, groups):
        order = [letters.index(each) for group in groups for each in group]
        shape = [math.prod(sizes[each] for each in group) for group in groups]
        return arithmetic.move(lambda x: x.permute(order).reshape(shape), value)

    product = arithmetic.matmul(arranged(operands[0], a, (batch, rows, summed)), arranged(operands[1], b, (batch, summed, columns)))
    made = [*batch, *rows, *columns]
    return arithmetic.move(lambda x: x.reshape([sizes[each] for each in made]).permute([made.index(each) for each in right]), product)


def _blocks(arithmetic, node, operands):
    """exp(score - maximum so far), rounded, times what later maxima leave of it: the probabilities of an online softmax."""
    import torch
    attrs = node.attrs
    parts = _online_parts(arithmetic, operands[0], attrs["block"], attrs["backwards"], attrs["format"])
    last = parts[-1][2]
    given = [arithmetic.mul(power, arithmetic.exp(_seen(arithmetic, largest, last))) for _, power, largest in parts]
    return arithmetic.move(lambda *each: torch.cat(each, -1), *(given[::-1] if attrs["backwards"] else given))


def _online_parts(arithmetic, scores, block, backwards, dtype):
    """[(first key, exp(score - the maximum so far) rounded, that maximum)] block by block."""
    so_far, parts = None, []
    starts = range(0, _shape(scores)[-1], block)
    for first in reversed(starts) if backwards else starts:
        part = arithmetic.move(lambda x, first=first: x[..., first:first + block], scores)
        largest = arithmetic.amax(part, -1, True)
        so_far = largest if so_far is None else arithmetic.maximum(so_far, largest)
        parts.append((first, arithmetic.to(arithmetic.exp(_seen(arithmetic, part, so_far)), dtype), so_far))
    return parts


def _online(arithmetic, node, operands):
    """The total of an online softmax, or its product with the values: as in one pass, except that a narrow total is
    narrow after each block."""
    scores, powers, values = (*operands, None)[:3]
    block = arithmetic.block_of(node)
    if block is None:
        return arithmetic.sum(powers, -1, True) if values is None else arithmetic.matmul(powers, values)
    total, before = None, None
    for first, power, largest in _online_parts(arithmetic, scores, block, node.attrs["backwards"], node.attrs["format"]):
        part = power.sum(-1, keepdim=True) if values is None else power @ values[..., first:first + block, :]
        if total is not None:
            part = part + total * arithmetic.exp(_seen(arithmetic, before, largest))
        total, before = arithmetic.cut(part), largest
    return total * arithmetic.exp(_seen(arithmetic, before, arithmetic.amax(scores, -1, True)))


def _seen(arithmetic, a, b):
    """a - b, minus infinity where a is that: of a block without a key that is seen nothing is left."""
    apart = arithmetic.sub(a, b)
    gone = getattr(a, "v", a) == -math.inf
    if not gone.any():
        return apart
    import torch
    if not hasattr(apart, "v"):
        return torch.where(gone, -math.inf, apart)
    apart.v, apart.e, apart.m = torch.where(gone, -math.inf, apart.v), torch.where(gone, 0.0, apart.e), torch.where(gone, 0.0, apart.m)
    return apart


_OPS = {"move": _move, "index": _index, "made": _made, "sum": _sum, "amax": _amax, "amin": _amax, "mean": _mean, "scale": _scale,
        "heads": _heads, "mask": _mask, "compare": _compare, "logic": _logic, "whole": _whole, "same": _same, "to": _to, "perhaps": _to,
        "clamp": _clamp, "contract": _contract, "blocks": _blocks, "online": _online}
