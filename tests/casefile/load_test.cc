// Loading: what a good file becomes, the defaults of files, sweeps, selection by path and id.
#include "harness/casefile/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "harness/base/build_info.h"

namespace ulpscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const Vocabulary kVocabulary{
    .backends = {"torch-eager", "torch-aot-eager", "torch-inductor", "jax", "openblas"}};

LoadResult Load(std::string_view text) { return LoadCaseText(text, "f.yaml", "dir/f", kVocabulary); }

std::string FirstError(const LoadResult& result) {
  return result.errors.empty() ? "no error" : result.errors[0].Text();
}

std::vector<std::string> Ids(const LoadResult& result) {
  std::vector<std::string> ids;
  for (const Case& one : result.cases) ids.push_back(one.id);
  return ids;
}

// The example at the top of the case language's documentation, as it stands.
constexpr std::string_view kAsPosted = R"(
about: bfloat16 matmul into a float32 out= buffer; PyTorch documents no precision for it.
cases:
  - name: as_posted                       # id = path + name: seeds/matmul_out/as_posted
    source: PyTorch forum, "inconsistent approach to precision in matmul"; pytorch/xla#7160
    tags: [smoke]
    tensors:
      x:    {dtype: bfloat16, shape: [32, 7, 1, 8], fill: normal}
      y:    {dtype: bfloat16, shape: [32, 7, 8, 1], fill: normal}
      bias: {dtype: bfloat16, shape: [32, 7, 1, 1], fill: normal}
    program:
      - {op: empty, shape: [32, 7, 1, 1], dtype: float32, as: buffer}
      - {op: matmul, of: [x, y], out: buffer, as: product}
      - {op: add, of: [product, bias], as: result}
    observe: [product, result]
    contract: {status: unspecified, accept: any}
    expect:                               # what is known today; a change is news. A list: the first entry whose versions match
      torch-eager:     [{versions: "torch>=2.9,<2.16", raised: {class: RuntimeError, match: "Expected out tensor"}}]
      torch-aot-eager: [{product: {dtype: float32, mid: [bfloat16]}}]
      torch-inductor:  [{product: {dtype: float32, mid: [none], acc: [float32, float64]}}]
)";

TEST(Load, AContractComparesValuesOfOneBackend) {
  const auto load = [](const std::string& contract) {
    return LoadCaseText(R"yaml(about: x
cases:
  - name: a
    tensors: {x: {dtype: float32, shape: [2, 2], fill: normal}}
    program: [{op: exp, of: [x], as: y}, {op: tanh, of: [x], as: z}]
    observe: [y, z]
    contract: )yaml" + contract +
                            "\n",
                        "a.yaml", "case", {});
  };
  const LoadResult both = load("{status: unspecified, equal: [y, z], same_class: [z, y]}");
  ASSERT_THAT(both.errors, IsEmpty()) << FirstError(both);
  EXPECT_THAT(both.cases[0].contract.equal, ElementsAre("y", "z"));
  EXPECT_THAT(both.cases[0].contract.same_class, ElementsAre("z", "y"));
  EXPECT_TRUE(both.cases[0].contract.accept_any);
  EXPECT_TRUE(both.cases[0].contract.demands());
  for (const auto& [contract, why] :
       {std::pair{"{status: unspecified}", "missing key 'accept'"},
        {"{status: unspecified, equal: [y]}", "expected 2 to 64"},
        {"{status: unspecified, equal: [y, w]}", "does not observe 'w'"},
        {"{status: unspecified, equal: [y, y]}", "compared with itself"},
        {"{status: unspecified, equal: [y, z], prove: true}", "nothing to prove"}})
    EXPECT_THAT(FirstError(load(contract)), HasSubstr(why)) << contract;
}

TEST(Load, TheDocumentedExampleLoadsAsItStands) {
  const LoadResult result = Load(kAsPosted);
  ASSERT_THAT(result.errors, IsEmpty()) << FirstError(result);
  ASSERT_THAT(Ids(result), ElementsAre("dir/f/as_posted"));
  const Case& one = result.cases[0];
  EXPECT_THAT(one.about, HasSubstr("float32 out= buffer"));
  EXPECT_THAT(one.source, HasSubstr("pytorch/xla#7160"));
  EXPECT_THAT(one.tags, ElementsAre("smoke"));
  ASSERT_THAT(one.tensors, SizeIs(3));
  EXPECT_EQ(one.tensors[1].name, "y");
  EXPECT_EQ(one.tensors[1].dtype, DType::kBfloat16);
  EXPECT_THAT(one.tensors[1].shape, ElementsAre(32, 7, 8, 1));
  EXPECT_EQ(std::get<std::string>(one.tensors[1].fill.value), "normal");
  ASSERT_THAT(one.program, SizeIs(3));
  EXPECT_EQ(std::get<std::string>(one.program[0].attrs.at("dtype").value), "float32");
  EXPECT_EQ(std::get<int64_t>(std::get<Attr::List>(one.program[0].attrs.at("shape").value)[1].value), 7);
  EXPECT_EQ(one.program[1].out, "buffer");
  EXPECT_EQ(one.program[1].of[0].name, "x");
  EXPECT_EQ(one.program[1].pos.line, 13);
  EXPECT_THAT(one.observe, ElementsAre("product", "result"));
  EXPECT_EQ(one.contract.status, ContractStatus::kUnspecified);
  EXPECT_TRUE(one.contract.accept_any);
  const Expectation& eager = one.expect.at("torch-eager")[0];
  EXPECT_EQ(eager.versions, "torch>=2.9,<2.16");
  EXPECT_EQ(eager.raised->error_class, "RuntimeError");
  EXPECT_EQ(eager.raised->match, "Expected out tensor");
  const ValueDemand& inductor = one.expect.at("torch-inductor")[0].values.at("product");
  EXPECT_EQ(inductor.dtype, "float32");
  EXPECT_THAT(inductor.facets.at("acc"), ElementsAre("float32", "float64"));
}

TEST(Load, ScopesScalarsEffectsAndGradients) {
  const LoadResult result = Load(R"yaml(
cases:
  - name: everything
    requires: {device: cuda}
    knobs: {mkldnn: off, threads: 2}
    tensors:
      x: {dtype: float32, shape: [4, 8], layout: {transpose: [0, 1]}, fill: {normal: {scale: 0.1}}}
      w:
        dtype: float32
        shape: [4, 8]
        layout: non_contiguous
        requires_grad: true
        fill: {values: [[1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 6, 7, 1/3], [inf, -inf, nan, 0x1p-3, bits:0x3f800000, -0.0, 1e-3, 8]]}
      s: {dtype: float32, shape: [], layout: {strides: []}, fill: {full: {value: 2}}}
      g: {dtype: bfloat16, shape: [4, 4], fill: ones}
    program:
      - {op: set_data, of: [w], to: {cast: bfloat16}}
      - op: autocast
        enabled: false
        steps:
          - {op: linear, of: [x, w], as: y}
          - {op: no_grad, steps: [{op: clone, of: [y], as: kept}]}
      - {op: mul, of: [kept, -1.5], as: a, at: {module: layers.0.mlp, file: model.py, line: 7}}
      - {op: add, of: [a, 2], alpha: 0x1p-1, as: b}
      - {op: mul, of: [b, s], as: c}
      - {op: sync}
      - {op: sum, of: [c], dim: [0, 1], keepdim: true, as: d}
      - {op: "aten::softmax.int", of: [d, 0], half_to_float: false, dtype: null, names: [p, "1"], reference: none, as: e}
      - {op: backward, of: [y], grad: g, retain_graph: true}
    observe: [e, w, w.grad, w.grad_metadata_dtype, trace, peak_bytes]
    contract:
      status: documented
      source: somewhere
      accept: {e: {dtype: float32, in: {x: bfloat16_rne}, acc: ["blockfma(8,24,rz)", float32]}, raised: {class: RuntimeError}}
    expect:
      torch-inductor:emulate_precision_casts=true: [{observations: {w.grad_metadata_dtype: bfloat16}, w.grad: {dtype: bfloat16}}]
      jax: [{unsupported: "autocast"}]
      openblas: [{casts: [{stage: lazy_ir, from: bfloat16, to: float32, count: 0}, {stage: hlo, count: 2}]}]
)yaml");
  ASSERT_THAT(result.errors, IsEmpty()) << FirstError(result);
  const Case& one = result.cases[0];
  EXPECT_EQ(one.requires_.at("device"), "cuda");
  EXPECT_EQ(one.knobs.at("mkldnn"), "off");
  EXPECT_EQ(one.knobs.at("threads"), "2");
  EXPECT_THAT(one.FindTensor("x")->strides, ElementsAre(1, 4));
  EXPECT_THAT(one.FindTensor("w")->strides, ElementsAre(16, 2));
  EXPECT_TRUE(one.FindTensor("w")->requires_grad);
  EXPECT_THAT(one.FindTensor("s")->shape, IsEmpty());
  EXPECT_EQ(std::get<std::string>(std::get<Attr::Map>(one.program[0].attrs.at("to").value).at("cast").value),
            "bfloat16");
  const Step& scope = one.program[1];
  EXPECT_EQ(std::get<std::string>(scope.attrs.at("device").value), "auto");
  EXPECT_EQ(std::get<bool>(scope.attrs.at("enabled").value), false);
  EXPECT_EQ(std::get<bool>(scope.attrs.at("cache").value), true);
  ASSERT_THAT(scope.steps, SizeIs(2));
  EXPECT_EQ(scope.steps[1].steps[0].as, "kept");
  EXPECT_EQ(std::get<double>(one.program[2].of[1].scalar->value), -1.5);
  EXPECT_EQ(one.program[2].at, (StepOrigin{.module = "layers.0.mlp", .file = "model.py", .line = 7}));
  EXPECT_TRUE(one.program[2].attrs.empty()) << "the origin is no attribute of the op";
  EXPECT_TRUE(one.program[3].at.IsEmpty());
  EXPECT_EQ(std::get<int64_t>(one.program[3].of[1].scalar->value), 2);
  EXPECT_EQ(std::get<double>(one.program[3].attrs.at("alpha").value), 0.5);
  EXPECT_EQ(one.program[5].op, "sync");
  const Step& aten = one.program[7];
  EXPECT_EQ(aten.reference, "none");
  EXPECT_FALSE(aten.attrs.contains("reference"));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(aten.attrs.at("dtype").value));
  EXPECT_EQ(std::get<std::string>(std::get<Attr::List>(aten.attrs.at("names").value)[1].value), "1");
  EXPECT_FALSE(one.contract.accept_any);
  EXPECT_THAT(one.contract.values.at("e").facets.at("in.x"), ElementsAre("bfloat16_rne"));
  EXPECT_THAT(one.contract.values.at("e").facets.at("acc"), ElementsAre("blockfma(8,24,rz)", "float32"));
  EXPECT_EQ(one.contract.raised->error_class, "RuntimeError");
  EXPECT_EQ(one.expect.at("torch-inductor:emulate_precision_casts=true")[0].observations.at(
                "w.grad_metadata_dtype"),
            "bfloat16");
  EXPECT_EQ(one.expect.at("jax")[0].unsupported, "autocast");
  const auto& casts = one.expect.at("openblas")[0].casts;
  ASSERT_THAT(casts, SizeIs(2));
  EXPECT_EQ(casts[0].stage + " " + casts[0].from + " " + casts[0].to, "lazy_ir bfloat16 float32");
  EXPECT_EQ(casts[0].count, 0);
  EXPECT_EQ(casts[1].stage + casts[1].from + casts[1].to, "hlo");
  EXPECT_EQ(casts[1].count, 2);
}

TEST(Load, DefaultsOfTheFile) {
  const LoadResult result = Load(R"(
about: the file
source: the file's source
tags: [ci]
knobs: {threads: 1, mkldnn: on}
requires: {device: cpu}
contract: {status: unspecified, accept: any}
expect: {jax: [{unsupported: a}], torch-eager: [{r: {dtype: float32}}]}
cases:
  - name: plain
    tensors: {a: {dtype: float32, shape: [2], fill: ones}}
    program: [{op: neg, of: [a], as: r}]
    observe: [r]
  - name: own
    about: mine
    tags: [nightly]
    knobs: {mkldnn: off}
    contract: {status: de_facto, accept: {r: {dtype: float32}}}
    expect: {torch-eager: []}
    tensors: {a: {dtype: float32, shape: [2], fill: ones}}
    program: [{op: neg, of: [a], as: r}]
    observe: [r]
)");
  ASSERT_THAT(result.errors, IsEmpty()) << FirstError(result);
  const Case& plain = result.cases[0];
  const Case& own = result.cases[1];
  EXPECT_EQ(plain.about, "the file");
  EXPECT_EQ(own.about, "mine");
  EXPECT_EQ(own.source, "the file's source");
  EXPECT_THAT(plain.tags, ElementsAre("ci"));
  EXPECT_THAT(own.tags, ElementsAre("nightly"));
  EXPECT_EQ(plain.knobs.at("mkldnn"), "on");
  EXPECT_EQ(own.knobs.at("mkldnn"), "off");
  EXPECT_EQ(own.knobs.at("threads"), "1");
  EXPECT_EQ(own.requires_.at("device"), "cpu");
  EXPECT_EQ(plain.contract.status, ContractStatus::kUnspecified);
  EXPECT_EQ(own.contract.status, ContractStatus::kDeFacto);
  EXPECT_THAT(plain.expect.at("torch-eager"), SizeIs(1));
  EXPECT_THAT(own.expect.at("torch-eager"), IsEmpty());
  EXPECT_EQ(own.expect.at("jax")[0].unsupported, "a");
}

TEST(Load, SweepsExpandInDeclaredOrder) {
  const LoadResult result = Load(R"(
cases:
  - name: swept
    sweep: {k: [8, 64], dtype: [bfloat16, float16], out: [[2, 2]]}
    tensors:
      a: {dtype: $dtype, shape: [2, $k], fill: normal}
      b: {dtype: $dtype, shape: [$k, 2], fill: normal}
    program:
      - {op: empty, shape: $out, dtype: $dtype, as: buffer}
      - {op: mm, of: [a, b], out: buffer, as: r}
    observe: [r]
    expect: {jax: [{r: {dtype: $dtype}}]}
)");
  ASSERT_THAT(result.errors, IsEmpty()) << FirstError(result);
  EXPECT_THAT(
      Ids(result),
      ElementsAre("dir/f/swept[k=8,dtype=bfloat16,out=2x2]", "dir/f/swept[k=8,dtype=float16,out=2x2]",
                  "dir/f/swept[k=64,dtype=bfloat16,out=2x2]", "dir/f/swept[k=64,dtype=float16,out=2x2]"));
  EXPECT_THAT(result.cases[2].tensors[0].shape, ElementsAre(2, 64));
  EXPECT_EQ(result.cases[1].tensors[0].dtype, DType::kFloat16);
  EXPECT_EQ(result.cases[3].expect.at("jax")[0].values.at("r").dtype, "float16");
}

/// A folder of case files that goes away with the test.
class Folder : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() / ("ulpscope_load_test." + std::to_string(::getpid())) /
            "cases";
    std::filesystem::create_directories(root_ / "seeds");
    Write("seeds/one.yaml", Minimal("a", "") + Minimal("b", ""));
    Write("seeds/two.yaml", Minimal("s", "    sweep: {n: [1, 2]}\n", "$n"));
    Write("seeds/one_more.yaml", Minimal("a", ""));
    Write("deviations.yaml", "[]\n");
    cwd_ = std::filesystem::current_path();
    std::filesystem::current_path(root_.parent_path());
  }
  void TearDown() override {
    std::filesystem::current_path(cwd_);
    std::filesystem::remove_all(root_.parent_path());
  }

  static std::string Minimal(const std::string& name, const std::string& extra,
                             const std::string& extent = "3") {
    return "  - name: " + name + "\n" + extra + "    tensors: {x: {dtype: float32, shape: [" + extent +
           "], fill: ones}}\n    program: [{op: neg, of: [x], as: r}]\n    observe: [r]\n";
  }
  void Write(const std::string& path, const std::string& cases) {
    std::ofstream(root_ / path) << (cases[0] == '[' ? "" : "cases:\n") << cases;
  }
  std::vector<std::string> Select(const std::vector<std::string>& arguments) {
    last_ = LoadCases(arguments, root_, kVocabulary);
    return Ids(last_);
  }

  std::filesystem::path root_, cwd_;
  LoadResult last_;
};

TEST_F(Folder, SelectsByPathIdAndPrefix) {
  EXPECT_THAT(Select({}), ElementsAre("seeds/one/a", "seeds/one/b", "seeds/one_more/a", "seeds/two/s[n=1]",
                                      "seeds/two/s[n=2]"));
  EXPECT_THAT(last_.errors, IsEmpty()) << FirstError(last_);
  EXPECT_THAT(Select({"seeds/one"}), ElementsAre("seeds/one/a", "seeds/one/b"));
  EXPECT_THAT(Select({"seeds/one/b"}), ElementsAre("seeds/one/b"));
  EXPECT_THAT(Select({"seeds/two/s"}), ElementsAre("seeds/two/s[n=1]", "seeds/two/s[n=2]"));
  EXPECT_THAT(Select({"seeds/two/s[n=2]"}), ElementsAre("seeds/two/s[n=2]"));
  EXPECT_THAT(Select({"seeds/one.yaml"}), SizeIs(2));
  EXPECT_THAT(Select({"cases/seeds"}), SizeIs(5));
  EXPECT_THAT(Select({"cases/seeds/two"}), SizeIs(2));
  EXPECT_THAT(Select({"cases/seeds/two/s[n=1]"}), SizeIs(1));
  EXPECT_THAT(Select({(root_ / "seeds/two.yaml").string()}), SizeIs(2));
  EXPECT_THAT(Select({root_.string()}), SizeIs(5));
  EXPECT_THAT(
      Select({"seeds/two/s[n=2]", "seeds", "seeds/one/a"}),
      ElementsAre("seeds/two/s[n=2]", "seeds/one/a", "seeds/one/b", "seeds/one_more/a", "seeds/two/s[n=1]"));
  EXPECT_THAT(last_.errors, IsEmpty());
}

TEST_F(Folder, UnknownIdsSuggestTheNearest) {
  EXPECT_THAT(Select({"seeds/one/c"}), IsEmpty());
  ASSERT_THAT(last_.errors, SizeIs(1));
  EXPECT_EQ(last_.errors[0].hint, "did you mean 'seeds/one/a'?");
  Select({"seeds/tow"});
  EXPECT_EQ(last_.errors.at(0).hint, "did you mean 'seeds/two'?");
  Select({"../cases/seeds/one"});
  EXPECT_THAT(last_.errors, SizeIs(1));
}

TEST_F(Folder, ABrokenFileKeepsTheOthersAndIsToldOnce) {
  Write("seeds/broken.yaml", "  - nome: x\n");
  EXPECT_THAT(Select({"seeds", "seeds/broken/x", "seeds/one"}), SizeIs(5));
  ASSERT_FALSE(last_.errors.empty());
  for (const Error& error : last_.errors) EXPECT_THAT(error.pos.file, HasSubstr("broken.yaml"));
  EXPECT_EQ(last_.errors[0].hint, "did you mean 'name'?");
}

TEST_F(Folder, AFileOutsideTheRootIsCalledByItsStem) {
  const auto outside = root_.parent_path() / "mine.yaml";
  std::ofstream(outside) << "cases:\n" << Minimal("a", "");
  EXPECT_THAT(Select({outside.string()}), ElementsAre("mine/a"));
  // A folder outside is a suite of its own; its parts keep their paths.
  std::filesystem::create_directories(root_.parent_path() / "suite" / "part");
  std::filesystem::copy(outside, root_.parent_path() / "suite" / "part");
  EXPECT_THAT(Select({"suite"}), ElementsAre("part/mine/a"));
}

TEST(Load, TheShippedCasesLoad) {
  const LoadResult result = LoadCases({}, std::filesystem::path(SourceDir()) / "cases", Vocabulary{});
  for (const Error& error : result.errors) ADD_FAILURE() << error.Text();
  EXPECT_GE(result.cases.size(), 20u);
}

TEST(Load, SeveralNamesAreStepsOfOneCall) {
  const LoadResult result = Load(R"yaml(
cases:
  - name: one
    tensors: {x: {dtype: float32, shape: [4, 8], fill: normal}}
    program:
      - {op: topk, of: [x], k: 2, as: [best, places]}
      - {op: "aten::max.dim", of: [x], dim: 1, as: [most, where]}
      - {op: torch.nn.functional.gelu, of: [best], approximate: tanh, as: g}
    observe: [best, places, most, where, g]
)yaml");
  ASSERT_THAT(result.errors, IsEmpty()) << FirstError(result);
  const std::vector<Step>& steps = result.cases[0].program;
  ASSERT_THAT(steps, SizeIs(5));
  for (const size_t first : {size_t{0}, size_t{2}}) {
    EXPECT_FALSE(steps[first].attrs.contains("result"));
    EXPECT_EQ(std::get<int64_t>(steps[first + 1].attrs.at("result").value), 1);
    EXPECT_TRUE(AreOfOneCall(steps[first], steps[first + 1]));
    EXPECT_FALSE(AreOfOneCall(steps[first + 1], steps[first + 1])) << "one result twice is two calls";
  }
  EXPECT_EQ(steps[1].as, "places");
  EXPECT_FALSE(AreOfOneCall(steps[1], steps[2]));
  EXPECT_EQ(steps[4].op, "torch.nn.functional.gelu");
}

}  // namespace
}  // namespace ulpscope
