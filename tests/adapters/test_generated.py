"""Graphs and kernels as torch.compile prints them, read from texts: what rounds, and what is dead.

The texts are inductor's own kinds of code in small; each check has a neighbour in which the other answer is
right.
"""

import os
import sys

from worker import ROOT, main, redundant

sys.path.insert(0, os.path.join(ROOT, "backends", "torch_compile"))

import generated  # noqa: E402
import kernel_source  # noqa: E402
import printed_graphs  # noqa: E402
from ulpscope_adapter import brackets  # noqa: E402
from ulpscope_adapter.graph import Node, Trace  # noqa: E402
from ulpscope_adapter.serve import trace_entries  # noqa: E402

LOAD = """auto tmp0 = at::vec::Vectorized<{0}>::loadu(in_ptr0 + static_cast<int64_t>(x0),
                                                        static_cast<int64_t>(16));
"""
UP = "at::vec::convert<float,2,at::BFloat16,1>"
DOWN = "at::vec::convert<at::BFloat16,1,float,2>"


def kernel(body, source="at::BFloat16", target="float", loops="x0<static_cast<int64_t>(64L)"):
    return f"""
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(const {source}* in_ptr0,
                       {target}* out_ptr0)
{{
    std::atomic<int> inductor_cpu_integer_div_error{{0}};
    {{
        #pragma GCC ivdep
        for(int64_t x0=static_cast<int64_t>(0L); {loops}; x0+=static_cast<int64_t>(16L))
        {{
            {{
                {body}
            }}
        }}
    }}
}}
"""


def trace_of(source):
    trace = Trace()
    trace.add("generated",
              [Node(name="k", dtype="", op="the_kernel"), *kernel_source.kernel_nodes(source, "k:", "k")])
    return trace


def casts(source):
    trace = trace_of(source)
    return [(c.source, c.target, c.shape, flag) for c, flag in zip(trace.casts, flags(trace))]


def flags(trace):
    """Whether each cast changes no value."""
    entries = trace_entries(trace.nodes, trace.casts, [])
    return redundant(entries["nodes"], entries["casts"])


def ops(source):
    return [node.op for node in trace_of(source).nodes[1:]]


def test_a_conversion_counts_where_its_result_is_used():
    widened = LOAD.format("at::BFloat16") + f"auto tmp1 = {UP}(tmp0);\n"
    rounded = widened + f"auto tmp2 = {DOWN}(tmp1 + tmp1);\n"
    dead = kernel(rounded + "auto tmp3 = tmp1 * tmp1;\ntmp3.store(out_ptr0 + static_cast<int64_t>(x0));")
    assert casts(dead) == [("bfloat16", "float32", (64,), False)]
    assert "unused convert" in ops(dead)
    assert [node.kind for node in trace_of(dead).nodes[1:]
            ] == ["move", "convert", "convert", "compute", "move"], ops(dead)
    used = kernel(rounded + f"auto tmp3 = {UP}(tmp2);\ntmp3.store(out_ptr0 + static_cast<int64_t>(x0));")
    assert casts(used) == [("bfloat16", "float32", (64,), False), ("float32", "bfloat16", (64,), False),
                           ("bfloat16", "float32", (64,), False)]
    assert "unused convert" not in ops(used)
    # Used only by what is unused itself.
    chain = kernel(rounded + f"auto tmp3 = {UP}(tmp2);\nauto tmp4 = tmp3 * tmp3;\n"
                   "tmp1.store(out_ptr0 + static_cast<int64_t>(x0));")
    assert casts(chain) == [("bfloat16", "float32", (64,), False)] and ops(chain).count("unused convert") == 2


def test_what_is_not_understood_counts_as_used():
    body = LOAD.format("at::BFloat16") + f"auto tmp1 = {UP}(tmp0);\nauto tmp2 = {DOWN}(tmp1 + tmp1);\n"
    for unknown in ("hand_over(tmp2);", "elsewhere.value = tmp2;",
                    "atomic_add_vec<float, 2>(out_ptr0, x0, tmp2);"):
        assert len(casts(kernel(body + unknown))) == 2, unknown
    assert casts(kernel(body)) == []


def test_a_pair_that_changes_nothing_is_redundant():
    body = LOAD.format("at::BFloat16") + f"auto tmp1 = {UP}(tmp0);\nauto tmp2 = {DOWN}(tmp1);\n"
    store = "tmp2.store(out_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>(16));"
    pair = kernel(body + store, target="at::BFloat16")
    assert [c[3] for c in casts(pair)] == [True, True]
    between = kernel(body.replace("(tmp1)", "(tmp1 * tmp1)") + store, target="at::BFloat16")
    assert [c[3] for c in casts(between)] == [False, False]


def test_a_pair_across_a_local_array_is_redundant_too():
    body = LOAD.format("at::BFloat16") + f"""
        float* local_buffer_data_0 = buf_local_buffer_data_0.get();
        auto tmp1 = {UP}(tmp0);
        tmp1.store(local_buffer_data_0 + static_cast<int64_t>(x0));
        auto tmp2 = at::vec::VectorizedN<float,2>::loadu(local_buffer_data_0 + static_cast<int64_t>(x0));
        auto tmp3 = {DOWN}(tmp2);
        tmp3.store(out_ptr0 + static_cast<int64_t>(x0));"""
    assert casts(kernel(body, target="at::BFloat16")) == [("bfloat16", "float32", (64,), True),
                                                          ("float32", "bfloat16", (64,), True)]


def test_scalar_code_converts_in_other_words():
    body = """auto tmp0 = in_ptr0[static_cast<int64_t>(x0)];
              auto tmp1 = c10::convert<float>(tmp0);
              auto tmp2 = float(tmp1 * tmp1);
              auto tmp3 = static_cast<float>(0.5);
              out_ptr0[static_cast<int64_t>(x0)] = static_cast<at::Half>(tmp2 + tmp3);"""
    assert casts(kernel(body, target="at::Half")) == [("bfloat16", "float32", (64,), False),
                                                      ("float32", "float16", (64,), False)]


def test_a_sum_is_as_large_as_the_loops_around_it():
    body = """float tmp_acc0 = 0;
        at::vec::Vectorized<float> tmp_acc0_vec = at::vec::Vectorized<float>(0);
        for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(20L); x1+=static_cast<int64_t>(16L))
        {
            {
                if(C10_LIKELY(x1 >= static_cast<int64_t>(0) && x1 < static_cast<int64_t>(16L)))
                {
                    auto tmp0 = at::vec::Vectorized<at::BFloat16>::loadu(in_ptr0 + x1 + 20L*x0);
                    auto tmp1 = at::vec::convert<float>(tmp0);
                    tmp_acc0_vec = tmp_acc0_vec + tmp1;
                }
                if(C10_UNLIKELY(x1 >= static_cast<int64_t>(16L) && x1 < static_cast<int64_t>(20L)))
                {
                    auto tmp0 = at::vec::Vectorized<at::BFloat16>::loadu(in_ptr0 + x1 + 20L*x0, 4);
                    auto tmp1 = at::vec::convert<float>(tmp0);
                    tmp_acc0_vec = sum_masked_reduce(tmp_acc0_vec, tmp1, static_cast<int64_t>(4L));
                }
            }
        }
        tmp_acc0 = tmp_acc0 + at::vec::vec_reduce_all<float, 1>([](at::vec::Vectorized<float>& x,
            at::vec::Vectorized<float>& y) { return x + y; }, tmp_acc0_vec);
        out_ptr0[static_cast<int64_t>(x0)] = static_cast<at::BFloat16>(tmp_acc0);"""
    assert casts(kernel(body, target="at::BFloat16")) == [("bfloat16", "float32", (64, 20), False),
                                                          ("float32", "bfloat16", (64,), False)]


def test_a_remainder_loop_is_part_of_the_loop_before_it():
    source = """void kernel(const at::BFloat16* in_ptr0, float* out_ptr0)
    {
        for(long x0=static_cast<long>(0L); x0<static_cast<long>(64L); x0+=static_cast<long>(16L))
        {
            auto tmp0 = at::vec::Vectorized<at::BFloat16>::loadu(in_ptr0 + static_cast<long>(x0), 16);
            auto tmp1 = at::vec::convert<float>(tmp0);
            tmp1.store(out_ptr0 + static_cast<long>(x0));
        }
        for(long x0=static_cast<long>(64L); x0<static_cast<long>(70L); x0+=static_cast<long>(1L))
        {
            auto tmp0 = in_ptr0[static_cast<long>(x0)];
            auto tmp1 = c10::convert<float>(tmp0);
            out_ptr0[static_cast<long>(x0)] = tmp1;
        }
    }"""
    assert casts(source) == [("bfloat16", "float32", (70,), False)]
    assert casts(source.replace("x0=static_cast<long>(64L)",
                                "x0=static_cast<long>(0L)")) == [("bfloat16", "float32", (64,), False),
                                                                 ("bfloat16", "float32", (70,), False)]


def test_a_masked_body_gives_its_value_back():
    body = """auto tmp0 = x0;
        auto tmp3 = [&]
        {
            auto tmp4 = in_ptr0[static_cast<int64_t>(x0)];
            auto tmp5 = c10::convert<float>(tmp4);
            return tmp5;
        }
        ;
        auto tmp6 = tmp0 < 3 ? tmp3() : static_cast<float>(0.0);
        out_ptr0[static_cast<int64_t>(x0)] = static_cast<at::BFloat16>(tmp6);"""
    assert [c[:2] for c in casts(kernel(body, target="at::BFloat16"))] == [("bfloat16", "float32"),
                                                                           ("float32", "bfloat16")]
    unused = body.replace("static_cast<at::BFloat16>(tmp6)", "static_cast<at::BFloat16>(0.0)")
    assert casts(kernel(unused, target="at::BFloat16")) == []


CODE = '''
# AOT ID: ['3_backward']
async_compile = AsyncCompile()
cpp_fused_copy_0 = async_compile.cpp_pybinding(['const at::BFloat16*', 'float*'], r\'\'\'
{kernel}
\'\'\')
async_compile.wait(globals())

class Runner:
    def call(self, args):
        primals_1, primals_2 = args
        args.clear()
        buf0 = empty_strided_cpu((8, 8), (8, 1), torch.bfloat16)
        # Topologically Sorted Source Nodes: [mm], Original ATen: [aten.mm]
        extern_kernels.mm(primals_1, reinterpret_tensor(primals_2, (4, 8), (1, 4), 0), out=buf0)
        del primals_1
        buf1 = empty_strided_cpu((64, ), (1, ), torch.float32)
        buf2 = buf1; del buf1  # reuse
        cpp_fused_copy_0(buf0, buf2)
        buf3 = torch.ops.aten.cumsum.default(buf2, 0)
        assert_size_stride(buf3, (64, ), (1, ), 'torch.ops.aten.cumsum.default')
        buf4 = buf3
        return (buf4, )

runner = Runner(partitions=[])

def get_args():
    from torch._dynamo.testing import rand_strided
    primals_1 = rand_strided((8, 4), (4, 1), device='cpu', dtype=torch.bfloat16)
    primals_2 = rand_strided((8, 4), (4, 1), device='cpu', dtype=torch.bfloat16)
    return [primals_1, primals_2]
'''


def test_shapes_that_a_later_version_asserts_together():
    single = "assert_size_stride(buf3, (64, ), (1, ), 'torch.ops.aten.cumsum.default')"
    assert single in CODE
    grouped = "assert_size_stride_grouped((primals_2, buf3), ((8, 4), (64, )), ((4, 1), (1, )), 'input')"
    again = "\n        cpp_fused_copy_0(buf3, buf2)"  # whose parameter says of what dtype buf3 is
    widening = kernel(LOAD.format("at::BFloat16") + f"auto tmp1 = {UP}(tmp0);\ntmp1.store(out_ptr0 + x0);")
    code = CODE.replace("{kernel}", widening)
    found = [generated.nodes_of(code.replace(single, text + again), "") for text in (single, grouped)]
    assert found[0] == found[1], found
    cumsum = [node for node in found[1][0] if "cumsum" in node.op]
    assert [(node.dtype, node.shape) for node in cumsum] == [("bfloat16", (64, ))], cumsum
    assert not found[1][1]


def test_what_another_version_spells_otherwise_costs_its_evidence_and_not_the_result():
    # More names than shapes: nothing that can be read.
    odd = "assert_size_stride_grouped((primals_1, primals_2), ((8, 4)), ((4, 1)), 'input')"
    code = CODE.replace("{kernel}", kernel("")).replace("args.clear()", odd)
    nodes, problems = generated.nodes_of(code, "")
    assert any("cumsum" in node.op for node in nodes), nodes
    assert problems == [f"generated: not understood (ValueError): {odd[:80]}"], problems
    future = "assert_size_stride_of_a_later_version(primals_1)"
    assert generated.nodes_of(CODE.replace("{kernel}", kernel("")).replace("args.clear()", future), "")[1] == []


def test_calls_their_operands_and_what_made_them():
    widening = kernel(LOAD.format("at::BFloat16") + f"auto tmp1 = {UP}(tmp0);\ntmp1.store(out_ptr0 + x0);")
    code = CODE.replace("{kernel}", widening)
    assert generated.direction_of(code) == "backward"
    assert generated.calls_of(code) == ["cpp_fused_copy_0", "extern mm", "extern aten.cumsum.default"]
    nodes, problems = generated.nodes_of(code, "")
    trace = Trace()
    trace.add("generated", nodes, "region 0 backward")
    assert not problems
    first, second, product, copy, load, convert, _, fallback = trace.nodes[1:]
    assert [node.kind for node in trace.nodes
            ] == ["compute", "input", "input", "product", "kernel", "move", "convert", "move", "compute"]
    assert (first.op, second.outputs) == ("input", (("bfloat16", (8, 4)),))
    assert product.sources == (first.id, second.id) and product.outputs == (("bfloat16", (8, 8)),)
    assert copy.op == "cpp_fused_copy_0" and copy.sources == (product.id,)
    assert copy.inputs == (("bfloat16", (8, 8)),) and copy.outputs == (("float32", (64,)),)
    assert {load.parent, convert.parent} == {copy.id} and copy.parent == 0
    assert fallback.op == "torch.ops.aten.cumsum.default" and fallback.sources == (copy.id,)
    (cast,) = trace.casts
    assert (cast.node, cast.under, cast.shape) == (convert.id, "cpp_fused_copy_0", (64,))


def test_code_that_calls_nothing_is_seen():
    assert generated.calls_of(
        CODE.replace("{kernel}",
                     "").replace("extern_kernels.mm(",
                                 "pass; (").replace("torch.ops.aten.cumsum.default(",
                                                    "pass; (").replace("cpp_fused_copy_0 =",
                                                                       "nothing ="))[0] == "nothing"
    assert generated.calls_of("class Runner:\n    def call(self, args):\n        return ()\n") == []


GRAPH = '''
class <lambda>(torch.nn.Module):
    def forward(
        self,
        arg0_1: "bf16[8, 4][4, 1]cpu",  # PlainAOTInput(idx=0)
        arg1_1: "f32[8][1]cpu",  # PlainAOTInput(idx=1)
    ):
        # File: x.py:20 in region, code: step(env)
        cet: "f32[8, 4][4, 1]cpu" = torch.ops.prims.convert_element_type.default(arg0_1, torch.float32)
        var_mean = torch.ops.aten.var_mean.correction(cet, [1], correction = 0, keepdim = True)
        getitem: "f32[8, 1][1, 1]cpu" = var_mean[0]
        getitem_1: "f32[8, 1][1, 1]cpu" = var_mean[1];  var_mean = None
        sub: "f32[8, 4][4, 1]cpu" = torch.ops.aten.sub.Tensor(cet, getitem_1);  getitem_1 = None
        sum_1: "bf16[8][1]cpu" = torch.ops.aten.sum.dim_IntList(sub, [1], dtype = torch.bfloat16);  sub = None
        copy_: "f32[8][1]cpu" = torch.ops.aten.copy_.default(arg1_1, sum_1);  arg1_1 = sum_1 = None
        return (copy_,)
'''


def test_a_printed_graph_with_several_results_and_a_cast_into_a_buffer():
    trace = Trace()
    trace.add("aot_forward", printed_graphs.nodes_of(GRAPH), "region 0 forward")
    by_op = {node.op: node for node in trace.nodes}
    assert by_op["aten::var_mean"].outputs == (("float32", (8, 1)),) * 2
    assert by_op["getitem 1"].sources == (by_op["aten::var_mean"].id,)
    assert by_op["aten::sub"].sources == (by_op["prims::convert_element_type"].id, by_op["getitem 1"].id)
    assert {op: node.kind for op, node in by_op.items()} == {
        "region 0 forward": "compute",
        "input": "input",
        "prims::convert_element_type": "convert",
        "aten::var_mean": "compute",
        "getitem 0": "compute",
        "getitem 1": "compute",
        "aten::sub": "compute",
        "aten::sum": "compute",
        "aten::copy_": "convert"
    }
    assert [(c.source, c.target, c.under) for c in trace.casts] == [("bfloat16", "float32",
                                                                     "prims::convert_element_type"),
                                                                    ("bfloat16", "float32", "aten::copy_")]


def test_methods_of_values_and_other_names_for_them():
    text = '''
    def forward(self, L_x_: "bf16[8, 8][8, 1]cpu"):
        l_x_ = L_x_
        up: "f32[8, 8][8, 1]cpu" = l_x_.to(torch.float32);  l_x_ = None
        down: "bf16[8, 8][8, 1]cpu" = up.bfloat16();  up = None
        linear: "bf16[8, 8][8, 1]cpu" = torch._C._nn.linear(down, L_x_)
        return (linear,)
    '''
    trace = Trace()
    trace.add("dynamo", printed_graphs.nodes_of(text))
    assert [(node.op, node.sources) for node in trace.nodes] == [("input", ()), ("Tensor::to", (0,)),
                                                                 ("Tensor::bfloat16", (1,)),
                                                                 ("linear", (2, 0))]
    assert [node.kind for node in trace.nodes] == ["input", "convert", "convert", "product"]
    assert flags(trace) == [True, True]


def test_a_conversion_to_the_dtype_that_there_was_moves():
    text = '''
    def forward(self, x: "f32[8, 8][8, 1]cpu"):
        same: "f32[8, 8][8, 1]cpu" = x.to(torch.float32)
        shown: "f32[64][1]cpu" = torch.ops.aten.view.default(same, [64])
        copied: "f32[64][1]cpu" = torch.ops.aten.clone.default(shown)
        back: "f32[64][1]cpu" = torch.ops.aten.mul_.Tensor(copied, 2)
    '''
    trace = Trace()
    trace.add("dynamo", printed_graphs.nodes_of(text))
    assert [node.kind for node in trace.nodes] == ["input", "move", "view", "move", "compute"]


def test_brackets_and_lists():
    assert brackets.split("a, f(b, c), d[e, f]") == ["a", "f(b, c)", "d[e, f]"
                                                      ] and brackets.split(" ") == []
    text = "f(a[1], (b))x"
    assert text[brackets.closing(text, 1):] == ")x" and brackets.closing("((", 0) == 2


if __name__ == "__main__":
    main(globals())
