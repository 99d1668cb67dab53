"""Writes the cases: one for each kernel, dtype and size.

usage: cases.py FILE.yaml [--only REGEX] [--prove]

A case is called KERNEL__CELL. Equal tensors have equal names and shapes, so that a store holds them once.
"""

import argparse
import pathlib
import re
from dataclasses import dataclass

import table

SHORT = {"float32": "f32", "bfloat16": "bf16", "float16": "f16", "float8_e4m3fn": "e4m3"}
PRODUCTS = ("matmul", "linear", "addmm")
SUMS = (*PRODUCTS, "sum")
WIDENS = {"matmul": "out_dtype", "addmm": "out_dtype", "sum": "dtype", "softmax": "dtype"}
_FILLS = {"steep": "{normal: {scale: 8}}", "shifted": "{normal: {scale: 1, mean: 30}}",
          "tiny": "{wide_exponent: {low: -68, high: -58}}"}  # products of two are subnormal or nearly so


@dataclass(frozen=True)
class Cell:
    kernel: str
    op: str
    inputs: str
    output: str
    m: int
    k: int
    n: int
    fill: str
    attrs: tuple = ()

    @property
    def name(self):
        return f"{self.kernel}__{SHORT[self.inputs]}_{SHORT[self.output]}_{self.k}_{self.fill}"

    def about(self):
        return f"{self.inputs}>{self.output} {self.m}x{self.k}x{self.n} {self.fill}"


def _lengths(row, first):
    """(K, fill) of the cells, of which the first dtype has more."""
    if row.lengths:
        return [(k, fill) for k in row.lengths for fill in row.fills]
    if row.op in PRODUCTS:
        return [(64, "normal"), (512, "normal"), (512, "positive"), (4096, "normal")] if first else [(512, "normal")]
    if row.op == "sum":
        return [(64, "normal"), (1000, "normal"), (1000, "positive")] if first else [(1000, "normal")]
    return [(k, fill) for fill in row.fills for k in ((64, 1000) if first and row.op not in ("gelu", "silu") else (300, ))]


def _outputs(row, inputs):
    """Dtypes of the result, that which shows more first: behind a 16-bit store there is less to see."""
    if row.outputs:
        return list(row.outputs)
    if inputs == "float32" or row.op not in WIDENS:
        return [inputs]
    return {True: ["float32"], False: [inputs]}.get(row.wide, ["float32", inputs])


def cells(rows, prove=False):
    """With proofs requested, long products have few results: judging takes time in proportion."""
    for row in rows:
        for index, inputs in enumerate(row.inputs):
            outputs = _outputs(row, inputs)
            for output in outputs:
                for k, fill in _lengths(row, index == 0 and output == outputs[0]):
                    m, n = (64, 64) if row.op in PRODUCTS else (64, 1) if row.op == "sum" else (16, k)
                    if prove and k > 1000:
                        m, n = 16, 16
                    yield Cell(row.name, row.op, inputs, output, m, k, n, fill, tuple(row.attrs.items()))


def tensors(cell):
    """name -> shape, in the order of the program's operands."""
    m, k, n = cell.m, cell.k, cell.n
    return {"matmul": {"x": (m, k), "w": (k, n)}, "linear": {"x": (m, k), "w": (n, k), "b": (n, )},
            "addmm": {"b": (m, n), "x": (m, k), "w": (k, n)}, "layer_norm": {"x": (m, k), "w": (k, ), "b": (k, )},
            "rms_norm": {"x": (m, k), "w": (k, )}}.get(cell.op, {"x": (m, k)})


def attributes(cell):
    """Attributes of the step, except the dtype of its result."""
    more = {"sum": {"dim": -1}, "softmax": {"dim": -1}, "layer_norm": {"normalized_shape": [cell.k], "eps": 1e-5},
            "rms_norm": {"normalized_shape": [cell.k], "eps": 1e-5}}.get(cell.op, {})
    return {**more, **dict(cell.attrs)}


def case(cell, prove=False):
    demand = f"dtype: {cell.output}, acc: [at_least_float32], mid: [none], out: [{cell.output}_rne]"
    if cell.op in SUMS:
        demand += ", in: [as_is], prod: [exact, float32]"
    lines = [f"  - name: {cell.name}",
             f"    contract: {{status: specified, accept: {{y: {{{demand}}}}}{', prove: true' if prove else ''}}}", "    tensors:"]
    for name, shape in tensors(cell).items():
        fill = _FILLS.get(cell.fill, cell.fill) if cell.op in SUMS or name == "x" else "normal"
        lines.append(f"      {name}: {{dtype: {cell.inputs}, shape: {list(shape)}, fill: {fill}}}")
    attrs = attributes(cell)
    if cell.output != cell.inputs:
        attrs[WIDENS[cell.op]] = cell.output
    more = "".join(f", {name}: {value:.1e}" if name == "eps" else f", {name}: {value}" for name, value in attrs.items())
    lines += ["    program:", f"      - {{op: {cell.op}, of: [{', '.join(tensors(cell))}]{more}, as: y}}", "    observe: [y]"]
    return "\n".join(lines) + "\n"


def chosen(only="", prove=False):
    return list(cells([row for row in table.load().values() if re.search(only, row.name)], prove))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--only", default="", help="kernels whose names match")
    parser.add_argument("--prove", action="store_true", help="contracts ask for proof")
    options = parser.parse_args()
    mine = chosen(options.only, options.prove)
    options.file.write_text("about: Kernels of known arithmetic on a GPU; what may be said of them is known.\ncases:\n" +
                            "".join(case(cell, options.prove) for cell in mine))
    print(f"{len(mine)} cases of {len({cell.kernel for cell in mine})} kernels")


if __name__ == "__main__":
    main()
