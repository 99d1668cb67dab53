"""Known answers of jax (jit) and jax-eager (op by op), from their numbers; stages, refusals, knobs."""

import struct

from worker import (Tensor, exact_matmul, is_product_rounded, main, normal, redundant, start, step, values, warm,
                    worst_relative_error)

BACKENDS = ("jax", "jax-eager")
FLOAT32 = 1e-6  # float32 accumulation of sums of 48 products, relative to the largest result

TENSORS = {"x": normal("bfloat16", [32, 48], 1), "y": normal("bfloat16", [48, 40], 2)}
WIDENED = [step("matmul", "x", "y", name="p"), step("cast", "p", name="r", dtype="float32")]


def is_rounded(tensor):
    return is_product_rounded(tensor, TENSORS["x"], TENSORS["y"])


def test_preferred_element_type_is_unrounded_float32():
    steps = [step("matmul", "x", "y", name="p", preferred_element_type="float32")]
    for backend in BACKENDS:
        answer = warm(backend).run(TENSORS, steps, ["p"])
        assert answer["values"]["p"].dtype == "float32" and not is_rounded(answer["values"]["p"])
        assert warm(backend).run(TENSORS, WIDENED[:1], ["p"])["values"]["p"].dtype == "bfloat16"


def test_jit_drops_the_rounding_that_op_by_op_keeps():
    answer = warm("jax").run(TENSORS, WIDENED, ["r"])
    assert not is_rounded(answer["values"]["r"])
    assert "hlo: matrix products stored as bfloat16; 0 narrowing conversions" in answer["notes"]
    assert "hlo_optimized: matrix products stored as float32; 0 narrowing conversions" in answer["notes"]
    assert {c["stage"] for c in answer["casts"]} == {"jaxpr", "stablehlo", "hlo", "hlo_optimized"}
    assert answer["parts"] == {"r": "compiled"}
    answer = warm("jax-eager").run(TENSORS, WIDENED, ["r"])
    assert is_rounded(answer["values"]["r"])
    assert [(c["from"], c["to"], c["stage"]) for c in answer["casts"]] == [("bfloat16", "float32", "jaxpr")]
    assert answer["parts"] == {"r": "eager"}


def test_without_excess_precision_jit_rounds_too():
    with start("jax", knobs={"xla_allow_excess_precision": "false"}) as adapter:
        answer = adapter.run(TENSORS, WIDENED, ["r"])
        assert is_rounded(answer["values"]["r"])
        assert "hlo_optimized: matrix products stored as float32; 1 narrowing conversions" in answer["notes"]


def results_of(answer, op):
    """stage -> dtypes of the results of every node of that op"""
    stages = {}
    for node in answer["nodes"]:
        if node["op"] == op:
            stages.setdefault(node["stage"], []).append(node["outputs"][0][0])
    return stages


def test_the_product_is_bfloat16_in_every_stage_but_the_compiled_one():
    for excess, compiled, rounded in (("true", "float32", False), ("false", "float32", True)):
        with start("jax", knobs={"xla_allow_excess_precision": excess}) as adapter:
            answer = adapter.run(TENSORS, WIDENED, ["r"])
            assert results_of(answer, "dot_general") == {"jaxpr": ["bfloat16"], "stablehlo": ["bfloat16"]}
            assert results_of(answer, "dot") == {"hlo": ["bfloat16"], "hlo_optimized": [compiled]}
            casts = [(c["from"], c["to"])
                     for c in answer["casts"]
                     if c["stage"] == "hlo_optimized" and c["shape"] == [32, 40]]
            # The CPU's product is float32 either way; with the knob it is rounded by a conversion of its own.
            assert casts == ([("float32", "bfloat16"), ("bfloat16", "float32")] if rounded else []), casts
            assert is_rounded(answer["values"]["r"]) == rounded


def test_the_trace_is_one_tree_a_stage_with_instructions_inside_their_fusion():
    answer = warm("jax").run(TENSORS, WIDENED, ["r"])
    nodes = {node["id"]: node for node in answer["nodes"]}
    roots = [node["stage"] for node in nodes.values() if node["parent"] == -1]
    assert roots == ["jaxpr", "stablehlo", "hlo", "hlo_optimized"]
    for node in nodes.values():
        assert all(nodes[other]["stage"] == node["stage"] for other in node["from"])
        assert node["parent"] == -1 or nodes[node["parent"]]["stage"] == node["stage"]
    assert any(
        node["op"] == "dot" and nodes[node["parent"]]["op"].startswith("fusion") for node in nodes.values())
    (cast,) = (c for c in answer["casts"] if c["stage"] == "hlo")
    assert nodes[cast["node"]]["op"] == "convert" and nodes[nodes[cast["node"]]["from"][0]]["op"] == "dot"


def test_kinds_of_nodes_in_every_stage():
    steps = [
        step("cast", "x", name="wide", dtype="float32"),
        step("transpose", "wide", name="turned", dim0=0, dim1=1),
        step("matmul", "turned", "wide", name="p"),
        step("silu", "p", name="r")
    ]
    answer = warm("jax").run(TENSORS, steps, ["r"])
    kinds = {}
    for node in answer["nodes"]:
        kinds.setdefault((node["stage"], node["op"].split()[0]), set()).add(node.get("kind", "compute"))
    for stage, named in {
            "jaxpr": {"convert_element_type": {"convert"}, "transpose": {"move"}, "dot_general": {"product"},
                      "logistic": {"compute"}, "program": {"compute"},
                      "input": {"input", "move"}},  # of the program; of the silu, which is a jaxpr of its own
            "stablehlo": {"convert": {"convert"}, "transpose": {"move"}, "dot_general": {"product"}, "input": {"input"},
                          "constant": {"input"}, "negate": {"compute"}},
            "hlo": {"convert": {"convert"}, "transpose": {"move"}, "dot": {"product"}, "constant": {"input"}},
            "hlo_optimized": {"fusion": {"fusion"}, "convert": {"convert"}, "parameter": {"input", "move"}}
    }.items():
        found = {op: kinds.get((stage, op)) for op in named}
        assert found == named, (stage, found, kinds)


def test_a_redundant_pair_is_found_in_every_stage_until_the_compiler_removes_it():
    steps = [
        step("cast", "x", name="up", dtype="float32"),
        step("cast", "up", name="down", dtype="bfloat16"),
        step("exp", "down", name="r")
    ]
    for backend, stages in (("jax", {"jaxpr", "stablehlo", "hlo"}), ("jax-eager", {"jaxpr"})):
        answer = warm(backend).run(TENSORS, steps, ["r"])
        casts = answer["casts"]
        pairs = [(c["stage"], c["from"], c["to"]) for c, flag in zip(casts, redundant(answer["nodes"], casts)) if flag]
        assert sorted(pairs) == sorted(pair for stage in stages
                                           for pair in ((stage, "bfloat16", "float32"), (stage, "float32",
                                                                                         "bfloat16"))), casts
    rounding = [
        step("cast", "a", name="down", dtype="bfloat16"),
        step("cast", "down", name="r", dtype="float32")
    ]
    answer = warm("jax").run({"a": normal("float32", [8, 8], 1)}, rounding, ["r"])
    assert answer["casts"] and not any(redundant(answer["nodes"], answer["casts"])), answer["casts"]


def test_a_jaxpr_inside_another_stands_under_the_equation_that_holds_it():
    # jax.nn.silu is jitted itself: twice the same inner jaxpr, which are two nodes each.
    steps = [step("silu", "x", name="s"), step("silu", "s", name="r")]
    answer = warm("jax-eager").run(TENSORS, steps, ["r"])
    nodes = {node["id"]: node for node in answer["nodes"]}
    assert len(nodes) == len(answer["nodes"])
    inner = [node for node in nodes.values() if node["op"] == "logistic"]
    assert len(inner) == 2 and {nodes[node["parent"]]["op"] for node in inner} <= {"jit", "pjit"}
    assert inner[0]["parent"] != inner[1]["parent"]


def test_without_a_trace_there_is_none_and_the_values_are_the_same():
    for backend in BACKENDS:
        traced, bare = (warm(backend).run(TENSORS, WIDENED, ["r"], trace=trace) for trace in (True, False))
        assert traced["nodes"] and bare["nodes"] == bare["casts"] == [] and bare["values"] == traced["values"]


def test_mixed_dtypes_promote():
    tensors = {"x": TENSORS["x"], "y": normal("float32", [48, 8], 3)}
    for backend in BACKENDS:
        answer = warm(backend).run(tensors, WIDENED[:1], ["p"])
        assert answer["values"]["p"].dtype == "float32"
        assert worst_relative_error(answer["values"]["p"], exact_matmul(tensors["x"], tensors["y"])) < FLOAT32


def test_float64_stays_float64_unless_x64_is_off():
    tensors = {"a": normal("float64", [8, 8], 1)}
    for backend in BACKENDS:
        answer = warm(backend).run(tensors, [step("matmul", "a", "a", name="p")], ["p"])
        assert answer["values"]["p"].dtype == "float64"
        assert worst_relative_error(answer["values"]["p"], exact_matmul(tensors["a"], tensors["a"])) < 1e-14
    with start("jax", knobs={"jax_enable_x64": "false"}) as adapter:
        answer = adapter.run(tensors, [step("matmul", "a", "a", name="p")], ["p"])
        assert answer["values"]["p"].dtype == "float32" and answer["knobs"]["jax_enable_x64"] == "false"


def test_backward_against_sums_and_adding_up():
    tensors = {
        "x": normal("float32", [6, 4], 1),
        "w": normal("float32", [3, 4], 2),
        "g": normal("float32", [6, 3], 4)
    }
    for backend in BACKENDS:
        once = [step("linear", "x", "w", name="o"), step("sum", "o", name="loss"), step("backward", "loss")]
        first = warm(backend).run(tensors, once, ["w.grad", "x.grad", "w.grad_metadata_dtype"],
                                  requires_grad=["w"])
        assert first["observations"] == {"x.grad": "none", "w.grad_metadata_dtype": "none"}
        assert first["parts"]["w.grad"] == "backward"
        gradient = values(first["values"]["w.grad"])
        assert gradient[:4] == gradient[4:8] == gradient[8:]  # every row sums the same inputs
        exact = [sum(values(tensors["x"])[i * 4 + k] for i in range(6)) for k in range(4)]
        assert max(abs(a - b) for a, b in zip(gradient, exact)) < 1e-6
        again = [
            step("linear", "x", "w", name="o2"),
            step("sum", "o2", name="loss2"),
            step("backward", "loss2")
        ]
        twice = warm(backend).run(tensors, once + again, ["w.grad"], requires_grad=["w"])
        assert values(twice["values"]["w.grad"]) == [2 * v for v in gradient]  # doubling is exact
        repeated = [*once[:2], step("backward", "loss", retain_graph=True), step("backward", "loss")]
        repeated = warm(backend).run(tensors, repeated, ["w.grad"], requires_grad=["w"])
        assert values(repeated["values"]["w.grad"]) == [2 * v for v in gradient]
        seeded = warm(backend).run(tensors, once[:1] + [step("backward", "o", grad="g")], ["w.grad"],
                                   requires_grad=["w"])
        expected = [
            sum(values(tensors["g"])[i * 3 + j] * values(tensors["x"])[i * 4 + k]
                for i in range(6))
            for j in range(3)
            for k in range(4)
        ]
        assert max(abs(a - b) for a, b in zip(values(seeded["values"]["w.grad"]), expected)) < 1e-5


def test_set_data_before_use_is_a_cast_and_later_is_refused():
    tensors = {"x": TENSORS["x"], "w": normal("float32", [40, 48], 5)}
    cast, forward = step("set_data", "w",
                         to={"cast": "bfloat16"
                            }), [step("linear", "x", "w", name="o"),
                                 step("sum", "o", name="loss")]
    for backend in BACKENDS:
        answer = warm(backend).run(tensors, [cast, *forward, step("backward", "loss")], ["w", "w.grad"],
                                   requires_grad=["w"])
        assert {
            name: t.dtype for name, t in answer["values"].items()
        } == {
            "w": "bfloat16",
            "w.grad": "bfloat16"
        }
        outcome = warm(backend).run(tensors, [*forward, cast, step("backward", "loss")], ["w.grad"],
                                    requires_grad=["w"])["outcome"]
        assert outcome["kind"] == "unsupported" and "set_data w" in outcome["text"]


def test_layer_norm_against_float64():
    tensors = {
        "x": normal("float32", [4, 64], 1),
        "w": normal("float32", [64], 2),
        "b": normal("float32", [64], 3)
    }
    x, w, b = (values(tensors[name]) for name in "xwb")
    expected = []
    for row in range(4):
        line = x[row * 64:row * 64 + 64]
        mean = sum(line) / 64
        variance = sum((v - mean)**2 for v in line) / 64
        expected += [(v - mean) / (variance + 1e-5)**0.5 * w[i] + b[i] for i, v in enumerate(line)]
    for backend in BACKENDS:
        answer = warm(backend).run(
            tensors, [step("layer_norm", "x", "w", "b", name="y", normalized_shape=[64], eps=1e-5)], ["y"])
        assert max(abs(a - e) for a, e in zip(values(answer["values"]["y"]), expected, strict=True)) < 1e-5
        assert any(note.startswith("layer_norm: mean, variance") for note in answer["notes"])


def test_regions_side_by_side_are_nodes_of_their_own():
    tensors = {"x": normal("float32", [6, 8], 1), "s": normal("float32", [6, 8], 2)}
    tensors["i"] = Tensor("int64", (6, 8), struct.pack("<48q", *(k * 5 % 8 for k in range(48))))
    steps = [step("scatter_add", "x", "i", "s", name="a", dim=1), step("scatter_add", "a", "i", "x", name="b", dim=1)]
    for backend in BACKENDS:
        answer = warm(backend).run(tensors, steps, ["b"])
        ids = [node["id"] for node in answer["nodes"]]
        assert len(ids) > 4 and len(ids) == len(set(ids))
        x, s = values(tensors["x"]), values(tensors["s"])
        expected = list(x)
        for k in range(48):
            expected[k // 8 * 8 + k * 5 % 8] += s[k] + x[k]
        assert max(abs(a - e) for a, e in zip(values(answer["values"]["b"]), expected, strict=True)) < 1e-5


def test_shapes_and_scalars():
    a = Tensor("float32", (2, 3), struct.pack("<6f", *range(6)))
    steps = [
        step("transpose", "a", name="t", dim0=0, dim1=1),
        step("mul", "t", 0.5, name="half"),
        step("unsqueeze", "half", name="u", dim=0),
        step("expand", "u", name="e", shape=[2, -1, 2]),
        step("sum", "e", name="s", dim=[0, 2]),
        step("select", "half", name="c", dim=1, index=1)
    ]
    for backend in BACKENDS:
        answer = warm(backend).run({"a": a}, steps, ["half", "s", "c"])
        assert values(answer["values"]["half"]) == [0, 1.5, 0.5, 2, 1, 2.5]
        assert values(answer["values"]["s"]) == [3, 5, 7] and answer["values"]["s"].shape == (3,)
        assert values(answer["values"]["c"]) == [1.5, 2, 2.5]


def test_refusals_carry_their_reason():
    empty = step("empty", name="buffer", shape=[32, 40], dtype="float32")
    for steps, word in (([empty, step("matmul", "x", "y", out="buffer", name="p")], "JAX has no out="),
                        ([step("matmul", "x", "y", name="p", out_dtype="float32")], "preferred_element_type"),
                        ([step("autocast", device="auto", steps=WIDENED[:1])],
                         "JAX has no autocast"), ([step("aten::mm", "x", "y", name="p")], "aten::mm")):
        outcome = warm("jax").run(TENSORS, steps, ["p"])["outcome"]
        assert outcome["kind"] == "unsupported" and word in outcome["text"], outcome


def test_a_wrong_shape_raises_the_class_of_jax():
    for backend in BACKENDS:
        outcome = warm(backend).run({"x": TENSORS["x"]}, [step("matmul", "x", "x", name="p")],
                                    ["p"])["outcome"]
        assert (outcome["kind"], outcome["class"]) == ("raised", "TypeError"), outcome


def test_dot_algorithms():
    f16 = {"x": normal("float32", [32, 48], 1), "y": normal("float32", [48, 40], 2)}
    exact = exact_matmul(f16["x"], f16["y"])
    errors = {}
    for preset in ("default", "F16_F16_F16"):
        with start("jax", knobs={"jax_matmul_precision": preset}) as adapter:
            answer = adapter.run(f16, WIDENED[:1], ["p"])
            assert answer["knobs"]["jax_matmul_precision"] == preset
            errors[preset] = worst_relative_error(answer["values"]["p"], exact)
    assert errors["default"] < FLOAT32 < 2.0**-14 < errors["F16_F16_F16"], errors
    with start("jax", knobs={"jax_matmul_precision": "TF32_TF32_F32"}) as adapter:
        outcome = adapter.run(f16, WIDENED[:1], ["p"])["outcome"]
        assert (outcome["kind"], outcome["class"]) == ("raised", "ValueError"), outcome


def test_strict_promotion_refuses_two_dtypes():
    inputs = {"x": normal("bfloat16", [8], 1), "y": normal("float32", [8], 2)}
    for backend in BACKENDS:
        for word, kind in (("standard", "completed"), ("strict", "raised")):
            with start(backend, knobs={"jax_numpy_dtype_promotion": word}) as adapter:
                answer = adapter.run(inputs, [step("add", "x", "y", name="r")], ["r"])
                assert answer["knobs"]["jax_numpy_dtype_promotion"] == word
                assert answer["outcome"]["kind"] == kind, answer["outcome"]


def test_every_result_of_an_op_has_its_name():
    x = normal("float32", [6, 16], 3)
    rows = [values(x)[i:i + 16] for i in range(0, 96, 16)]
    falling = [sorted(range(16), key=lambda i: -row[i]) for row in rows]
    columns = [sorted(range(6), key=lambda i: rows[i][column]) for column in range(16)]
    wanted = {
        "best": [row[i] for row, places in zip(rows, falling) for i in places[:2]],
        "places": [i for places in falling for i in places[:2]],
        "least_two": [columns[column][place] for place in range(2) for column in range(16)],
        "order": [columns[column][place] for place in range(6) for column in range(16)],
        "where": [places[0] for places in falling],
        "high": [max(row) for row in rows],
        "second": [each for row in rows for each in row[5:10]],
        "rest": [each for row in rows for each in row[12:]],
        "last_part": [each for row in rows for each in row[15:]],
        "last": rows[5],
    }
    steps = [step("topk", "x", name="best", k=2), step("topk", "x", name="places", k=2, result=1),
             step("topk", "x", name="least_two", k=2, dim=0, largest=False, result=1), step("sort", "x", name="order", dim=0, result=1),
             step("max", "x", name="where", dim=1, result=1), step("aminmax", "x", name="high", dim=1, result=1),
             step("split", "x", name="second", split_size=5, dim=1, result=1), step("chunk", "x", name="rest", chunks=4, dim=1, result=3),
             step("split", "x", name="last_part", split_size=5, dim=1, result=3), step("unbind", "x", name="last", result=5)]
    for backend in BACKENDS:
        answer = warm(backend).run({"x": x}, steps, list(wanted))
        assert answer["outcome"]["kind"] == "completed", answer["outcome"]
        for name, expected in wanted.items():
            assert values(answer["values"][name]) == expected, (backend, name)


def test_threads_are_counted_not_echoed():
    for threads in ("1", "3"):
        with start("jax", knobs={"threads": threads}) as adapter:
            answer = adapter.run(TENSORS, WIDENED, ["r"])
            assert answer["knobs"]["threads"] == threads and answer["fp"]["before"]["threads"] == int(threads)


def test_the_same_case_twice_gives_the_same_bytes():
    for backend in BACKENDS:
        first, second = (warm(backend).run(TENSORS, WIDENED, ["p", "r"]) for _ in range(2))
        assert first["values"] == second["values"] and first["casts"] == second["casts"] and first[
            "notes"] == second["notes"]


def test_detach_makes_a_leaf_and_cuts_what_was_before():
    """The gradient of p is g^T x, and adds up over two passes; without requires_grad there is none."""
    tensors = {"x": TENSORS["x"], "w": normal("float32", [40, 48], 5)}

    def steps(**flag):
        forward = [step("mul", "w", 2.0, name="p"), step("detach_", "p", **flag), step("linear", "x", "p", name="o"), step("sum", "o", name="loss")]
        return [*forward, step("backward", "loss")]

    for backend in BACKENDS:
        once = warm(backend).run(tensors, steps(requires_grad=True), ["p.grad", "w.grad"], requires_grad=["w"])["values"]
        rows = values(tensors["x"])
        expected = [sum(rows[k * 48 + j] for k in range(len(rows) // 48)) for j in range(48)]
        assert max(abs(a - b) for a, b in zip(values(once["p.grad"])[:48], expected)) < 1e-5
        assert set(values(once["w.grad"])) == {0.0}  # jax.vjp of what does not depend on w
        again = warm(backend).run(tensors, [*steps(requires_grad=True), step("backward", "loss")], ["p.grad"], requires_grad=["w"])["values"]
        assert values(again["p.grad"])[:48] == [2 * each for each in values(once["p.grad"])[:48]]


def test_peak_bytes_is_what_xla_plans_and_jax_eager_says_why_not():
    tensors = {"a": normal("float32", [256, 256], 1)}
    answer = warm("jax").run(tensors, [step("matmul", "a", "a", name="y")], ["y", "peak_bytes"])
    assert int(answer["observations"]["peak_bytes"]) >= 256 * 256 * 4 and any("XLA has planned" in note for note in answer["notes"])
    outcome = warm("jax-eager").run(tensors, [step("matmul", "a", "a", name="y")], ["y", "peak_bytes"])["outcome"]
    assert outcome["kind"] == "unsupported" and "only an executable says" in outcome["text"]


if __name__ == "__main__":
    main(globals())
