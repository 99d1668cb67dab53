"""ulpscope, for one's own program: what precision does this function really compute in, here and there?

    case = ulpscope.capture(block, (x,))                                       # the case that the function is (JAX: capture_jax)
    report = ulpscope.check(block, (x,), backends=["torch-eager", "torch-inductor"])   # what parts, where, why
    print(ulpscope.check_ops(generate, (x,)))                                  # each op of a real run, whatever its control flow
    print(ulpscope.compare(block, rewritten, (x,)))                            # one function, or where the two part
    print(report.shrink())                                                     # the smallest program on which they still do
    ulpscope.assert_precision(my_kernel, (x, w), acc="float32")                # a proof, or a named reason

The harness is a program of its own (`ulpscope`, found by places.py); this package writes cases, starts it and reads what it says.
"""
import importlib

_HOME = {"capture": "capturing", "capture_jax": "capturing_jax", "CaptureError": "refusals", "Reason": "refusals", "Case": "case",
         "Unfaithful": "faithful", "check": "checking", "check_ops": "per_op", "OpsReport": "ops_report", "OpCalls": "ops_report",
         "Report": "reporting", "compare": "comparing", "Comparison": "comparing", "FirstDifference": "comparing",
         "backend": "kernels", "assert_precision": "precision", "NotProved": "precision", "PrecisionError": "precision",
         "KernelReport": "answering", "NotInstalled": "places", "shrink": "shrinking", "Shrunk": "shrinking",
         "NothingToShrink": "shrinking"}
__all__ = sorted(_HOME)


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module 'ulpscope' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"ulpscope.{_HOME[name]}"), name)
    globals()[name] = found
    return found
