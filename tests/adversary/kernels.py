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


if __name__ == "__main__":
    for kernel in load().values():
        print(f"{kernel.name:24} {kernel.op:12} {kernel.kind:7} {kernel.why}")
    print(len(load()), "kernels")
