"""Translates the dispatcher's ops below autograd into the case language: for each op, a function (walk, node,
arguments) as in spelled.py.

There, a layer_norm of PyTorch is `native_layer_norm`, which gives the mean and the reciprocal deviation too. A
function gives the name of the word's result; for several results a tuple, with None for those that the word does not
have.
"""

from ulpscope import spelled
from ulpscope.binding import dtype_name, dtype_of


def _norm(of, attributes, results):
    """A norm whose operands and attributes have these names in the schema {ours: theirs}; `results` is how many the
    kernel gives."""
    def said(walk, node, arguments):
        given = [arguments.get(each) for each in of]
        while given and given[-1] is None:
            given.pop()
        if None in given or arguments.get("training"):
            return None
        attrs = {ours: arguments.get(theirs) for ours, theirs in attributes.items() if arguments.get(theirs) is not None}
        word = next(each for each in ("layer_norm", "rms_norm", "group_norm", "batch_norm") if each in node.target._schema.name)
        if word == "rms_norm" and "eps" not in attrs:
            spelled.SPELLED["rms_norm"](walk, node, arguments)  # which finds the one that PyTorch takes
            attrs.update({"eps": arguments.get("eps")} if arguments.get("eps") is not None else {})
        return (walk.add(node, word, given, attrs), *[None] * (results - 1))

    return said


def _convolution(walk, node, arguments):
    spatial = node.args[0].meta["val"].dim() - 2
    if spatial not in (1, 2) or arguments.get("transposed") or any(arguments.get("output_padding", ())):
        return None
    of = [each for each in (arguments.get(key) for key in ("input", "weight", "bias")) if each is not None]
    attrs = {key: list(arguments.get(key)) for key in ("stride", "padding", "dilation")}
    attrs = {key: each * spatial if len(each) == 1 else each for key, each in attrs.items()}
    if arguments.get("groups", 1) != 1:
        attrs["groups"] = arguments.get("groups")
    return walk.add(node, f"conv{spatial}d", of, attrs)


def _pooled(walk, node, arguments):
    """The largest of each window; its position is another result."""
    if any(each != 1 for each in arguments.get("dilation", (1, ))) or arguments.get("ceil_mode"):
        return None
    attrs = {key: list(arguments.get(key)) for key in ("kernel_size", "stride", "padding") if arguments.get(key)}
    return walk.add(node, "max_pool2d", [arguments.first()], attrs), None


def _attention(walk, node, arguments):
    """The attention that a kernel computes in one go; what it keeps for backward are other results."""
    if arguments.get("dropout_p", 0):
        return None
    of = [arguments.get(key) for key in ("query", "key", "value")]
    mask = arguments.get("attn_mask", arguments.get("attn_bias"))
    attrs = {key: arguments.get(key) for key in ("scale", "is_causal") if arguments.get(key) not in (None, False)}
    if node.args[0].meta["val"].shape[-3] != node.args[1].meta["val"].shape[-3]:
        attrs["enable_gqa"] = True
    made = walk.add(node, "scaled_dot_product_attention", [*of, *([mask] if mask is not None else [])], attrs)
    return (made, *[None] * (len(node.target._schema.returns) - 1))


def _copied(walk, node, arguments):
    """copy_: what is written, in the shape and dtype of what it is written over."""
    source, shape = node.args[1], list(node.meta["val"].shape)
    made = arguments.get("src")
    if dtype_of(source) != dtype_of(node):
        made = walk.add(node, "cast", [made], {"dtype": dtype_name(dtype_of(node))})
    return walk.add(node, "expand", [made], {"shape": shape}) if list(source.meta["val"].shape) != shape else made


def _filled(walk, node, arguments):
    """fill_ and zero_: one number everywhere."""
    value = arguments.get("value", 0)
    if not isinstance(value, (bool, int, float)):
        return None
    attrs = {"shape": list(node.meta["val"].shape), "dtype": dtype_name(dtype_of(node)), "value": int(value) if isinstance(value, bool) else value}
    return walk.add(node, "full", [], attrs)


def _loss(walk, node, arguments):
    of = [arguments.get("self"), arguments.get("target")]
    if arguments.get("weight") is not None:
        of.append(arguments.get("weight"))
    attrs = {"reduction": ("none", "mean", "sum")[arguments.get("reduction", 1)], "ignore_index": arguments.get("ignore_index", -100)}
    return walk.add(node, "nll_loss", of, attrs), None


def _averaged(walk, node, arguments):
    return walk.add(node, "adaptive_avg_pool2d", [arguments.first()], {"output_size": list(arguments.get("output_size"))})


ATTENTION = ("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
             "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_fused_attention_overrideable")
_BATCH = _norm(("input", "running_mean", "running_var", "weight", "bias"), {"eps": "eps"}, 3)
KERNELS = {
    "native_layer_norm": _norm(("input", "weight", "bias"), {"normalized_shape": "normalized_shape", "eps": "eps"}, 3),
    "_fused_rms_norm": _norm(("input", "weight"), {"normalized_shape": "normalized_shape", "eps": "eps"}, 2),
    "native_group_norm": _norm(("input", "weight", "bias"), {"num_groups": "group", "eps": "eps"}, 3),
    "native_batch_norm": _BATCH, "_native_batch_norm_legit_no_training": _BATCH,
    "convolution": _convolution, "max_pool2d_with_indices": _pooled, "copy": _copied, "fill": _filled, "zero": _filled,
    "nll_loss_forward": _loss, "_adaptive_avg_pool2d": _averaged,
    **dict.fromkeys(ATTENTION, _attention),
}

