// The journal: what is written is what is read, a torn end is forgiven, any other damage is refused.
#include "harness/record/journal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "harness/record/file_bytes.h"
#include "harness/record/journal_format.h"
#include "tests/run/run_fixture.h"

namespace ulpscope {
namespace {

/// An observation with every field set, and with what JSON finds difficult.
Observation FullObservation() {
  Observation observation;
  observation.outcome = {
      .kind = OutcomeKind::kRaised, .error_class = "RuntimeError", .text = "line 1\nline \"2\" \xc3\xa9"};
  observation.values["w.grad"] = TensorData::Zeros(DType::kBfloat16, {2, 3});
  observation.values["w.grad"].Set(4, -1.5);
  observation.values["empty"] = TensorData::Zeros(DType::kFloat64, {0, 7});
  observation.values["scalar"] = TensorData::Zeros(DType::kInt64, {});
  observation.observations["w.grad_metadata_dtype"] = "bfloat16";
  observation.parts["w.grad"] = "backward";
  observation.knobs_asked["threads"] = "1";
  observation.knobs_effective["threads"] = "2";
  observation.casts.push_back({.from = "bfloat16",
                               .to = "float32",
                               .shape = {2, 3},
                               .bytes = 24,
                               .under = "aten::copy_",
                               .stage = "dispatch",
                               .redundant = true});
  observation.notes = {"a note", ""};
  observation.fp_before = FpEnvironment{.mxcsr = 0x1f80, .subnormals_kept = true, .threads = 1};
  observation.fp_after = FpEnvironment{.mxcsr = 0xffffffff, .subnormals_kept = false, .threads = 2};
  observation.tainted = "after the case: something";
  observation.unwritten = {"scalar"};
  observation.nondeterministic = {{"a", 0.5}, {"b", std::numeric_limits<double>::infinity()}};
  observation.durations_ms["run"] = 0.1;
  observation.worker_log = "last words";
  return observation;
}

void ExpectSame(const Observation& a, const Observation& b) {
  EXPECT_EQ(ToJson(a), ToJson(b));
  EXPECT_EQ(a.values, b.values);
  EXPECT_EQ(a.outcome.kind, b.outcome.kind);
  EXPECT_EQ(a.fp_after, b.fp_after);
  EXPECT_EQ(a.casts, b.casts);
  EXPECT_EQ(a.nondeterministic, b.nondeterministic);
  EXPECT_EQ(a.durations_ms, b.durations_ms);
  EXPECT_EQ(a.worker_log, b.worker_log);
}

class JournalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "ulpscope-journal-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
    header_ = {.id = "id",
               .started = "2026-01-02T03:04:05Z",
               .version = "0",
               .seed = 7,
               .repeat = 2,
               .trace = true,
               .backends = {"faulty"},
               .cases = {"b", "a"},
               .digests = {{"a", "1"}, {"b", "2"}},
               .knobs = {{"threads", "1"}},
               .swept = {{"faulty", {"threads", "planted_act"}}},
               .not_installed = {{"jax", "ci/setup"}},
               .environment = {{"OMP_NUM_THREADS", "3"}, {"MKL_CBWR", std::nullopt}}};
  }
  void TearDown() override { fs::remove_all(dir_); }

  void WriteTwo() {
    auto writer = JournalWriter::Create(dir_, header_);
    ASSERT_TRUE(writer) << writer.error().Text();
    ASSERT_TRUE((*writer)->Backend("faulty", {{"faulty", "1"}}, {{"threads", {"1", "N"}}}));
    ASSERT_TRUE((*writer)->Begin("a", "faulty"));
    ASSERT_TRUE((*writer)->Store("a", "1", "faulty", FullObservation()));
    ASSERT_TRUE((*writer)->Begin("b", "faulty"));
    ASSERT_TRUE((*writer)->Store("b", "2", "faulty", Observation{}));
    ASSERT_TRUE((*writer)->End(JournalWriter::Ending::kComplete));
  }

  std::string Text() const { return *ReadFileBytes(dir_ / "journal.jsonl", 1 << 30); }
  void Rewrite(const std::string& text) const { ASSERT_TRUE(WriteFileBytes(dir_ / "journal.jsonl", text)); }

  fs::path dir_;
  RunHeader header_;
};

TEST_F(JournalTest, RoundTrip) {
  WriteTwo();
  const auto run = ReadRun(dir_);
  ASSERT_TRUE(run) << run.error().Text();
  EXPECT_TRUE(run->complete);
  EXPECT_EQ(ToJson(run->header), ToJson(header_));
  EXPECT_EQ(run->versions.at("faulty").at("faulty"), "1");
  EXPECT_EQ(run->knobs.at("faulty").at("threads"), (std::vector<std::string>{"1", "N"}));
  EXPECT_EQ(run->header.swept, header_.swept);
  ASSERT_EQ(run->results.size(), 2u);
  EXPECT_EQ(run->results[0].case_id, "b") << "results stand in the order of the run";
  ASSERT_NE(run->Find("a", "faulty"), nullptr);
  ExpectSame(run->Find("a", "faulty")->observation, FullObservation());
  ExpectSame(run->Find("b", "faulty")->observation, Observation{});
  EXPECT_TRUE(run->unfinished.empty());
  EXPECT_TRUE(run->notes.empty());
}

TEST_F(JournalTest, TensorsCanComeLater) {
  WriteTwo();
  auto run = ReadRun(dir_, TensorLoading::kLater);
  ASSERT_TRUE(run);
  auto& result = run->results[1];
  EXPECT_TRUE(result.observation.values.empty());
  ASSERT_TRUE(LoadTensors(*run, result));
  EXPECT_EQ(result.observation.values, FullObservation().values);
}

TEST_F(JournalTest, TracesComeOnDemandAndDamageIsFound) {
  Observation traced = FullObservation();
  traced.trace = {{.id = 4, .parent = -1, .stage = "dispatch", .op = "aten::linear", .us = 1.5},
                  {.id = 9,
                   .parent = 4,
                   .stage = "hlo",
                   .kind = TraceKind::kConvert,
                   .op = "convert",
                   .from = {4},
                   .inputs = {{.dtype = "bfloat16", .shape = {2, 3}}},
                   .outputs = {{.dtype = "float32", .shape = {2, 3}}, {.dtype = "float32", .shape = {}}}}};
  {
    auto writer = JournalWriter::Create(dir_, header_);
    ASSERT_TRUE(writer) << writer.error().Text();
    ASSERT_TRUE((*writer)->Store("a", "1", "faulty", traced));
    ASSERT_TRUE((*writer)->End(JournalWriter::Ending::kComplete));
  }
  auto run = ReadRun(dir_);
  ASSERT_TRUE(run) << run.error().Text();
  RecordedResult result = *run->Find("a", "faulty");
  EXPECT_TRUE(result.observation.trace.empty());
  ASSERT_TRUE(LoadTrace(*run, result));
  EXPECT_EQ(result.observation.trace, traced.trace);
  const auto file = dir_ / result.trace_file;
  std::string text = *ReadFileBytes(file, 1 << 20);
  text.replace(text.find("convert"), 7, "CONVERT");
  ASSERT_TRUE(WriteFileBytes(file, text));
  result.observation.trace.clear();
  const auto damaged = LoadTrace(*run, result);
  ASSERT_FALSE(damaged);
  EXPECT_NE(damaged.error().Text().find("checksum"), std::string::npos);
}

TEST(TraceFromJson, TakesAKindThatIsNotSaidForComputingAndRefusesOneThatIsNone) {
  const auto read = [](nlohmann::json node) {
    node["id"] = 0;
    std::string error;
    const std::vector<TraceNode> trace = TraceFromJson(&(node = nlohmann::json::array({node})), error);
    return error.empty() ? std::string(Name(trace.at(0).kind)) : error;
  };
  EXPECT_EQ(read({{"op", "convert"}}), "compute");
  EXPECT_EQ(read({{"op", "mul"}, {"kind", "convert"}}), "convert");
  EXPECT_NE(read({{"kind", "transpose"}}).find("'kind'"), std::string::npos) << read({{"kind", "transpose"}});
}

TEST_F(JournalTest, EveryTornEndIsForgivenAndSaid) {
  WriteTwo();
  const std::string text = Text();
  const size_t header_end = text.find('\n') + 1;
  int forgiven = 0;
  for (size_t length = header_end; length < text.size(); length += 7) {
    Rewrite(text.substr(0, length));
    const auto run = ReadRun(dir_);
    ASSERT_TRUE(run) << "cut at " << length << ": " << run.error().Text();
    EXPECT_EQ(run->notes.empty(), text[length - 1] == '\n') << length;
    EXPECT_FALSE(run->complete) << length;
    ++forgiven;
  }
  EXPECT_GT(forgiven, 50);
}

TEST_F(JournalTest, EveryOtherDamageIsRefused) {
  WriteTwo();
  const std::string text = Text();
  int refused = 0;
  for (size_t at = 0; at + 1 < text.size(); at += 3) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    Rewrite(damaged);
    EXPECT_FALSE(ReadRun(dir_)) << "byte " << at << " changed unnoticed";
    ++refused;
  }
  EXPECT_GT(refused, 200);
}

TEST_F(JournalTest, DamagedTensorsAreRefused) {
  WriteTwo();
  const auto run = ReadRun(dir_, TensorLoading::kLater);
  const auto file = dir_ / run->Find("a", "faulty")->tensors_file;
  std::string bytes = *ReadFileBytes(file, 1 << 20);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  ASSERT_TRUE(WriteFileBytes(file, bytes));
  const auto damaged = ReadRun(dir_);
  ASSERT_FALSE(damaged);
  EXPECT_NE(damaged.error().Text().find("checksum"), std::string::npos);
}

TEST_F(JournalTest, NoFileOutsideTheRunIsRead) {
  WriteTwo();
  nlohmann::json record{{"type", "result"},
                        {"case", "a"},
                        {"backend", "faulty"},
                        {"digest", "1"},
                        {"observation", ToJson(Observation{})},
                        {"tensors", {{"file", ""}, {"crc", "00000000"}}}};
  const std::string before = Text();
  for (const char* file :
       {"../../../etc/passwd", "tensors/../000001.safetensors", "tensors/00001.safetensors",
        "tensors/00000a.safetensors", "tensors/0000000000000000001.safetensors",
        "tensors/000001.safetensors.json", "traces/000001.safetensors"}) {
    record["tensors"]["file"] = file;
    Rewrite(before + JournalLine(record) + JournalLine({{"type", "end"}, {"complete", true}}));
    const auto run = ReadRun(dir_, TensorLoading::kLater);
    ASSERT_FALSE(run) << file;
    EXPECT_NE(run.error().Text().find("tensors file"), std::string::npos) << file;
  }
}

TEST_F(JournalTest, ContinuesAfterATornEnd) {
  WriteTwo();
  const std::string text = Text();
  Rewrite(text.substr(0, text.find("\"case\":\"b\"") + 3));  // in the middle of the second case's begin
  auto run = ReadRun(dir_);
  ASSERT_TRUE(run);
  RunHeader more = header_;
  more.id = "another";
  more.cases = {"c", "b"};
  more.digests = {{"b", "2"}, {"c", "3"}};
  more.backends = {"openblas"};
  {
    const auto lock = RunLock::Take(dir_);
    ASSERT_TRUE(lock) << lock.error().Text();
    auto writer = JournalWriter::Continue(*lock, *run, more);
    ASSERT_TRUE(writer) << writer.error().Text();
    EXPECT_FALSE(RunLock::Take(dir_)) << "two writers at once";
    ASSERT_TRUE((*writer)->Store("b", "2", "faulty", FullObservation()));
    ASSERT_TRUE((*writer)->End(JournalWriter::Ending::kComplete));
  }
  const auto again = ReadRun(dir_);
  ASSERT_TRUE(again) << again.error().Text();
  EXPECT_TRUE(again->complete);
  EXPECT_EQ(again->header.id, "id") << "the first header names the run";
  EXPECT_EQ(again->header.cases, (std::vector<std::string>{"b", "a", "c"}));
  EXPECT_EQ(again->header.backends, (std::vector<std::string>{"faulty", "openblas"}));
  EXPECT_EQ(again->header.digests.at("c"), "3");
  ASSERT_EQ(again->results.size(), 2u);
  EXPECT_NE(again->results[0].tensors_file, again->results[1].tensors_file);
  ExpectSame(again->Find("a", "faulty")->observation, FullObservation());
}

TEST_F(JournalTest, BegunWithoutResultIsUnfinished) {
  {
    auto writer = JournalWriter::Create(dir_, header_);
    ASSERT_TRUE((*writer)->Begin("a", "faulty"));
  }
  const auto run = ReadRun(dir_);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->unfinished, (std::vector<std::pair<std::string, std::string>>{{"a", "faulty"}}));
  EXPECT_FALSE(JournalWriter::Create(dir_, header_)) << "a run must not be overwritten";
}

}  // namespace
}  // namespace ulpscope
