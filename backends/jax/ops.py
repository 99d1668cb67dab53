"""The vocabulary of steps over jax.numpy, in JAX's own terms: what a user of JAX would write for each step.

Mixed dtypes promote as jax.numpy promotes them, and no op has an out=. Imported after the knobs are set.
"""

import math

import jax
import jax.numpy as jnp

from ulpscope_adapter import words
from ulpscope_adapter.dtypes import dtypes_of

DTYPES = dtypes_of(jnp)

NOTES = {
    "layer_norm":
        "layer_norm: mean, variance and affine part in at least float32, then cast to the dtype of the input",
    "rms_norm":
        "rms_norm: mean square, root and weight in at least float32, then cast to the dtype of the input",
    "linear":
        "linear: x @ weight.T, then + bias as an op of its own",
    "addmm":
        "addmm: beta * c + alpha * (a @ b), unfused",
    **{
        op: f"{op}: x @ w over windows by lax.conv_general_dilated, then + bias as an op of its own"
        for op in ("conv1d", "conv2d")
    },
    "batch_norm":
        "batch_norm: (x - mean) * rsqrt(variance + eps) * weight + bias, in the operands' dtypes",
    "group_norm":
        "group_norm: mean, variance and affine part in at least float32, then cast to the dtype of the input",
    **{
        op: f"{op}: written with jax.numpy, element by element, then its sum or mean"
        for op in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "bce_with_logits", "nll_loss", "cross_entropy")
    },
    "softplus":
        "softplus: jax.nn.softplus, log(exp(x) + 1); no threshold unless the program names one",
    "lerp":
        "lerp: start + weight * (end - start), unfused",
    "addcmul":
        "addcmul: x + value * (a * b), unfused",
    "addcdiv":
        "addcdiv: x + value * (a / b), unfused",
    "baddbmm":
        "baddbmm: beta * c + alpha * (a @ b), unfused",
}


def _matmul(a, b, preferred_element_type=None):
    return jnp.matmul(a, b, preferred_element_type=preferred_element_type)


def _scaled(factor, a):
    return a if factor == 1 else factor * a


def _addmm(c, a, b, alpha=1, beta=1):
    return _scaled(beta, c) + _scaled(alpha, jnp.matmul(a, b))


def _linear(x, weight, bias=None):
    product = jnp.matmul(x, weight.T)
    return product if bias is None else product + bias


def _reduction(function):
    def reduce(a, dim=None, keepdim=False, dtype=None):
        return function(a, axis=tuple(dim) if isinstance(dim, list) else dim, keepdims=keepdim, dtype=dtype)

    return reduce


def _layer_norm(x, weight=None, bias=None, *, normalized_shape, eps=1e-5):
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    centred = wide - jnp.mean(wide, axis=axes, keepdims=True)
    result = centred * jax.lax.rsqrt(jnp.mean(centred * centred, axis=axes, keepdims=True) + eps)
    if weight is not None:
        result = result * weight.astype(wide.dtype)
    if bias is not None:
        result = result + bias.astype(wide.dtype)
    return result.astype(x.dtype)


def _rms_norm(x, weight=None, *, normalized_shape, eps):
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    result = wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=axes, keepdims=True) + eps)
    if weight is not None:
        result = result * weight.astype(wide.dtype)
    return result.astype(x.dtype)


def _attention(query, key, value, scale=None):
    """jax.nn has it for operands of [batch, length, heads, width]; ours are PyTorch's [..., heads, length, width]."""
    def swapped(a):
        return jnp.swapaxes(a.reshape((-1, ) + a.shape[-3:]), 1, 2)

    result = jax.nn.dot_product_attention(swapped(query), swapped(key), swapped(value), scale=scale)
    return jnp.swapaxes(result, 1, 2).reshape(query.shape[:-1] + value.shape[-1:])


def _along(function):
    """PyTorch's dtype= casts the operand first."""
    def apply_along(a, dim, dtype=None):
        return function(a if dtype is None else a.astype(dtype), axis=dim)

    return apply_along


def _softplus(a, beta=1, threshold=None):
    result = jax.nn.softplus(_scaled(beta, a))
    result = result if beta == 1 else result / beta
    return result if threshold is None else jnp.where(_scaled(beta, a) > threshold, a, result)


def _slice(a, dim=0, start=0, end=None, step=1):
    return a[(slice(None), ) * (dim % a.ndim) + (slice(start, end, step), )]


def _flatten(a, start_dim=0, end_dim=-1):
    first, last = start_dim % a.ndim, end_dim % a.ndim
    return a.reshape(a.shape[:first] + (-1, ) + a.shape[last + 1:])


def _each(value, count):
    return [value] * count if isinstance(value, int) else list(value) * (count if len(value) == 1 else 1)


def _convolution(x, weight, bias=None, *, stride=1, padding=0, dilation=1, groups=1):
    spatial = x.ndim - 2
    result = jax.lax.conv_general_dilated(x, weight, _each(stride, spatial),
                                          [(pad, pad) for pad in _each(padding, spatial)],
                                          rhs_dilation=_each(dilation, spatial), feature_group_count=groups)
    return result if bias is None else result + bias.reshape((-1, ) + (1, ) * spatial)


def _pool(function, edge):
    """Windows over the last dimensions, elements of `edge` around."""
    def pool(x, kernel_size, stride=None, padding=0):
        spatial = x.ndim - 2
        kernel = _each(kernel_size, spatial)
        strides = kernel if stride is None else _each(stride, spatial)
        pads = [(0, 0)] * 2 + [(pad, pad) for pad in _each(padding, spatial)]
        result = jax.lax.reduce_window(x, jnp.asarray(edge, x.dtype), function, [1, 1] + kernel, [1, 1] + strides, pads)
        return result / math.prod(kernel) if function is jax.lax.add else result

    return pool


def _norm(a, p=2, dim=None, keepdim=False):
    return jnp.linalg.norm(a.reshape(-1) if dim is None and not keepdim else a, float(p),
                           axis=tuple(dim) if isinstance(dim, list) else dim, keepdims=keepdim)


def _spread(function):
    def spread(a, dim=None, keepdim=False, correction=1):
        return function(a, axis=tuple(dim) if isinstance(dim, list) else dim, keepdims=keepdim, ddof=correction)

    return spread


def _batch_norm(x, mean, variance, weight=None, bias=None, *, eps=1e-5):
    def channels(a):
        return a.reshape((1, -1) + (1, ) * (x.ndim - 2))

    result = (x - channels(mean)) * jax.lax.rsqrt(channels(variance) + eps)
    result = result if weight is None else result * channels(weight)
    return result if bias is None else result + channels(bias)


def _group_norm(x, weight=None, bias=None, *, num_groups, eps=1e-5):
    wide = x.astype(jnp.promote_types(x.dtype, jnp.float32)).reshape(x.shape[0], num_groups, -1)
    centred = wide - jnp.mean(wide, axis=2, keepdims=True)
    result = (centred * jax.lax.rsqrt(jnp.mean(centred * centred, axis=2, keepdims=True) + eps)).reshape(x.shape)
    for channels, combine in ((weight, jnp.multiply), (bias, jnp.add)):
        if channels is not None:
            result = combine(result, channels.astype(result.dtype).reshape((1, -1) + (1, ) * (x.ndim - 2)))
    return result.astype(x.dtype)


_REDUCTIONS = {"none": lambda loss: loss, "sum": jnp.sum, "mean": jnp.mean}


def _loss(each):
    """A loss from that of each element."""
    return lambda a, target, reduction="mean", **attrs: _REDUCTIONS[reduction](each(a, target, **attrs))


def _instance_norm(x, weight=None, bias=None, *, eps=1e-5):
    return _group_norm(x, weight, bias, num_groups=x.shape[1], eps=eps)


def _kl_div(a, target):
    return jnp.where(target == 0, 0, target * jnp.log(target)) - target * a


def _binary_cross_entropy(a, target):
    return (target - 1) * jnp.maximum(jnp.log1p(-a), -100) - target * jnp.maximum(jnp.log(a), -100)


def _margin_ranking_loss(a, b, target, margin=0, reduction="mean"):
    return _REDUCTIONS[reduction](jnp.maximum(-target * (a - b) + margin, 0))


def _index_add(a, index, source, dim, alpha=1):
    return jnp.moveaxis(jnp.moveaxis(a, dim, 0).at[index].add(jnp.moveaxis(_scaled(alpha, source), dim, 0)), 0, dim)


def _scatter_add(a, index, source, dim):
    places = list(jnp.indices(index.shape, sparse=True))
    places[dim] = index
    return a.at[tuple(places)].add(source)


def _smooth_l1(a, target, beta=1):
    size = jnp.abs(a - target)
    return size if beta == 0 else jnp.where(size < beta, 0.5 * size * size / beta, size - 0.5 * beta)


def _huber(a, target, delta=1):
    size = jnp.abs(a - target)
    return jnp.where(size < delta, 0.5 * size * size, delta * (size - 0.5 * delta))


def _nll(logs, target):
    axis = min(1, logs.ndim - 1)
    return -jnp.squeeze(jnp.take_along_axis(logs, jnp.expand_dims(target, axis), axis=axis), axis)


def _expand(a, shape):
    kept = (1,) * (len(shape) - a.ndim) + a.shape
    return jnp.broadcast_to(a, [old if new == -1 else new for new, old in zip(shape, kept)])


def _full(shape, dtype, value):
    return jnp.full(shape, float(value) if isinstance(value, str) else value, dtype)  # "inf", "-inf", "nan"


# op -> a callable over the operands with the attributes as keywords. What takes operands alone and has PyTorch's name in
# jax.numpy too needs no row.
OPS = {
    **{
        op: getattr(jnp, op)
        for op in words.ops("value") if not words.OPS[op]["attributes"] and hasattr(jnp, op)
    },
    "zeros": jnp.zeros,
    "ones": jnp.ones,
    "full": _full,
    "matmul": _matmul,
    "mm": _matmul,
    "bmm": _matmul,
    "addmm": _addmm,
    "baddbmm": _addmm,
    "linear": _linear,
    "add": lambda a, b, alpha=1: jnp.add(a, _scaled(alpha, b)),
    "sub": lambda a, b, alpha=1: jnp.subtract(a, _scaled(alpha, b)),
    "mul": jnp.multiply,
    "div": jnp.divide,
    "neg": jnp.negative,
    "relu": jax.nn.relu,
    "rsqrt": jax.lax.rsqrt,
    "sigmoid": jax.nn.sigmoid,
    "erf": jax.lax.erf,
    "erfc": jax.lax.erfc,
    "gelu": lambda a, approximate="none": jax.nn.gelu(a, approximate=approximate == "tanh"),
    "silu": jax.nn.silu,
    "softmax": _along(jax.nn.softmax),
    "log_softmax": _along(jax.nn.log_softmax),
    "logsumexp": lambda a, dim, keepdim=False: jax.nn.logsumexp(a, axis=dim, keepdims=keepdim),
    "amax": lambda a, dim=None, keepdim=False: jnp.max(a, axis=tuple(dim) if isinstance(dim, list) else dim,
                                                        keepdims=keepdim),
    "scaled_dot_product_attention": _attention,
    "pow": jnp.power,
    "clamp": lambda a, min=None, max=None: jnp.clip(a, min, max),
    "hardtanh": lambda a, min_val=-1.0, max_val=1.0: jnp.clip(a, min_val, max_val),
    "relu6": jax.nn.relu6,
    "leaky_relu": jax.nn.leaky_relu,
    "elu": jax.nn.elu,
    "softplus": _softplus,
    "mish": jax.nn.mish,
    "lerp": lambda start, end, weight: start + weight * (end - start),
    "addcmul": lambda x, a, b, value=1: x + _scaled(value, a * b),
    "addcdiv": lambda x, a, b, value=1: x + _scaled(value, a / b),
    "eq": jnp.equal,
    "ne": jnp.not_equal,
    "lt": jnp.less,
    "le": jnp.less_equal,
    "gt": jnp.greater,
    "ge": jnp.greater_equal,
    "masked_fill": lambda a, mask, value: jnp.where(mask, value, a),
    "addmv": _addmm,
    "einsum": lambda *of, equation: jnp.einsum(equation, *of),
    "conv1d": _convolution,
    "conv2d": _convolution,
    "avg_pool1d": _pool(jax.lax.add, 0),
    "avg_pool2d": _pool(jax.lax.add, 0),
    "max_pool1d": _pool(jax.lax.max, -jnp.inf),
    "max_pool2d": _pool(jax.lax.max, -jnp.inf),
    "amin": lambda a, dim=None, keepdim=False: jnp.min(a, axis=tuple(dim) if isinstance(dim, list) else dim,
                                                        keepdims=keepdim),
    "prod": lambda a, dim=None, keepdim=False: jnp.prod(a, axis=dim, keepdims=keepdim),
    "cumsum": lambda a, dim, dtype=None: jnp.cumsum(a, axis=dim, dtype=dtype),
    "var": _spread(jnp.var),
    "std": _spread(jnp.std),
    "norm": _norm,
    "batch_norm": _batch_norm,
    "group_norm": _group_norm,
    "mse_loss": _loss(lambda a, target: jnp.square(a - target)),
    "l1_loss": _loss(lambda a, target: jnp.abs(a - target)),
    "smooth_l1_loss": _loss(_smooth_l1),
    "huber_loss": _loss(_huber),
    "bce_with_logits": _loss(lambda a, target: (1 - target) * a - jax.nn.log_sigmoid(a)),
    "nll_loss": _loss(_nll),
    "cross_entropy": _loss(lambda a, target: _nll(jax.nn.log_softmax(a, axis=min(1, a.ndim - 1)), target)),
    "instance_norm": _instance_norm,
    "kl_div": _loss(_kl_div),
    "binary_cross_entropy": _loss(_binary_cross_entropy),
    "margin_ranking_loss": _margin_ranking_loss,
    "index_add": _index_add,
    "scatter_add": _scatter_add,
    "linspace": lambda start, end, num, dtype: jnp.linspace(start, end, num, dtype=dtype),
    "slice": _slice,
    "narrow": lambda a, dim, start, length: jax.lax.slice_in_dim(a, start, start + length, axis=dim),
    "flatten": _flatten,
    "cat": lambda *of, dim=0: jnp.concatenate(of, axis=dim),
    "stack": lambda *of, dim=0: jnp.stack(of, axis=dim),
    "roll": lambda a, shifts, dims=None: jnp.roll(a, shifts if dims else shifts[0], axis=dims),
    "tril": lambda a, diagonal=0: jnp.tril(a, diagonal),
    "triu": lambda a, diagonal=0: jnp.triu(a, diagonal),
    "gather": lambda a, index, dim: jnp.take_along_axis(a, index, axis=dim),
    "index_select": lambda a, index, dim: jnp.take(a, index, axis=dim),
    "embedding": lambda weight, index: jnp.take(weight, index, axis=0),
    "arange": lambda end, dtype, start=0, step=1: jnp.arange(start, end, step, dtype),
    "one_hot": lambda a, num_classes: jax.nn.one_hot(a, num_classes, dtype=jnp.int64),
    "clone": lambda a: a,
    "detach": jax.lax.stop_gradient,
    "sum": _reduction(jnp.sum),
    "mean": _reduction(jnp.mean),
    "cast": lambda a, dtype: a.astype(dtype),
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "transpose": lambda a, dim0, dim1: jnp.swapaxes(a, dim0, dim1),
    "t": jnp.transpose,
    "reshape": jnp.reshape,
    "view": jnp.reshape,
    "expand": _expand,
    "permute": lambda a, dims: jnp.transpose(a, dims),
    "select": lambda a, dim, index: jax.lax.index_in_dim(a, index, dim, keepdims=False),
    "unsqueeze": lambda a, dim: jnp.expand_dims(a, dim),
    "squeeze": lambda a, dim=None: jnp.squeeze(a,
                                                tuple(dim) if isinstance(dim, list) else dim),
}


def apply(step, operands):
    """The result of one step of OPS."""
    return OPS[step.op](*operands, **step.attrs)
