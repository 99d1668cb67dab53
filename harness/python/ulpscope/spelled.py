"""Ops that the case language spells differently than PyTorch's dispatcher: for each op, a function (walk, node,
arguments) that adds the steps and gives the name of the result, or None to use the op's own word or name after all."""

from ulpscope.binding import CaptureError, at, dtype_name, dtype_of, words
from ulpscope.refusals import Reason


def _cast(walk, node, arguments):
    """`to`, in all its forms: a conversion, or nothing."""
    operand = next(each for each in node.args)
    if dtype_of(operand) == dtype_of(node):
        return arguments.first()
    return walk.add(node, "cast", [arguments.first()], {"dtype": dtype_name(dtype_of(node))})


def _contiguous(walk, node, arguments):
    """A copy where there is something to put in order. A copy of the case keeps its operand's layout, so view() may not follow."""
    operand = node.args[0]
    if operand.meta["val"].is_contiguous():
        return arguments.first()
    walk.views_may_fail = True
    return walk.add(node, "clone", [arguments.first()])


def _power(walk, node, arguments):
    """Powers that PyTorch itself computes as products and roots, as those, while the language has no `pow`."""
    exponent = arguments.get("exponent")
    if "pow" in words.OPS or isinstance(exponent, str):
        return None
    base = arguments.first()
    if exponent == 2:
        return walk.add(node, "mul", [base, base])
    if exponent in (0.5, -0.5) and dtype_of(node.args[0]).is_floating_point:
        return walk.add(node, "sqrt" if exponent == 0.5 else "rsqrt", [base])
    return None


def _square(walk, node, arguments):
    return None if "square" in words.OPS else walk.add(node, "mul", [arguments.first(), arguments.first()])


def _swapped(walk, node, arguments):
    """rsub: other - self."""
    if arguments.get("alpha", 1) != 1 or "rsub" in words.OPS:
        return None
    if not isinstance(arguments.get("other"), str):
        negated = walk.add(node, "neg", [arguments.first()])  # 1 - x: no op of the language has a number first
        return walk.add(node, "add", [negated, arguments.get("other")])
    return walk.add(node, "sub", [arguments.get("other"), arguments.first()])


def _made_of_nothing(walk, node, arguments):
    """full and its like, as the language's constants."""
    import torch
    val = node.meta["val"]
    name = node.target._schema.name.removeprefix("aten::")
    if any(extent < 1 for extent in val.shape):
        return None
    attrs = {"shape": [int(extent) for extent in val.shape], "dtype": dtype_name(val.dtype)}
    word = {"zeros": "zeros", "zeros_like": "zeros", "new_zeros": "zeros", "ones": "ones", "ones_like": "ones", "new_ones": "ones",
            "empty": "empty", "empty_like": "empty", "new_empty": "empty"}
    if name in word:
        return walk.add(node, word[name], [], attrs)
    value = arguments.get("fill_value", arguments.get("s"))
    if not isinstance(value, (bool, int, float)) or isinstance(value, torch.SymInt):
        return None
    return walk.add(node, "full", [], {**attrs, "value": int(value) if isinstance(value, bool) else value})


def _one_dim(walk, node, arguments):
    """transpose's other names."""
    name = node.target._schema.name.removeprefix("aten::")
    rank = node.args[0].meta["val"].dim()
    if name in words.OPS or rank < 2:
        return arguments.first() if rank < 2 and name not in words.OPS else None
    return walk.add(node, "transpose", [arguments.first()], {"dim0": -2, "dim1": -1})


def _flatten(walk, node, arguments):
    """flatten and unflatten and view_as, as reshape: the shape is known."""
    name = node.target._schema.name.removeprefix("aten::")
    if name in words.OPS:
        return None
    return walk.add(node, "reshape", [arguments.first()], {"shape": [int(extent) for extent in node.meta["val"].shape]})


def _shown_as(walk, node, arguments):
    """expand_as: the shape is known."""
    return walk.add(node, "expand", [arguments.first()], {"shape": [int(extent) for extent in node.meta["val"].shape]})


def _slice(walk, node, arguments):
    """A slice of everything is its operand; an end past the last element is the last element."""
    value = node.args[0].meta["val"]
    dim, start = arguments.get("dim", 0), arguments.get("start", 0) or 0
    step = arguments.get("step", 1)
    extent = value.shape[dim]
    start = max(start + extent, 0) if start < 0 else start
    length = node.meta["val"].shape[dim]
    if length == extent and step == 1:
        return arguments.first()
    if step != 1 and "slice" in words.OPS:
        attrs = {"dim": dim, "start": start, "end": min(start + length * step, extent), "step": step}
        return walk.add(node, "slice", [arguments.first()], attrs)
    if step == 1:
        op = "narrow" if "narrow" in words.OPS else "aten::narrow"
        return walk.add(node, op, [arguments.first()], {"dim": dim, "start": start, "length": length})
    return None


def _attention(walk, node, arguments):
    if arguments.get("dropout_p", 0):
        return None
    of = [arguments.get(key) for key in ("query", "key", "value", "attn_mask")]
    attrs = {key: arguments.get(key) for key in ("scale", "is_causal", "enable_gqa") if arguments.get(key) not in (None, False)}
    return walk.add(node, "scaled_dot_product_attention", [each for each in of if each is not None], attrs)


def _counted(walk, node, arguments):
    """arange, with the dtype that came out."""
    if "arange" not in words.OPS or not isinstance(arguments.get("end"), (int, float)):
        return None
    attrs = {key: arguments.get(key) for key in ("start", "end", "step") if arguments.get(key) is not None}
    return walk.add(node, "arange", [], {**attrs, "dtype": dtype_name(dtype_of(node))})


def _between(walk, node, arguments):
    """linspace, with the dtype that came out."""
    ends = [arguments.get(key) for key in ("start", "end")]
    if "linspace" not in words.OPS or not all(isinstance(each, (int, float)) for each in ends):
        return None
    return walk.add(node, "linspace", [], {"start": ends[0], "end": ends[1], "num": arguments.get("steps"), "dtype": dtype_name(dtype_of(node))})


def _instance_norm(walk, node, arguments):
    """By the statistics of the batch itself, none of which are kept."""
    of = [arguments.get(key) for key in ("input", "weight", "bias")]
    if "instance_norm" not in words.OPS or arguments.get("running_mean") is not None or not arguments.get("use_input_stats", True) \
            or (of[1] is None and of[2] is not None):
        return None
    return walk.add(node, "instance_norm", [each for each in of if each is not None], {"eps": arguments.get("eps", 1e-5)})


def _is_whole(node):
    dtype = node.meta["val"].dtype
    return not dtype.is_floating_point and str(dtype) != "torch.bool"


def _counts_rows(node, rows):
    """arange(rows), as in x[torch.arange(len(x)), target]."""
    return getattr(node.target, "__name__", "") == "arange.default" and tuple(node.args) == (rows,)


def _index(walk, node, arguments):
    """x[i, j]: index_select if it selects by one row of whole numbers, gather if x[arange(n), j] picks one of each row,
    else index. PyTorch adds up the gradient of x[i] in x's own dtype, that of index_select in float32."""
    given = [(dim, each) for dim, each in enumerate(node.args[1]) if each is not None]
    shape = list(node.args[0].meta["val"].shape)
    indices, dims = arguments.get("indices"), [dim for dim, _ in given]
    if not all(_is_whole(each) for _, each in given):
        raise CaptureError(f"op index: what a mask keeps depends on its values; tensors of whole numbers can be said{at(node)}", Reason.DATA_DEPENDENT)
    if dims == [0, 1] and list(given[1][1].meta["val"].shape) == shape[:1] and len(shape) == 2 and _counts_rows(given[0][1], shape[0]):
        column = walk.add(node, "unsqueeze", [indices[1]], {"dim": 1})
        return walk.add(node, "squeeze", [walk.add(node, "gather", [arguments.first(), column], {"dim": 1})], {"dim": 1})
    if dims != list(range(dims[0], dims[-1] + 1)):
        raise CaptureError(f"op index: whole numbers for dimensions that are no neighbours cannot be said{at(node)}", Reason.INDEX_FORM)
    said = walk.known.get(indices[dims[0]])
    counted = said is not None and bool((said < 0).any())  # from the end
    if len(given) == 1 and given[0][1].meta["val"].dim() == 1 and not walk.backward and not counted:
        return walk.add(node, "index_select", [arguments.first(), indices[dims[0]]], {"dim": dims[0]})
    return walk.add(node, "index", [arguments.first(), *(indices[dim] for dim in dims)], {"dim": dims[0]} if dims[0] else {})


def _targets(walk, node, arguments):
    """cross_entropy and nll_loss: PyTorch passes over targets of -100, and the step states so if there may be some."""
    target = arguments.get("target")
    ignored = arguments.get("ignore_index", -100)
    said = walk.known.get(target)
    if ignored != -100 or not _is_whole(node.args[1]) or (said is not None and not bool((said == ignored).any())):
        return None
    return walk.step(node, node.target._schema.name.removeprefix("aten::"), arguments, {"ignore_index": ignored})


def _turned(walk, node, arguments):
    """fliplr and flipud, as flip."""
    name = node.target._schema.name.removeprefix("aten::")
    return walk.add(node, "flip", [arguments.first()], {"dims": [1 if name == "fliplr" else 0]})


def _padded(walk, node, arguments):
    """constant_pad_nd and the pads with a way in their name, as pad."""
    name = node.target._schema.name.removeprefix("aten::")
    attrs = {"pad": arguments.get("pad" if name == "constant_pad_nd" else "padding")}
    if name != "constant_pad_nd":
        attrs["mode"] = "reflect" if name.startswith("reflection") else "replicate"
    elif arguments.get("value", 0) != 0:
        attrs["value"] = arguments.get("value")
    return walk.add(node, "pad", [arguments.first()], attrs)


def _put(walk, node, arguments):
    """x[index] = values with one list of whole numbers and a row for each: index_copy."""
    given = [(dim, each) for dim, each in enumerate(node.args[1]) if each is not None]
    index = given[0][1].meta["val"] if len(given) == 1 else None
    if arguments.get("accumulate") or index is None or index.dim() != 1 or index.dtype.is_floating_point or str(index.dtype) == "torch.bool":
        raise CaptureError(f"op index_put: only one list of whole numbers can be said{at(node)}", Reason.INDEX_FORM)
    dim, shape = given[0][0], list(node.args[0].meta["val"].shape)
    rows = [*shape[:dim], index.shape[0], *shape[dim + 1:]]
    values = arguments.get("values")
    if list(node.args[2].meta["val"].shape) != rows:
        values = walk.add(node, "expand", [values], {"shape": rows})
    return walk.add(node, "aten::index_copy", [arguments.first(), arguments.get("indices")[dim], values], {"dim": dim})


def _outer(walk, node, arguments):
    """Every element of the one by every element of the other: PyTorch itself multiplies a column by a row."""
    column = walk.add(node, "reshape", [arguments.first()], {"shape": [-1, 1]})
    return walk.add(node, "mul", [column, list(arguments.given.values())[1]])


def _length(walk, node, arguments):
    """torch.linalg.norm without an order, of real numbers: the length, of whatever has as many dimensions."""
    value, dims = node.args[0].meta["val"], arguments.get("dim")
    if arguments.get("ord") is not None or not value.dtype.is_floating_point or arguments.get("dtype") is not None:
        return None
    attrs = {"dim": dims if len(dims) > 1 else dims[0]} if dims is not None else {}
    return walk.add(node, "norm", [arguments.first()], {**attrs, **({"keepdim": True} if arguments.get("keepdim") else {})})


def _repeated(walk, node, arguments):
    """Each element along a dimension several times: shown several times, and put in a row."""
    shape, dim, times = list(node.args[0].meta["val"].shape), arguments.get("dim"), arguments.get("repeats")
    if not isinstance(times, int) or dim is None or "repeat_interleave" in words.OPS:
        return None
    dim %= len(shape)
    apart = walk.add(node, "unsqueeze", [arguments.first()], {"dim": dim + 1})
    shown = walk.add(node, "expand", [apart], {"shape": [*shape[:dim + 1], times, *shape[dim + 1:]]})
    return walk.add(node, "reshape", [shown], {"shape": [*shape[:dim], shape[dim] * times, *shape[dim + 1:]]})


def _between_bounds(walk, node, arguments):
    """clamp_min, clamp_max, clip and clamp as clamp; bounds that are tensors as maximum and minimum, or, if gradients
    are requested, as choices: of equal elements clamp gives all of the gradient to x, maximum half of it."""
    bounds = {"min": arguments.get("min"), "max": arguments.get("max")}
    if not any(isinstance(each, str) for each in bounds.values()):
        numbers = {key: value for key, value in bounds.items() if value is not None}
        return walk.add(node, "clamp", [arguments.first()], numbers) if numbers else None
    x = arguments.first()
    if dtype_of(node) != dtype_of(node.args[0]):
        return None
    for key, bound in bounds.items():
        if bound is None:
            continue
        if not walk.backward:
            x = walk.add(node, "maximum" if key == "min" else "minimum", [x, bound])
            continue
        outside = walk.add(node, "lt" if key == "min" else "gt", [x, bound])
        x = walk.add(node, "where", [outside, bound, x])
    return x


def _cosine(walk, node, arguments):
    """Each by its length, which is no less than eps; then the sum of products: PyTorch's own steps, which it has no kernel for."""
    dim, eps = arguments.get("dim", 1), arguments.get("eps", 1e-8)
    dtypes = {dtype_of(each) for each in node.args[:2]}
    if len(dtypes) != 1 or not dtypes.pop().is_floating_point:
        return None
    shape = list(node.meta["val"].shape)
    extents = [list(each.meta["val"].shape) for each in node.args[:2]]
    extents = [[1] * (len(shape) + 1 - len(each)) + each for each in extents]
    shape.insert(dim % (len(shape) + 1), max(each[dim] for each in extents))
    parts = []
    for name, extent in zip(("x1", "x2"), extents):
        x = arguments.get(name)
        if list(node.args[name == "x2"].meta["val"].shape) != shape:
            x = walk.add(node, "expand", [x], {"shape": shape})
        length = walk.add(node, "norm", [x], {"dim": dim, "keepdim": True})
        parts.append(walk.add(node, "div", [x, walk.add(node, "clamp", [length], {"min": eps})]))
    return walk.add(node, "sum", [walk.add(node, "mul", parts)], {"dim": dim})


def _rms_norm(walk, node, arguments):
    """Without eps PyTorch takes the epsilon of a format of its own choice. Which one it takes is tried on a row so small that it shows."""
    import torch
    if arguments.get("eps") is None:
        value = node.args[0].meta["val"]
        row = torch.full((2, ), 2.0**-8, dtype=value.dtype, device=value.device)
        formats = dict.fromkeys([torch.float32 if value.dtype.itemsize < 4 else value.dtype, value.dtype])
        own = torch.rms_norm(row, [2])
        found = [torch.finfo(each).eps for each in formats if torch.equal(torch.rms_norm(row, [2], None, torch.finfo(each).eps), own)]
        if len(found) == 1:
            arguments.given["eps"] = found[0]


def _differences(walk, node, arguments):
    """diff of the first order: each element less the one before it, of the tensors in a row; PyTorch's own steps."""
    tensors = [each for each in (arguments.get("prepend"), arguments.get("self"), arguments.get("append")) if each is not None]
    dtypes = {each.meta["val"].dtype for each in node.all_input_nodes}
    if arguments.get("n", 1) != 1 or len(dtypes) != 1 or str(*dtypes) == "torch.bool":
        return None
    dim, length = arguments.get("dim", -1), node.meta["val"].shape[arguments.get("dim", -1)]
    if length < 1:
        return None
    row = walk.add(node, "cat", tensors, {"dim": dim}) if len(tensors) > 1 else tensors[0]
    later, earlier = (walk.add(node, "narrow", [row], {"dim": dim, "start": start, "length": length}) for start in (1, 0))
    return walk.add(node, "sub", [later, earlier])


def _embedding(walk, node, arguments):
    """padding_idx and its like change gradients alone."""
    whole = str(dtype_of(node.args[1])) == "torch.int64"
    return walk.add(node, "embedding", [arguments.get("weight"), arguments.get("indices")]) if whole and not walk.backward else None


def _of_two(walk, node, arguments):
    """max and min of two tensors, as maximum and minimum."""
    name = node.target._schema.name.removeprefix("aten::")
    if "other" not in arguments.given:
        return None
    return walk.add(node, name + "imum", [arguments.get("self"), arguments.get("other")])


def _einsum(walk, node, arguments):
    """More than two operands: two at a time, in PyTorch's order. The result of two goes to the end."""
    equation, tensors = arguments.get("equation").replace(" ", ""), list(arguments.get("tensors"))
    inputs, arrow, result = equation.partition("->")
    letters = inputs.split(",")
    if len(tensors) < 3 or "." in equation or any(len(set(each)) != len(each) for each in letters):
        return None
    if not arrow:
        result = "".join(each for each in sorted(set("".join(letters))) if "".join(letters).count(each) == 1)
    path = list(arguments.get("path") or [0, 1] * (len(tensors) - 1))
    while len(tensors) > 1:
        first, second = path[:2]
        path = path[2:]
        names, of = [letters[first], letters[second]], [tensors[first], tensors[second]]
        for place in sorted((first, second), reverse=True):
            del letters[place], tensors[place]
        rest = "".join(letters) + result
        kept = result if not tensors else "".join(sorted(each for each in set("".join(names)) if each in rest))
        tensors.append(walk.add(node, "einsum", of, {"equation": ",".join(names) + "->" + kept}))
        letters.append(kept)
    return tensors[0]


def _one_hot(walk, node, arguments):
    if "one_hot" not in words.OPS:
        return None
    return walk.add(node, "one_hot", [arguments.first()], {"num_classes": int(node.meta["val"].shape[-1])})


def _batch_norm(walk, node, arguments):
    """In eval mode, by the means and variances that it kept."""
    kept = [arguments.get(key) for key in ("running_mean", "running_var", "weight", "bias")]
    if "batch_norm" not in words.OPS or arguments.get("training") or None in kept[:2] or (kept[2] is None and kept[3] is not None):
        return None
    eps = arguments.get("eps")
    of = [arguments.get("input"), *(each for each in kept if each is not None)]
    return walk.add(node, "batch_norm", of, {} if eps is None else {"eps": eps})


def _logic(walk, node, arguments):
    """~, & and | of booleans, as the words for them."""
    word = node.target._schema.name.removeprefix("aten::").removeprefix("__").removesuffix("__").replace("bitwise", "logical")
    word = {"and": "logical_and", "or": "logical_or"}.get(word, word)
    operands = [each for each in arguments.given.values()]
    if word not in words.OPS or any(str(each.meta["val"].dtype) != "torch.bool" for each in node.all_input_nodes):
        return None
    return walk.add(node, word, operands) if all(isinstance(each, str) for each in operands) else None


def _kernel_of(word):
    """The dispatcher's name for the kernel of a softmax: the word, unless the kernel widens its operand by itself."""
    def said(walk, node, arguments):
        if arguments.get("half_to_float") or node.meta["val"].dim() == 0:
            return None
        return walk.add(node, word, [arguments.first()], {"dim": arguments.get("dim")})

    return said


SPELLED = {
    "_softmax": _kernel_of("softmax"), "_log_softmax": _kernel_of("log_softmax"), "_unsafe_view": _flatten,
    "clamp": _between_bounds, "clamp_min": _between_bounds, "clamp_max": _between_bounds, "clip": _between_bounds,
    "cosine_similarity": _cosine, "einsum": _einsum, "cross_entropy_loss": _targets, "nll_loss_nd": _targets,
    "fliplr": _turned, "flipud": _turned, "constant_pad_nd": _padded,
    **{f"{way}_pad{dims}d": _padded for way in ("reflection", "replication") for dims in (1, 2, 3)},
    "arange": _counted, "linspace": _between, "instance_norm": _instance_norm, "index": _index, "index_put": _put, "outer": _outer, "linalg_norm": _length, "repeat_interleave": _repeated, "one_hot": _one_hot, "batch_norm": _batch_norm,
    "bitwise_not": _logic, "bitwise_and": _logic,
    "bitwise_or": _logic, "__and__": _logic, "__or__": _logic,
    "to": _cast, "_to_copy": _cast, "type_as": _cast, "contiguous": _contiguous, "pow": _power, "square": _square, "rsub": _swapped,
    "zeros": _made_of_nothing, "ones": _made_of_nothing, "full": _made_of_nothing, "zeros_like": _made_of_nothing,
    "ones_like": _made_of_nothing, "full_like": _made_of_nothing, "new_zeros": _made_of_nothing, "new_ones": _made_of_nothing,
    "new_full": _made_of_nothing, "empty": _made_of_nothing, "empty_like": _made_of_nothing, "new_empty": _made_of_nothing,
    "scalar_tensor": _made_of_nothing, "mT": _one_dim, "numpy_T": _one_dim, "matrix_H": _one_dim,
    "flatten": _flatten, "unflatten": _flatten, "view_as": _flatten, "expand_as": _shown_as, "reshape_as": _flatten, "slice": _slice,
    "scaled_dot_product_attention": _attention, "rms_norm": _rms_norm,
    "diff": _differences, "embedding": _embedding, "max": _of_two, "min": _of_two,
}
