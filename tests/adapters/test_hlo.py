"""HLO text: instructions, tuple types, barriers, casts and parameters; a planted change for each."""

from worker import main, redundant

from ulpscope_adapter.graph import Trace
from ulpscope_adapter.hlo import hlo_nodes, parameter_dtypes, stage_note
from ulpscope_adapter.serve import trace_entries

BEFORE = """HloModule IrToHlo, entry_computation_layout={(bf16[128,512]{1,0}, bf16[512,64]{1,0})->(f32[128,64]{1,0})}

%fused (param_0: bf16[4]) -> f32[4] {
  %param_0 = bf16[4]{0} parameter(0)
  ROOT %convert.9 = f32[4]{0} convert(bf16[4]{0} %param_0), metadata={op_name="x" source_file="a(b.py"}
}

ENTRY %main.7 (p0.1: bf16[128,512], /*index=5*/p1.2: bf16[512,64]) -> (f32[128,64]) {
  %p1.2 = bf16[512,64]{1,0} parameter(1), frontend_attributes={neff_input_names="input1"}
  %p0.1 = f16[128,512]{1,0} parameter(0)
  %dot.3 = bf16[128,64]{1,0} dot(bf16[128,512]{1,0} %p0.1, bf16[512,64]{1,0} %p1.2), lhs_contracting_dims={1}
  %convert.4 = f32[128,64]{1,0} convert(%dot.3)
  ROOT %tuple.5 = (f32[128,64]{1,0}) tuple(/*index=5*/f32[128,64]{1,0} %convert.4)
}
"""
BARRIER = """ENTRY main {
  p0.1 = bf16[3]{0} parameter(0)
  p1.2 = f32[]{:T(128)} parameter(1)
  wide = f32[3]{0} convert(p0.1)
  tuple.3 = (f32[3]{0}, (f32[], s32[2]{0}), f32[]) tuple(wide, (f32[], s32[2]{0}) other, /*index=2*/p1.2)
  opt-barrier.4 = (f32[3]{0}, (f32[], s32[2]{0}), f32[]) opt-barrier((f32[3]{0}, (f32[], s32[2]{0}), f32[]) tuple.3)
  get-tuple-element.5 = f32[3]{0} get-tuple-element(opt-barrier.4), index=0
  narrow = bf16[3]{0} convert(get-tuple-element.5)
  get-tuple-element.6 = f32[] get-tuple-element(opt-barrier.4), index=2
  ROOT bounded = f32[<=8]{0} custom-call(p1.2, get-tuple-element.6), custom_call_target="f"
}
"""
FUSED = """%fused (param_0: bf16[4,2]) -> f32[2,4] {
  %param_0 = bf16[4,2] parameter(0)
  %wide = f32[4,2] convert(%param_0)
  %turned = f32[2,4] transpose(%wide), dimensions={1,0}
  %one = f32[] constant(1)
  ROOT %ROOT_ = f32[2,4] add(%turned, %one)
}

ENTRY %main (p0: bf16[4,2]) -> f32[2,2] {
  p0 = bf16[4,2] parameter(0)
  f = f32[2,4] fusion(p0), calls=%fused
  product = f32[2,2] dot(f, p0)
  pair = (f32[2,2], f32[2,4]) tuple(product, f)
  ROOT first = f32[2,2] get-tuple-element(pair), index=0
}
"""


def test_every_instruction_is_read_with_its_operands():
    nodes = {node.name: node for node in hlo_nodes(BEFORE)}
    assert list(nodes) == ["1:param_0", "1:convert.9", "2:p1.2", "2:p0.1", "2:dot.3", "2:convert.4", "2:tuple.5"]
    dot = nodes["2:dot.3"]
    assert (dot.op, dot.dtype, dot.shape, dot.inputs) == ("dot", "bfloat16", (128, 64), ("2:p0.1", "2:p1.2"))
    assert nodes["2:tuple.5"].dtype == "float32" and nodes["2:tuple.5"].inputs == ("2:convert.4",)
    assert nodes["2:p0.1"].inputs == ()


def test_kinds_of_instructions():
    kinds = {node.name.partition(":")[2]: node.kind for node in hlo_nodes(FUSED)}
    assert kinds == {
        "param_0": "move",
        "wide": "convert",
        "turned": "move",
        "one": "input",
        "ROOT_": "compute",
        "p0": "input",
        "f": "fusion",
        "product": "product",
        "pair": "move",
        "first": "move"
    }, kinds
    called = {node.name: node.kind for node in hlo_nodes(FUSED.replace("fusion(p0), calls", "reduce(p0), to_apply"))}
    assert called["1:param_0"] == "input" and called["2:f"] == "compute"  # a reduction's own parameter


def test_casts_and_the_note_of_a_stage():
    casts = trace_of(BEFORE).casts
    assert [(c.source, c.target, c.shape, c.under, c.stage) for c in casts
            ] == [("bfloat16", "float32", (4,), "convert", "hlo"), ("bfloat16", "float32", (128, 64), "convert", "hlo")]
    assert stage_note(BEFORE, casts, "hlo") == "hlo: matrix products stored as bfloat16; 0 narrowing conversions"
    unrounded = BEFORE.replace("%dot.3 = bf16", "%dot.3 = f32")
    assert stage_note(unrounded, trace_of(unrounded).casts, "hlo").startswith("hlo: matrix products stored as float32")


def test_a_pair_around_a_barrier_is_one_pair():
    nodes = {node.name: node for node in hlo_nodes(BARRIER)}
    assert len(nodes) == 9
    assert nodes["1:tuple.3"].inputs == ("1:wide", "1:other", "1:p1.2")
    assert (nodes["1:tuple.3"].dtype, nodes["1:tuple.3"].shape) == ("float32", (3,))
    assert nodes["1:tuple.3"].more == (("float32", ()), ("int32", (2,)), ("float32", ()))
    assert nodes["1:get-tuple-element.5"].inputs == ("1:wide",)
    assert nodes["1:get-tuple-element.6"].inputs == ("1:p1.2",)
    assert undone(BARRIER) == [False, True], "the tuple may be read by others"
    other = BARRIER.replace("get-tuple-element(opt-barrier.4), index=0", "get-tuple-element(opt-barrier.4), index=1")
    assert undone(other) == [False, False]


def trace_of(text):
    trace = Trace()
    trace.add("hlo", hlo_nodes(text))
    return trace


def undone(text):
    """Whether each cast of a module changes no value."""
    trace = trace_of(text)
    entries = trace_entries(trace.nodes, trace.casts, [])
    return redundant(entries["nodes"], entries["casts"])


def test_parameters_are_those_of_the_entry_in_their_order():
    assert parameter_dtypes(BEFORE) == ["float16", "bfloat16"]
    assert parameter_dtypes(BARRIER.replace("ENTRY", "other")) == []


if __name__ == "__main__":
    main(globals())
