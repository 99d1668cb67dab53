"""torch-aoti: known answers of packages, the cache that spares their compilation, refusals."""

import functools
import glob
import json
import os
import sys
import tempfile

from worker import PYTHON, ROOT, Adapter, count_bfloat16_valued, main, normal, step

BINARY = os.environ.get("ULPSCOPE_BIN_DIR", os.path.join(ROOT, "build", "release", "bin")) + "/ulpscope-torch"
COMPILER = os.path.join(ROOT, "backends", "torch_compile", "aoti_compiler.py")
LAYER_OBSERVED = ["y", "x.grad", "leaf.grad", "w.grad_metadata_dtype"]
CACHE = tempfile.TemporaryDirectory(prefix="ulpscope-test-aoti-")


def aoti(python=PYTHON, knobs=None, **options):
    return Adapter([BINARY, python, COMPILER], "torch-aoti", knobs=knobs,
                   env={"ULPSCOPE_AOTI_CACHE": CACHE.name}, **options)


def entries():
    return glob.glob(os.path.join(CACHE.name, "*.json"))


def product(m, n):
    tensors = {"x": normal("bfloat16", [16, m, 8], 1), "y": normal("bfloat16", [16, 8, n], 2)}
    return tensors, [
        step("empty", name="buffer", shape=[16, m, n], dtype="float32"),
        step("matmul", "x", "y", out="buffer", name="product")
    ]


def layer():
    tensors = {
        "x": normal("bfloat16", [6, 16], 1),
        "leaf": normal("float32", [10, 16], 2),
        "g": normal("bfloat16", [6, 10], 3)
    }
    return tensors, [
        step("clone", "leaf", name="w"),
        step("set_data", "w", to={"cast": "bfloat16"}),
        step("linear", "x", "w", name="y"),
        step("backward", "y", grad="g")
    ]


@functools.lru_cache(maxsize=None)
def first_answers():
    """One worker compiles every package that these tests look at."""
    with aoti() as adapter:
        vectors = adapter.run(*product(1, 1), ["product", "buffer"])
        square = adapter.run(*product(2, 2), ["product"])
        backward = adapter.run(*layer(), LAYER_OBSERVED, requires_grad=("leaf", "x"))
        return vectors, square, backward


def test_a_float32_buffer_is_rounded_through_bfloat16_but_where_the_product_becomes_a_sum():
    vectors, square, _ = first_answers()
    assert vectors["outcome"]["kind"] == square["outcome"]["kind"] == "completed", (vectors, square)
    assert vectors["parts"] == {"product": "compiled", "buffer": "eager"}
    assert vectors["values"]["buffer"] == vectors["values"]["product"]
    assert count_bfloat16_valued(vectors["values"]["product"]) < 4
    assert count_bfloat16_valued(square["values"]["product"]) == 16 * 2 * 2
    casts = [(c["from"], c["to"], c["stage"]) for c in square["casts"]]
    assert ("bfloat16", "float32", "post_grad") in casts, casts


def test_backward_in_a_package_gives_the_bits_of_eager_and_the_engine_casts_above_it():
    _, _, backward = first_answers()
    assert backward["outcome"]["kind"] == "completed", backward
    with Adapter([BINARY], "torch-eager") as eager:
        reference = eager.run(*layer(), LAYER_OBSERVED, requires_grad=("leaf", "x"))
    assert backward["values"] == reference["values"]
    assert backward["values"]["leaf.grad"].dtype == "float32"
    assert backward["observations"] == reference["observations"] == {"w.grad_metadata_dtype": "float32"}
    assert ("bfloat16", "float32", "dispatch") in [(c["from"], c["to"], c["stage"]) for c in backward["casts"]]
    assert any(note.startswith("cut: ran eagerly before the package: clone leaf, set_data w")
               for note in backward["notes"]), backward["notes"]


def test_a_second_worker_takes_the_package_from_the_cache_and_starts_no_compiler():
    first = first_answers()[1]
    with aoti(python="/bin/false") as adapter:
        again = adapter.run(*product(2, 2), ["product"])
    assert again["values"] == first["values"] and again["casts"] == first["casts"]
    assert "package: from the cache" in again["notes"] and "package: compiled now" in first["notes"]


def test_another_knob_and_another_key_are_other_packages():
    first_answers()
    with aoti(python="/bin/false", knobs={"emulate_precision_casts": "true"}) as adapter:
        answer = adapter.run(*product(2, 2), ["product"])
        assert answer["outcome"]["kind"] == "unsupported" and "compiler" in answer["outcome"]["text"]
    saved = {}
    for path in entries():  # as if another program had the same hash
        with open(path) as file:
            saved[path] = file.read()
        with open(path, "w") as file:
            json.dump({**json.loads(saved[path]), "key": "another"}, file)
    assert len(saved) == 3
    with aoti(python="/bin/false") as adapter:
        assert adapter.run(*product(2, 2), ["product"])["outcome"]["kind"] == "unsupported"
    for path, text in saved.items():
        with open(path, "w") as file:
            file.write(text)


def test_what_an_export_cannot_hold_is_refused_with_the_reason():
    tensors, steps = layer()
    with aoti() as adapter:
        late = [steps[0], steps[2], steps[1], steps[3]]
        answer = adapter.run(tensors, late, ["y"], requires_grad=("leaf", ))
        assert answer["outcome"]["kind"] == "unsupported" and "set_data after" in answer["outcome"]["text"]
        answer = adapter.run(tensors, steps, ["y.grad_metadata_dtype"], requires_grad=("leaf", ))
        assert answer["outcome"]["kind"] == "unsupported" and "no autograd graph" in answer["outcome"]["text"]
        wide = [step("matmul", "x", "y", name="r", preferred_element_type="float32")]
        answer = adapter.run(product(2, 2)[0], wide, ["r"])
        assert answer["outcome"]["kind"] == "unsupported", answer
        assert "torch has no preferred_element_type" in answer["outcome"]["text"], answer
        mixed = {"x": normal("bfloat16", [4, 4], 1), "y": normal("float32", [4, 4], 2)}
        answer = adapter.run(mixed, [step("matmul", "x", "y", name="r")], ["r"])
        assert (answer["outcome"]["kind"], answer["outcome"]["class"]) == ("raised", "RuntimeError"), answer


if __name__ == "__main__":
    if not os.path.exists(BINARY):
        sys.exit(f"{BINARY} is not built")
    main(globals())
