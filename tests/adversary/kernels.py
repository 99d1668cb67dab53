"""All kernels, by name. `kernels.py` alone prints the table."""

import matmuls
import others
import wrongs

TABLES = (matmuls, wrongs, others)


def load():
    kernels = {}
    for table in TABLES:
        for kernel in table.table():
            if kernel.name in kernels:
                raise ValueError(f"two kernels are called {kernel.name}")
            kernels[kernel.name] = kernel
    return kernels


def spelled(truth):
    """The known words, as a model writes them."""
    inside = ",".join(f"{operand}:{word}" for operand, word in truth.get("in", {}).items())
    return ";".join([f"in={inside}"] * bool(inside) + [f"{facet}={truth[facet]}" for facet in ("prod", "acc", "mid",
                                                                                               "out") if facet in truth])


if __name__ == "__main__":
    for kernel in load().values():
        dtype = kernel.inputs[0]
        print(f"{kernel.name:28} {kernel.op:10} {kernel.kind:7} {kernel.why}\n{'':47}{dtype}: {spelled(kernel.truth(dtype, dtype)) or 'no words'}")
    print(len(load()), "kernels")
