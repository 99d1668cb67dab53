"""The vocabulary of steps over jax.numpy, in JAX's own terms: what a user of JAX would write for each step.

Mixed dtypes promote as jax.numpy promotes them, and no op has an out=. Imported after the knobs are set. op_NAME is the step
NAME: a callable over the operands with the attributes as keywords. Scripts that show a result without ulpscope carry those
that they need, and what these name (harness/repro/jax_compute.cc): so two empty lines stand between definitions, and none of
them uses more than jax, jnp, math and each other.
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


def _scaled(factor, a):
    return a if factor == 1 else factor * a


def _axes(dim):
    return tuple(dim) if isinstance(dim, list) else dim


def _each(value, count):
    return [value] * count if isinstance(value, int) else list(value) * (count if len(value) == 1 else 1)


def _channels(a, x):
    """One number a channel, against x of [batch, channel, ...]."""
    return a.reshape((1, -1) + (1, ) * (x.ndim - 2))


def op_zeros(shape, dtype=None):
    return jnp.zeros(shape, dtype)


def op_ones(shape, dtype=None):
    return jnp.ones(shape, dtype)


def op_full(shape, dtype, value):
    return jnp.full(shape, float(value) if isinstance(value, str) else value, dtype)  # "inf", "-inf", "nan"


def op_arange(end, dtype, start=0, step=1):
    return jnp.arange(start, end, step, dtype)


def op_linspace(start, end, num, dtype):
    return jnp.linspace(start, end, num, dtype=dtype)


def op_matmul(a, b, preferred_element_type=None):
    return jnp.matmul(a, b, preferred_element_type=preferred_element_type)


op_mm = op_matmul


op_bmm = op_matmul


def op_addmm(c, a, b, alpha=1, beta=1):
    return _scaled(beta, c) + _scaled(alpha, jnp.matmul(a, b))


op_addmv = op_addmm


op_baddbmm = op_addmm


def op_linear(x, weight, bias=None):
    product = jnp.matmul(x, weight.T)
    return product if bias is None else product + bias


def op_einsum(*of, equation):
    return jnp.einsum(equation, *of)


def op_conv1d(x, weight, bias=None, *, stride=1, padding=0, dilation=1, groups=1):
    spatial = x.ndim - 2
    result = jax.lax.conv_general_dilated(x, weight, _each(stride, spatial),
                                          [(pad, pad) for pad in _each(padding, spatial)],
                                          rhs_dilation=_each(dilation, spatial), feature_group_count=groups)
    return result if bias is None else result + bias.reshape((-1, ) + (1, ) * spatial)


op_conv2d = op_conv1d


def op_scaled_dot_product_attention(query, key, value, mask=None, scale=None, is_causal=False, enable_gqa=False):
    """jax.nn has it for operands of [batch, length, heads, width]; these are PyTorch's [..., heads, length, width]."""
    def swapped(a):
        return jnp.swapaxes(a.reshape((-1, ) + a.shape[-3:]), 1, 2)

    seen = {}
    if mask is not None:
        mask = jnp.broadcast_to(mask, query.shape[:-1] + key.shape[-2:-1])
        seen["mask" if mask.dtype == bool else "bias"] = mask.reshape((-1, ) + mask.shape[-3:])
    result = jax.nn.dot_product_attention(swapped(query), swapped(key), swapped(value), scale=scale, is_causal=is_causal, **seen)
    return jnp.swapaxes(result, 1, 2).reshape(query.shape[:-1] + value.shape[-1:])


def op_add(a, b, alpha=1):
    return jnp.add(a, _scaled(alpha, b))


def op_sub(a, b, alpha=1):
    return jnp.subtract(a, _scaled(alpha, b))


def op_mul(a, b):
    return jnp.multiply(a, b)


def op_div(a, b):
    return jnp.divide(a, b)


def op_neg(a):
    return jnp.negative(a)


def op_pow(a, b):
    return jnp.power(a, b)


def op_lerp(start, end, weight):
    return start + weight * (end - start)


def op_addcmul(x, a, b, value=1):
    return x + _scaled(value, a * b)


def op_addcdiv(x, a, b, value=1):
    return x + _scaled(value, a / b)


def op_eq(a, b):
    return jnp.equal(a, b)


def op_ne(a, b):
    return jnp.not_equal(a, b)


def op_lt(a, b):
    return jnp.less(a, b)


def op_le(a, b):
    return jnp.less_equal(a, b)


def op_gt(a, b):
    return jnp.greater(a, b)


def op_ge(a, b):
    return jnp.greater_equal(a, b)


def op_masked_fill(a, mask, value):
    return jnp.where(mask, value, a)


def op_rsqrt(a):
    return jax.lax.rsqrt(a)


def op_erf(a):
    return jax.lax.erf(a)


def op_erfc(a):
    return jax.lax.erfc(a)


def op_relu(a):
    return jax.nn.relu(a)


def op_relu6(a):
    return jax.nn.relu6(a)


def op_leaky_relu(a, **attrs):
    return jax.nn.leaky_relu(a, **attrs)


def op_elu(a, **attrs):
    return jax.nn.elu(a, **attrs)


def op_sigmoid(a):
    return jax.nn.sigmoid(a)


def op_silu(a):
    return jax.nn.silu(a)


def op_mish(a):
    return jax.nn.mish(a)


def op_gelu(a, approximate="none"):
    return jax.nn.gelu(a, approximate=approximate == "tanh")


def op_softplus(a, beta=1, threshold=None):
    result = jax.nn.softplus(_scaled(beta, a))
    result = result if beta == 1 else result / beta
    return result if threshold is None else jnp.where(_scaled(beta, a) > threshold, a, result)


def op_clamp(a, min=None, max=None):
    return jnp.clip(a, min, max)


def op_hardtanh(a, min_val=-1.0, max_val=1.0):
    return jnp.clip(a, min_val, max_val)


def op_softmax(a, dim, dtype=None):
    return jax.nn.softmax(a if dtype is None else a.astype(dtype), axis=dim)  # PyTorch's dtype= casts the operand first


def op_log_softmax(a, dim, dtype=None):
    return jax.nn.log_softmax(a if dtype is None else a.astype(dtype), axis=dim)


def op_logsumexp(a, dim, keepdim=False):
    return jax.nn.logsumexp(a, axis=dim, keepdims=keepdim)


def op_sum(a, dim=None, keepdim=False, dtype=None):
    return jnp.sum(a, axis=_axes(dim), keepdims=keepdim, dtype=dtype)


def op_mean(a, dim=None, keepdim=False, dtype=None):
    return jnp.mean(a, axis=_axes(dim), keepdims=keepdim, dtype=dtype)


def op_var(a, dim=None, keepdim=False, correction=1):
    return jnp.var(a, axis=_axes(dim), keepdims=keepdim, ddof=correction)


def op_std(a, dim=None, keepdim=False, correction=1):
    return jnp.std(a, axis=_axes(dim), keepdims=keepdim, ddof=correction)


def op_var_mean(a, dim=None, keepdim=False, correction=1, result=0):
    return op_var(a, dim, keepdim, correction) if result == 0 else jnp.mean(a, axis=_axes(dim), keepdims=keepdim)


def op_std_mean(a, dim=None, keepdim=False, correction=1, result=0):
    return op_std(a, dim, keepdim, correction) if result == 0 else jnp.mean(a, axis=_axes(dim), keepdims=keepdim)


def op_topk(a, k, dim=-1, largest=True, sorted=True, result=0):
    if largest:
        return jnp.moveaxis(jax.lax.top_k(jnp.moveaxis(a, dim, -1), k)[result], -1, dim)
    return jnp.moveaxis(jnp.moveaxis(op_sort(a, dim, result=result), dim, -1)[..., :k], -1, dim)


def op_sort(a, dim=-1, descending=False, stable=False, result=0):
    order = jnp.argsort(a, axis=dim, stable=True, descending=descending)
    return order if result == 1 else jnp.sort(a, axis=dim, stable=True, descending=descending)


def op_max(a, dim, keepdim=False, result=0):
    return (jnp.max, jnp.argmax)[result](a, axis=dim, keepdims=keepdim)


def op_min(a, dim, keepdim=False, result=0):
    return (jnp.min, jnp.argmin)[result](a, axis=dim, keepdims=keepdim)


def op_aminmax(a, dim=None, keepdim=False, result=0):
    return (jnp.min, jnp.max)[result](a, axis=dim, keepdims=keepdim)


def op_split(a, split_size, dim=0, result=0):
    sizes = split_size if isinstance(split_size, list) else [split_size] * -(-a.shape[dim] // split_size)
    start = sum(sizes[:result])
    return jax.lax.slice_in_dim(a, start, min(start + sizes[result], a.shape[dim]), axis=dim)


def op_chunk(a, chunks, dim=0, result=0):
    return op_split(a, -(-a.shape[dim] // chunks), dim, result)


def op_unbind(a, dim=0, result=0):
    return jax.lax.index_in_dim(a, result, axis=dim, keepdims=False)


def op_amax(a, dim=None, keepdim=False):
    return jnp.max(a, axis=_axes(dim), keepdims=keepdim)


def op_amin(a, dim=None, keepdim=False):
    return jnp.min(a, axis=_axes(dim), keepdims=keepdim)


def op_argmax(a, dim=None, keepdim=False):
    return jnp.argmax(a, axis=dim, keepdims=keepdim)


def op_argmin(a, dim=None, keepdim=False):
    return jnp.argmin(a, axis=dim, keepdims=keepdim)


def op_any(a, dim=None, keepdim=False):
    return jnp.any(a, axis=_axes(dim), keepdims=keepdim)


def op_all(a, dim=None, keepdim=False):
    return jnp.all(a, axis=_axes(dim), keepdims=keepdim)


def op_prod(a, dim=None, keepdim=False):
    return jnp.prod(a, axis=dim, keepdims=keepdim)


def op_cumsum(a, dim, dtype=None):
    return jnp.cumsum(a, axis=dim, dtype=dtype)


def op_dropout(a, p, train=False):
    if train and p:
        raise ValueError("dropout: JAX has no random numbers without a key")
    return a


def op_cumprod(a, dim):
    return jnp.cumprod(a, axis=dim)


def op_logcumsumexp(a, dim):
    return jax.lax.cumlogsumexp(a, axis=dim % a.ndim)


def op_norm(a, p=2, dim=None, keepdim=False):
    return jnp.linalg.norm(a.reshape(-1) if dim is None and not keepdim else a, float(p), axis=_axes(dim), keepdims=keepdim)


def op_layer_norm(x, weight=None, bias=None, *, normalized_shape, eps=1e-5):
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    centred = wide - jnp.mean(wide, axis=axes, keepdims=True)
    result = centred * jax.lax.rsqrt(jnp.mean(centred * centred, axis=axes, keepdims=True) + eps)
    if weight is not None:
        result = result * weight.astype(wide.dtype)
    if bias is not None:
        result = result + bias.astype(wide.dtype)
    return result.astype(x.dtype)


def op_rms_norm(x, weight=None, *, normalized_shape, eps):
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    result = wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=axes, keepdims=True) + eps)
    if weight is not None:
        result = result * weight.astype(wide.dtype)
    return result.astype(x.dtype)


def op_batch_norm(x, mean, variance, weight=None, bias=None, *, eps=1e-5):
    result = (x - _channels(mean, x)) * jax.lax.rsqrt(_channels(variance, x) + eps)
    result = result if weight is None else result * _channels(weight, x)
    return result if bias is None else result + _channels(bias, x)


def op_group_norm(x, weight=None, bias=None, *, num_groups, eps=1e-5):
    wide = x.astype(jnp.promote_types(x.dtype, jnp.float32)).reshape(x.shape[0], num_groups, -1)
    centred = wide - jnp.mean(wide, axis=2, keepdims=True)
    result = (centred * jax.lax.rsqrt(jnp.mean(centred * centred, axis=2, keepdims=True) + eps)).reshape(x.shape)
    for channels, combine in ((weight, jnp.multiply), (bias, jnp.add)):
        if channels is not None:
            result = combine(result, _channels(channels.astype(result.dtype), x))
    return result.astype(x.dtype)


def op_instance_norm(x, weight=None, bias=None, *, eps=1e-5):
    return op_group_norm(x, weight, bias, num_groups=x.shape[1], eps=eps)


def _pool(x, function, edge, kernel_size, stride, padding):
    """Windows over the last dimensions, elements of `edge` around."""
    spatial = x.ndim - 2
    kernel = _each(kernel_size, spatial)
    strides = kernel if stride is None else _each(stride, spatial)
    pads = [(0, 0)] * 2 + [(pad, pad) for pad in _each(padding, spatial)]
    result = jax.lax.reduce_window(x, jnp.asarray(edge, x.dtype), function, [1, 1] + kernel, [1, 1] + strides, pads)
    return result / math.prod(kernel) if function is jax.lax.add else result


def op_avg_pool1d(x, kernel_size, stride=None, padding=0):
    return _pool(x, jax.lax.add, 0, kernel_size, stride, padding)


op_avg_pool2d = op_avg_pool1d


def op_adaptive_avg_pool1d(x, output_size):
    """Side by side, windows of one extent; JAX has no such op."""
    places = [output_size] * (x.ndim - 2) if isinstance(output_size, int) else list(output_size)
    if any(extent % place for extent, place in zip(x.shape[2:], places)):
        raise ValueError("adaptive_avg_pool: output_size does not divide the input")
    return _pool(x, jax.lax.add, 0, [extent // place for extent, place in zip(x.shape[2:], places)], None, 0)


op_adaptive_avg_pool2d = op_adaptive_avg_pool1d


def op_max_pool1d(x, kernel_size, stride=None, padding=0):
    return _pool(x, jax.lax.max, -jnp.inf, kernel_size, stride, padding)


op_max_pool2d = op_max_pool1d


def _reduced(loss, reduction):
    return loss if reduction == "none" else jnp.sum(loss) if reduction == "sum" else jnp.mean(loss)


def op_mse_loss(a, target, reduction="mean"):
    return _reduced(jnp.square(a - target), reduction)


def op_l1_loss(a, target, reduction="mean"):
    return _reduced(jnp.abs(a - target), reduction)


def op_smooth_l1_loss(a, target, beta=1, reduction="mean"):
    size = jnp.abs(a - target)
    return _reduced(size if beta == 0 else jnp.where(size < beta, 0.5 * size * size / beta, size - 0.5 * beta), reduction)


def op_huber_loss(a, target, delta=1, reduction="mean"):
    size = jnp.abs(a - target)
    return _reduced(jnp.where(size < delta, 0.5 * size * size, delta * (size - 0.5 * delta)), reduction)


def op_bce_with_logits(a, target, reduction="mean"):
    return _reduced((1 - target) * a - jax.nn.log_sigmoid(a), reduction)


def op_binary_cross_entropy(a, target, reduction="mean"):
    return _reduced((target - 1) * jnp.maximum(jnp.log1p(-a), -100) - target * jnp.maximum(jnp.log(a), -100), reduction)


def _at_targets(logs, target, weight, ignore_index):
    """(loss of each target, what each weighs)"""
    axis = min(1, logs.ndim - 1)
    ignored = target == ignore_index
    place = jnp.where(ignored, 0, target)
    each = -jnp.squeeze(jnp.take_along_axis(logs, jnp.expand_dims(place, axis), axis=axis), axis)
    weights = jnp.ones_like(each) if weight is None else jnp.take(weight, place)
    return jnp.where(ignored, 0, each * weights), jnp.where(ignored, 0, weights)


def _over_weights(loss, weights, reduction):
    return jnp.sum(loss) / jnp.sum(weights) if reduction == "mean" else _reduced(loss, reduction)


def op_nll_loss(logs, target, weight=None, ignore_index=None, reduction="mean"):
    if weight is None and ignore_index is None:
        axis = min(1, logs.ndim - 1)
        return _reduced(-jnp.squeeze(jnp.take_along_axis(logs, jnp.expand_dims(target, axis), axis=axis), axis), reduction)
    return _over_weights(*_at_targets(logs, target, weight, -100 if ignore_index is None else ignore_index), reduction)


def op_cross_entropy(a, target, weight=None, ignore_index=None, label_smoothing=0, reduction="mean"):
    axis = min(1, a.ndim - 1)
    logs = jax.nn.log_softmax(a, axis=axis)
    beside = None if weight is None else jnp.expand_dims(weight, tuple(range(1, a.ndim - axis)))
    if jnp.issubdtype(target.dtype, jnp.floating):
        if label_smoothing:
            target = target * (1 - label_smoothing) + label_smoothing / a.shape[axis]
        each = logs * target if beside is None else logs * target * beside
        return _reduced(-jnp.sum(each, axis), reduction)
    at_targets = op_nll_loss(logs, target, weight, ignore_index, reduction)
    if not label_smoothing:
        return at_targets
    ignored = -100 if ignore_index is None else ignore_index
    classes = -jnp.sum(logs if beside is None else logs * beside, axis)
    smooth = _over_weights(jnp.where(target == ignored, 0, classes), _at_targets(logs, target, weight, ignored)[1], reduction)
    return (1 - label_smoothing) * at_targets + smooth * (label_smoothing / a.shape[axis])


def op_kl_div(a, target, reduction="mean"):
    return _reduced(jnp.where(target == 0, 0, target * jnp.log(target)) - target * a, reduction)


def op_margin_ranking_loss(a, b, target, margin=0, reduction="mean"):
    return _reduced(jnp.maximum(-target * (a - b) + margin, 0), reduction)


def op_cat(*of, dim=0):
    return jnp.concatenate(of, axis=dim)


def op_stack(*of, dim=0):
    return jnp.stack(of, axis=dim)


def op_slice(a, dim=0, start=0, end=None, step=1):
    return a[(slice(None), ) * (dim % a.ndim) + (slice(start, end, step), )]


def op_narrow(a, dim, start, length):
    return jax.lax.slice_in_dim(a, start, start + length, axis=dim)


def op_flatten(a, start_dim=0, end_dim=-1):
    first, last = start_dim % a.ndim, end_dim % a.ndim
    return a.reshape(a.shape[:first] + (-1, ) + a.shape[last + 1:])


def op_roll(a, shifts, dims=None):
    return jnp.roll(a, shifts if dims else shifts[0], axis=dims)


def op_tril(a, diagonal=0):
    return jnp.tril(a, diagonal)


def op_triu(a, diagonal=0):
    return jnp.triu(a, diagonal)


def op_gather(a, index, dim):
    return jnp.take_along_axis(a, index, axis=dim)


def op_index_select(a, index, dim):
    return jnp.take(a, index, axis=dim)


def op_index(a, *indices, dim=0):
    return a[(slice(None), ) * (dim % a.ndim) + indices]


def op_flip(a, dims):
    return jnp.flip(a, axis=tuple(dims))


def op_pad(a, pad, mode="constant", value=0):
    widths = [(0, 0)] * (a.ndim - len(pad) // 2) + list(zip(pad[-2::-2], pad[::-2]))
    if mode == "constant":
        return jax.lax.pad(a, jnp.asarray(value, a.dtype), [(*each, 0) for each in widths])
    return jnp.pad(a, widths, mode={"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode])


def op_glu(a, dim=-1):
    return jax.nn.glu(a, axis=dim)


def op_nan_to_num(a, nan=0, posinf=None, neginf=None):
    return jnp.nan_to_num(a, nan=nan, posinf=posinf, neginf=neginf)


def op_index_add(a, index, source, dim, alpha=1):
    return jnp.moveaxis(jnp.moveaxis(a, dim, 0).at[index].add(jnp.moveaxis(_scaled(alpha, source), dim, 0)), 0, dim)


def op_scatter_add(a, index, source, dim):
    places = list(jnp.indices(index.shape, sparse=True))
    places[dim] = index
    return a.at[tuple(places)].add(source)


def op_embedding(weight, index):
    return jnp.take(weight, index, axis=0)


def op_one_hot(a, num_classes):
    return jax.nn.one_hot(a, num_classes, dtype=jnp.int64)


def op_clone(a):
    return a


def op_detach(a):
    return jax.lax.stop_gradient(a)


def op_cast(a, dtype):
    return a.astype(dtype)


def op_transpose(a, dim0, dim1):
    return jnp.swapaxes(a, dim0, dim1)


def op_t(a):
    return jnp.transpose(a)


def op_permute(a, dims):
    return jnp.transpose(a, dims)


def op_reshape(a, shape):
    return jnp.reshape(a, shape)


op_view = op_reshape


def op_expand(a, shape):
    kept = (1, ) * (len(shape) - a.ndim) + a.shape
    return jnp.broadcast_to(a, [old if new == -1 else new for new, old in zip(shape, kept)])


def op_select(a, dim, index):
    return jax.lax.index_in_dim(a, index, dim, keepdims=False)


def op_unsqueeze(a, dim):
    return jnp.expand_dims(a, dim)


def op_squeeze(a, dim=None):
    return jnp.squeeze(a, _axes(dim))


# An op needs no definition here if it takes operands alone and has PyTorch's name in jax.numpy too.
OPS = {
    **{
        op: getattr(jnp, op)
        for op in words.ops("value") if not words.OPS[op]["attributes"] and hasattr(jnp, op)
    },
    **{
        name.removeprefix("op_"): function
        for name, function in list(globals().items()) if name.startswith("op_")
    },
}


def apply(step, operands):
    """The result of one step of OPS."""
    return OPS[step.op](*operands, **step.attrs)
