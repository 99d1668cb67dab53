"""The actual computation of each stack in the blocks of cases/blocks, step by step: found with recompute.py, on torch 2.13.0 and jax
0.10.2, CPU.

A step that is not listed computes in float32 from its operands as stored. Each listed one is what holds in every element while
"all as stored" does not.
"""

from described import Description

EAGER, AOT, INDUCTOR = "torch-eager", "torch-aot-eager", "torch-inductor"
EMULATE, JAX, JAX_EAGER = "torch-inductor:emulate_precision_casts=true", "jax", "jax-eager"
BACKENDS = (EAGER, AOT, INDUCTOR, EMULATE, JAX, JAX_EAGER)
CASES = ("blocks/layers/mlp", "blocks/layers/attention", "blocks/layers/gelu_linear[approximate=none]", "blocks/layers/gelu_linear[approximate=tanh]",
         "blocks/layers/linear_bias", "blocks/layers/rms_norm", "blocks/layers/layer_norm[dtype=bfloat16]", "blocks/layers/layer_norm[dtype=float32]",
         "blocks/layers/softmax[dtype=bfloat16]", "blocks/layers/softmax[dtype=float32]", "blocks/layers/softmax_widened", "blocks/layers/rope", "blocks/training/adam",
         "blocks/training/adam_moment", "blocks/training/sgd[dtype=float32]", "blocks/training/sgd[dtype=bfloat16]", "blocks/training/cross_entropy",
         "blocks/training/unscaled")


def reads(*names, word="unrounded"):
    return Description(reads=dict.fromkeys(names, word))


def rounds(*sites, form=""):
    return Description(rounded=sites, form=form)


_EXP = ("exp", "one_plus", "sigmoid")
_NUMERATOR = ("shifted", "exp_in_numerator", "total")  # under jit the exp of the denominator stays in float32
_SOFTMAX = ("shifted", "exp_in_numerator", "exp_in_denominator", "total")
_GELU_TANH = ("scalar", "square", "cube", "scaled", "sum", "inner", "tanh", "one_plus")

# (case, value) -> backends -> description.
TRUTH = {
    ("blocks/layers/mlp", "s"): {(JAX, JAX_EAGER): rounds(*_EXP)},
    ("blocks/layers/mlp", "g"): {(INDUCTOR, ): reads("s")},
    ("blocks/layers/attention", "scaled"): {(JAX, JAX_EAGER): rounds("scalar")},
    ("blocks/layers/attention", "p"): {(INDUCTOR, EMULATE): reads("scaled"), (JAX, ): rounds(*_NUMERATOR), (JAX_EAGER, ): rounds(*_SOFTMAX)},
    ("blocks/layers/gelu_linear[approximate=none]", "h"): {(JAX, JAX_EAGER): rounds("product")},
    ("blocks/layers/gelu_linear[approximate=none]", "y"): {(JAX, ): rounds("scalar", "erfc", form="by erfc"),
                                                    (JAX_EAGER, ): rounds("scalar", "scaled", "erfc", form="by erfc")},
    ("blocks/layers/gelu_linear[approximate=tanh]", "h"): {(JAX, JAX_EAGER): rounds("product")},
    ("blocks/layers/gelu_linear[approximate=tanh]", "y"): {(JAX, JAX_EAGER): rounds(*_GELU_TANH)},
    ("blocks/layers/linear_bias", "y"): {(JAX, JAX_EAGER): rounds("product")},
    # The mean's division is a product with 1/48 there, which is contracted with the sum.
    ("blocks/layers/rms_norm", "shifted"): {(JAX, ): reads("variance")},
    ("blocks/layers/rms_norm", "y"): {(INDUCTOR, ): reads("narrow")},
    ("blocks/layers/softmax[dtype=bfloat16]", "p"): {(INDUCTOR, ): rounds(form="operand not cast"), (JAX, ): rounds(*_NUMERATOR),
                                              (JAX_EAGER, ): rounds(*_SOFTMAX)},
    ("blocks/layers/rope", "left"): {(INDUCTOR, ): reads("ec", "os")},
    ("blocks/layers/rope", "right"): {(INDUCTOR, ): reads("es", "oc")},
    ("blocks/training/adam", "m_new"): {(JAX, ): reads("m_kept", word="contracted")},
    ("blocks/training/adam", "v_new"): {(JAX, ): reads("v_kept", word="contracted")},
    ("blocks/training/adam", "w_new"): {(JAX, ): reads("step", word="contracted")},
    ("blocks/training/adam_moment", "m_new"): {(EAGER, AOT): rounds(form="alpha contracted"), (JAX, ): reads("kept", word="contracted")},
    ("blocks/training/sgd[dtype=float32]", "b_new"): {(JAX, ): reads("kept", word="contracted")},
    ("blocks/training/sgd[dtype=float32]", "w_new"): {(JAX, ): reads("step", word="contracted")},
    ("blocks/training/sgd[dtype=bfloat16]", "kept"): {(JAX, JAX_EAGER): rounds("scalar")},
    ("blocks/training/sgd[dtype=bfloat16]", "b_new"): {(INDUCTOR, ): reads("kept")},
    ("blocks/training/sgd[dtype=bfloat16]", "step"): {(INDUCTOR, ): reads("b_new"), (JAX, JAX_EAGER): rounds("scalar")},
    ("blocks/training/sgd[dtype=bfloat16]", "w_new"): {(INDUCTOR, ): reads("step")},
    ("blocks/training/unscaled", "small"): {(JAX, JAX_EAGER): rounds(form="results flushed")},
    # Two scalars become one, which is subnormal: all of it is zero.
    ("blocks/training/unscaled", "smaller"): {(JAX, ): rounds(form="scalars folded, operands flushed"), (JAX_EAGER, ): rounds(form="results flushed")},
}
# Cases whose instrumented run gives other bits: the sum's order follows from what else is stored.
OPENING_CHANGES = {("blocks/training/cross_entropy", INDUCTOR), ("blocks/training/cross_entropy", EMULATE)}


def truth(case, backend, value):
    for backends, description in TRUTH.get((case, value), {}).items():
        if backend in backends:
            return description
    return Description()

# Steps that the report has no name for yet, and reports as such: two factors that are folded into one.
NAMELESS = {("blocks/training/unscaled", JAX, "smaller")}

# Results that would be subnormal and are zero. jax folds the two factors of "smaller" into one, which is subnormal itself.
FLUSHED = {("blocks/training/unscaled", JAX, "small"), ("blocks/training/unscaled", JAX_EAGER, "small"),
           ("blocks/training/unscaled", JAX_EAGER, "smaller")}
