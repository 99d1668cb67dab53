"""The element types: one list for every adapter. Frameworks name their own by our long names, so that an adapter looks them up
by attribute."""

from ulpscope_adapter.words import WORDS

# Long name -> {"safetensors": name in a header, "bytes", "kind": floating, integer or bool}.
DTYPES = WORDS["dtypes"]


def dtypes_of(module):
    """Long name -> what `module` calls so, for the types that it has."""
    return {name: getattr(module, name) for name in DTYPES if hasattr(module, name)}


def float8_names(spell):
    """spell("e4m3fn") -> "float8_e4m3fn" ..., for the printed forms of a framework."""
    return {spell(name.removeprefix("float8_")): name for name in DTYPES if name.startswith("float8_")}


def printed_names(float8, signed, unsigned, truth, unsigned_bits=(64, 32, 16, 8)):
    """Dtypes by their names in printed graphs ("f32", "s64", "pred") -> long names; `float8` spells as for float8_names."""
    return {
        "bf16": "bfloat16",
        truth: "bool",
        **float8_names(float8),
        **{f"f{bits}": f"float{bits}" for bits in (64, 32, 16)},
        **{f"{signed}{bits}": f"int{bits}" for bits in (64, 32, 16, 8)},
        **{f"{unsigned}{bits}": f"uint{bits}" for bits in unsigned_bits}
    }
