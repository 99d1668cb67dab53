"""The kind of trace node that an operation of PyTorch is, read from its schema.

backends/torch/op_kinds.cc answers the same for the adapters in C++: they have LibTorch and no Python.
tests/adapters/test_torch_traced.py holds the two against each other.
"""

import functools

# A schema does not distinguish these from ops that compute. The conversions are aten's and prims', and a tensor's methods.
_BY_NAME = {
    **dict.fromkeys(("to", "_to_copy", "type_as", "convert_element_type", "float", "bfloat16", "half", "double", "type",
                     "int", "long", "bool"), "convert"),
    **dict.fromkeys(("addmm", "baddbmm", "bmm", "dot", "linear", "matmul", "mm", "mv"), "product"),
    **dict.fromkeys(("_unsafe_view", "clone", "copy", "copy_"), "move"),
    **dict.fromkeys(("empty", "empty_like", "empty_strided", "_has_compatible_shallow_copy_type"), "view"),
}


@functools.cache
def kind_of(op):
    """Kind of an op by its name, with or without namespace ("aten::mm"). A conversion is one whether or not dtypes differ."""
    plain = op.rpartition("::")[2]
    if plain in _BY_NAME or not plain.isidentifier():
        return _BY_NAME.get(plain, "compute")
    import torch
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{plain}"):
        alias = schema.returns[0].alias_info if schema.returns else None
        if alias is not None and not alias.is_write:  # the first result shows an operand's memory
            return "view"
    return "compute"
