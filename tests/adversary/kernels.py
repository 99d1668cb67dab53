"""All kernels, by name. `kernels.py` alone prints the table."""

from dataclasses import replace

import apart_chains
import apart_narrow
import apart_orders
import apart_wrong
import fresh
import fresh_eighth
import fresh_eleventh
import fresh_fifth
import fresh_fourth
import fresh_ninth
import fresh_second
import fresh_seventh
import fresh_sixth
import fresh_tenth
import fresh_third
import fresh_thirteenth
import fresh_twelfth
import heldout_chains
import heldout_operands
import heldout_orders
import heldout_places
import heldout_sums
import matmuls
import others
import wrongs

FIRST = (matmuls, wrongs, others)
HELD_OUT = (heldout_orders, heldout_operands, heldout_sums, heldout_places, heldout_chains)  # names begin with h_
APART = (apart_orders, apart_narrow, apart_chains, apart_wrong)  # names begin with a_
# Names begin with n_, then with q_, r_, f_, g_, k_, l_, d_, e_, m_, o_, j_ and t_.
FRESH = (fresh, fresh_second, fresh_third, fresh_fourth, fresh_fifth, fresh_sixth, fresh_seventh, fresh_eighth, fresh_ninth,
         fresh_tenth, fresh_eleventh, fresh_twelfth, fresh_thirteenth)
# Other formulas, each step of which is float32: what they are off by is accuracy, of which no contract speaks.
FORMULAS = {"tanh_pade", "a_tanh_one_cubic", "h_gelu_short_erf", "h_silu_half_tanh", "h_tanh_by_sigmoid",
            "f_rms_norm_rsqrt_by_logarithm", "f_tanh_difference", "k_gelu_sixteenth_power",
            "k_silu_ln2_in_one", "k_softmax_scaled_then_subtracted",
            "o_gelu_by_symmetry", "o_silu_batch_inversion", "o_softmax_last_as_rest",
            "j_gelu_second_order_at_bfloat16", "j_silu_clenshaw", "j_softmax_from_cumulative", "j_softmax_running_logarithm"}


def load(tables=FIRST + HELD_OUT + APART + FRESH):
    kernels = {}
    for table in tables:
        for kernel in table.table():
            if kernel.name in kernels:
                raise ValueError(f"two kernels are called {kernel.name}")
            kernels[kernel.name] = replace(kernel, formula=kernel.name in FORMULAS)
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
