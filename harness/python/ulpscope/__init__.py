"""ulpscope for your own program: in what precision does this function really compute, on each backend?

    case = ulpscope.capture(block, (x,))                                       # the function as a case (JAX: capture_jax)
    report = ulpscope.check(block, (x,), backends=["torch-eager", "torch-inductor"])   # what differs, where, why
    print(ulpscope.check_ops(generate, (x,)))                                  # each op of a real run, whatever its control flow
    print(ulpscope.compare(block, rewritten, (x,)))                            # one function, or where the two differ
    print(report.shrink())                                                     # the smallest program that still shows it
    ulpscope.assert_precision(my_kernel, (x, w), acc="float32")                # a proof, or a named reason

The harness is a separate program (`ulpscope`, found by places.py); this package writes cases, starts it and reads its report.
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
