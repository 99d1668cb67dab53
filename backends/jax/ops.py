"""The vocabulary of steps over jax.numpy, in JAX's own terms: what a user of JAX would write for each step.

Mixed dtypes promote as jax.numpy promotes them, and no op has an out=. Imported after the knobs are set.
"""

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
