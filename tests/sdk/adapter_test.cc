// The adapter's main loop against a harness played by the test, and the helpers an adapter's author uses.
#include "backends/sdk/adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "backends/sdk/glue.h"

namespace ulpscope::sdk {
namespace {

using testing::HasSubstr;

class TestAdapter : public Adapter {
 public:
  Capabilities Hello(const HelloRequest& request) override {
    Capabilities can;
    can.name = "test";
    can.backends = {request.backend};
    return can;
  }
  RunReply Run(const RunRequest& request) override {
    const std::string& op = request.program.steps.empty() ? "" : request.program.steps[0].op;
    if (op == "throw") throw std::out_of_range("thrown");
    if (op == "memory") throw std::bad_alloc();
    if (op == "silent") return {};
    if (op == "extra") {
      RunReply reply;
      for (const std::string& name : request.program.observe) reply.observations[name] = "none";
      reply.tensors["surprise"] = TensorData::Zeros(DType::kFloat32, {1});
      return reply;
    }
#if defined(__x86_64__)
    if (op == "flush") _mm_setcsr(_mm_getcsr() | 0x8040U);
#endif
    return RunWithGlue(request, [&](const Step& step, GlueContext&) -> std::optional<StepResult> {
      if (step.op == "flush") return StepResult(TensorData::Zeros(DType::kFloat32, {1}));
      return std::nullopt;
    });
  }
};

/// The adapter in a thread, with the other end of its socket.
class Harness {
 public:
  Harness() : reader_(-1) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds_.data()), 0);
    reader_ = LineReader(fds_[0]);
    char text[] = "/tmp/ulpscope-test-XXXXXX";
    folder_ = mkdtemp(text);
    thread_ = std::thread([this] {
      exit_code_ = ServeAdapter(adapter_, fds_[1]);
      close(fds_[1]);
    });
  }
  ~Harness() {
    if (thread_.joinable()) Leave();
    std::filesystem::remove_all(folder_);
  }
  Json Ask(const Json& message) {
    EXPECT_TRUE(WriteMessage(fds_[0], message));
    const auto read = reader_.Read(5000);
    if (!read || read->state != ReadState::kLine) return nullptr;
    return *ParseMessage(read->line);
  }
  Json Run(Json steps, Json observe, const TensorMap& inputs = {}) {
    Json tensors = Json::array();
    for (const auto& [name, tensor] : inputs) {
      tensors.push_back(
          {{"name", name}, {"dtype", std::string(Name(tensor.dtype))}, {"shape", tensor.shape}});
    }
    EXPECT_TRUE(WriteSafetensors(Inputs(), inputs));
    return Ask(
        {{"verb", "run"},
         {"id", 7},
         {"program", {{"tensors", tensors}, {"steps", std::move(steps)}, {"observe", std::move(observe)}}},
         {"inputs", Inputs()},
         {"outputs", Outputs()},
         {"poison", true}});
  }
  int Leave() {
    shutdown(fds_[0], SHUT_WR);
    thread_.join();
    close(fds_[0]);
    return exit_code_;
  }
  std::string Inputs() const { return folder_ + "/in"; }
  std::string Outputs() const { return folder_ + "/out"; }

 private:
  std::array<int, 2> fds_{};
  LineReader reader_;
  TestAdapter adapter_;
  std::string folder_;
  std::thread thread_;
  int exit_code_ = -1;
};

TEST(ServeAdapter, AnswersHelloAndRefusesAnotherProtocol) {
  Harness harness;
  const Json good = harness.Ask({{"verb", "hello"}, {"protocol", 1}, {"backend", "b"}, {"device", "cpu"}});
  EXPECT_EQ(good["name"], "test");
  EXPECT_EQ(good["error"], "");
  const Json bad = harness.Ask({{"verb", "hello"}, {"protocol", 2}, {"backend", "b"}});
  EXPECT_THAT(bad["error"].get<std::string>(), HasSubstr("protocol 1, not 2"));
  EXPECT_EQ(harness.Leave(), 0);
}

TEST(ServeAdapter, RunsAProgramAndWritesWhatIsObserved) {
  Harness harness;
  TensorData a = TensorData::Zeros(DType::kBfloat16, {2});
  a.Set(0, 1.5);
  a.Set(1, -3);
  const Json reply =
      harness.Run({{{"op", "add"}, {"of", {"a", {{"scalar", 1}}}}, {"as", "b"}}}, {"a", "b"}, {{"a", a}});
  EXPECT_EQ(reply["id"], 7);
  EXPECT_EQ(reply["outcome"]["kind"], "completed") << reply;
  EXPECT_EQ(reply["parts"], (Json{{"b", "glue"}}));
  EXPECT_EQ(reply["fp"]["before"], reply["fp"]["after"]);
  EXPECT_EQ(reply["fp"]["before"]["mxcsr"], 0x1f80);
  const auto tensors = ReadSafetensors(harness.Outputs());
  ASSERT_TRUE(tensors);
  EXPECT_EQ(tensors->at("a"), a);
  EXPECT_EQ(tensors->at("b").At(0), 2.5);
  EXPECT_EQ(tensors->at("b").At(1), -2);
}

TEST(ServeAdapter, TurnsExceptionsAndFailuresIntoOutcomes) {
  Harness harness;
  const Json thrown = harness.Run({{{"op", "throw"}}}, Json::array());
  EXPECT_EQ(thrown["outcome"],
            (Json{{"kind", "raised"}, {"class", "std::out_of_range"}, {"text", "thrown"}}));
  EXPECT_EQ(harness.Run({{{"op", "memory"}}}, Json::array())["outcome"]["kind"], "out_of_memory");
  const Json unknown = harness.Run({{{"op", "frobnicate"}}}, Json::array());
  EXPECT_EQ(unknown["outcome"]["kind"], "unsupported");
  EXPECT_THAT(unknown["outcome"]["text"].get<std::string>(), HasSubstr("frobnicate"));
  EXPECT_THAT(harness.Run({{{"op", "silent"}}}, {"x"})["outcome"]["text"].get<std::string>(),
              HasSubstr("observed 'x'"));
  EXPECT_THAT(harness.Run({{{"op", "extra"}}}, {"x"})["outcome"]["text"].get<std::string>(),
              HasSubstr("surprise"));
  EXPECT_EQ(harness.Leave(), 0);
}

#if defined(__x86_64__)
TEST(ServeAdapter, ShowsAFloatingPointEnvironmentLeftChanged) {
  Harness harness;
  const Json reply = harness.Run({{{"op", "flush"}, {"as", "x"}}}, {"x"});
  EXPECT_EQ(reply["fp"]["before"]["subnormals_kept"], true);
  EXPECT_EQ(reply["fp"]["after"]["subnormals_kept"], false);
  EXPECT_EQ(reply["fp"]["after"]["mxcsr"], 0x9fc0);
}
#endif

TEST(ServeAdapter, LeavesWithThreeWhenTheHarnessBreaksTheProtocol) {
  const std::vector<Json> broken = {
      {{"verb", "dance"}},
      {{"verb", 3}},
      {{"verb", "run"}, {"program", 3}},
      {{"verb", "run"}, {"program", {{"tensors", {{{"name", "a"}, {"dtype", "float7"}, {"shape", {1}}}}}}}},
      {{"verb", "run"}, {"program", {{"tensors", {{{"name", "a"}, {"dtype", "float32"}, {"shape", {-1}}}}}}}},
      {{"verb", "run"}, {"program", {{"steps", {{{"op", "neg"}, {"of", {"nowhere"}}}}}}}},
  };
  for (const Json& message : broken) {
    Harness harness;
    EXPECT_EQ(harness.Ask(message), nullptr) << message;
    EXPECT_EQ(harness.Leave(), 3) << message;
  }
}

TEST(ServeAdapter, RefusesBadInputsAndGoesOn) {
  Harness harness;
  EXPECT_TRUE(WriteSafetensors(harness.Inputs(), {{"a", TensorData::Zeros(DType::kFloat32, {3})}}));
  const Json program = {{"tensors", {{{"name", "a"}, {"dtype", "float32"}, {"shape", {2}}}}}};
  const std::vector<std::pair<Json, std::string>> bad = {
      {{{"verb", "run"}, {"id", 5}, {"program", program}, {"inputs", harness.Inputs()}},
       "[3] in the inputs file"},
      {{{"verb", "run"}, {"id", 6}, {"program", program}}, "lacks tensor 'a'"},
      {{{"verb", "run"}, {"id", 7}, {"program", Json::object()}, {"inputs", "/nonexistent/inputs"}},
       "nonexistent"},
  };
  for (const auto& [message, says] : bad) {
    const Json answer = harness.Ask(message);
    ASSERT_TRUE(answer.is_object()) << message;
    EXPECT_EQ(answer["id"], message["id"]);
    EXPECT_EQ(answer["outcome"]["kind"], "unsupported");
    const std::string text = answer["outcome"]["text"];
    EXPECT_TRUE(text.starts_with("inputs: ")) << text;
    EXPECT_NE(text.find(says), std::string::npos) << text;
  }
  EXPECT_EQ(harness.Leave(), 0);
}

TEST(Poison, IsAQuietNanInEveryFloatFormatAndIsFoundAgain) {
  int checked = 0;
  for (const std::string& name : AllDTypeNames()) {
    const DType dtype = *ParseDType(name);
    TensorData tensor = TensorData::Zeros(dtype, {5});
    EXPECT_EQ(CountPoisoned(tensor), 0);
    FillPoison(tensor.bytes, SizeOf(dtype));
    EXPECT_EQ(CountPoisoned(tensor), 5) << name;
    if (IsFloating(dtype) && dtype != DType::kFloat8E4m3fnuz) {  // whose one NaN is another byte
      EXPECT_TRUE(std::isnan(tensor.At(3))) << name;
      ++checked;
    }
    tensor.bytes[SizeOf(dtype)] = std::byte{0};
    EXPECT_EQ(CountPoisoned(tensor), 4) << name;
  }
  EXPECT_EQ(checked, 6);
}

TEST(Poison, ElementsOfTheDocumentedPattern) {
  TensorData wide = TensorData::Zeros(DType::kInt64, {1});
  FillPoison(wide.bytes, 8);
  int64_t bits = 0;
  std::copy_n(wide.bytes.begin(), 8, reinterpret_cast<std::byte*>(&bits));
  EXPECT_EQ(static_cast<uint64_t>(bits), 0xfffaa5a5a5a5a5a5U);
}

TEST(SplitObserved, TakesTheLastDot) {
  EXPECT_EQ(SplitObserved("layer.w.grad").value, "layer.w");
  EXPECT_EQ(SplitObserved("layer.w.grad").property, "grad");
  EXPECT_EQ(SplitObserved("w").property, "");
}

}  // namespace
}  // namespace ulpscope::sdk
