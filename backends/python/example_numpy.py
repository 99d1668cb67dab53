"""A complete ulpscope backend, NumPy, on one screen. Run it: ulpscope run CASE --adapter example_numpy.py"""

import os
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # the knob threads=1, set before NumPy loads its BLAS

import numpy
from ulpscope_adapter import Adapter, Result, numpy_dtype, serve

OPS = {
    "matmul": numpy.matmul,
    "add": numpy.add,
    "cast": lambda a, dtype: a.astype(numpy_dtype(dtype)),
}


class NumpyAdapter(Adapter):
    def capabilities(self):
        return {"name": "numpy", "backends": ["numpy"], "versions": {"numpy": numpy.__version__},
                "knobs": {"threads": ["1"]},
                "dtypes": ["float64", "float32", "float16", "bfloat16"],
                "ops": {"matmul": [], "add": [], "cast": ["dtype"]}}  # op: the attributes that it takes

    def run(self, request):
        values = {tensor.name: tensor.numpy() for tensor in request.tensors}
        for step in request.steps:
            values[step.name] = OPS[step.op](*step.operands(values), **step.attrs)
        return Result({name: values[name] for name in request.observe})


if __name__ == "__main__":
    serve(NumpyAdapter())
