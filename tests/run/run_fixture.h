// Shared parts of the runner's tests: three small cases, their inputs, a recorder of results, folders and
// process scans.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "harness/base/build_info.h"
#include "harness/record/observation_json.h"
#include "harness/run/descendants.h"
#include "harness/run/scheduler.h"
#include "tests/support/bin_dir.h"

namespace ulpscope {

namespace fs = std::filesystem;

inline Registry TestRegistry() {
  Places places = Places::Detect();
  places.bin = testing::BinDir();
  places.root = SourceDir();
  auto registry = Registry::Load(places.root / "backends/registry.jsonl", places);
  EXPECT_TRUE(registry) << registry.error().Text();
  return *registry;
}

/// x[2,4] . y[4,3] in float32 into a buffer, then + x-shaped bias in bfloat16: a product, a sum, a cast.
inline Case SmallCase(const std::string& id) {
  Case test_case;
  test_case.id = id;
  const auto tensor = [](std::string name, Shape shape) {
    TensorSpec spec;
    spec.name = std::move(name);
    spec.shape = std::move(shape);
    return spec;
  };
  test_case.tensors = {tensor("x", {2, 4}), tensor("y", {4, 3}), tensor("bias", {2, 3})};
  const auto step = [](std::string op, std::vector<std::string> of, std::string as) {
    Step made;
    made.op = std::move(op);
    for (auto& name : of) made.of.push_back({.name = std::move(name), .scalar = std::nullopt});
    made.as = std::move(as);
    return made;
  };
  test_case.program = {step("matmul", {"x", "y"}, "product"), step("add", {"product", "bias"}, "result"),
                       step("cast", {"result"}, "narrow")};
  test_case.program[2].attrs["dtype"] = Attr{std::string("bfloat16")};
  test_case.observe = {"product", "result", "narrow"};
  return test_case;
}

/// Different bits for every case and tensor.
inline Result<std::map<std::string, TensorData>> SmallInputs(const Case& test_case) {
  std::map<std::string, TensorData> inputs;
  int64_t salt = static_cast<int64_t>(test_case.id.size()) + test_case.id.back();
  for (const auto& spec : test_case.tensors) {
    TensorData data = TensorData::Zeros(spec.dtype, spec.shape);
    for (int64_t i = 0; i < data.size(); ++i)
      data.Set(i, static_cast<double>((i * 37 + salt * 11) % 64 - 32) / 8);
    inputs[spec.name] = data;
    ++salt;
  }
  return inputs;
}

inline std::vector<Case> ThreeCases() {
  return {SmallCase("t/alpha"), SmallCase("t/struck"), SmallCase("t/omega")};
}

/// Everything of an observation that a rerun must reproduce, as text.
inline std::string Stable(const Observation& observation) {
  nlohmann::json json = ToJson(observation);
  json.erase("durations_ms");
  json.erase("worker_log");
  json.erase("knobs_asked");
  for (auto& cast : json["casts"]) cast.erase("us");
  std::string text = json.dump(1);
  for (const auto& [name, tensor] : observation.values) {
    text += "\n" + name + " " + Describe(tensor.dtype, tensor.shape) + " ";
    for (const std::byte byte : tensor.bytes) {
      text += "0123456789abcdef"[std::to_integer<int>(byte) >> 4];
      text += "0123456789abcdef"[std::to_integer<int>(byte) & 15];
    }
  }
  return text;
}

class Recorder : public RunObserver {
 public:
  void OnBegin(const Case&, const BackendSpec&) override { ++begun; }
  void OnResult(const Case& test_case, const BackendSpec& backend, const Observation& observation) override {
    results[{test_case.id, backend.Text()}] = observation;
  }
  void OnEnd(const RunSummary&) override { ++ended; }

  std::map<std::pair<std::string, std::string>, Observation> results;
  int begun = 0, ended = 0;
};

/// A private TMPDIR, working directory and run folder; afterwards nothing may be left of a run.
class RunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "ulpscope-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    fs::create_directories(root_ / "tmp");
    // Reaches every worker through the whitelist and marks it, independently of the harness's own mark.
    ::setenv("XDG_CACHE_HOME", (root_ / "cache").c_str(), 1);
    ::setenv("TMPDIR", (root_ / "tmp").c_str(), 1);
    options_.out = root_ / "run";
  }

  void TearDown() override {
    EXPECT_EQ(MarkedProcesses(), std::vector<std::string>{});
    EXPECT_TRUE(::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD) << "a child process is left";
    EXPECT_EQ(TemporaryFiles(), std::vector<std::string>{});
    EXPECT_EQ(LastingAbandonedFolders(), std::vector<std::string>{});
    ::unsetenv("TMPDIR");
    ::unsetenv("XDG_CACHE_HOME");
    fs::remove_all(root_);
  }

  /// Processes that were started with this test's XDG_CACHE_HOME.
  std::vector<std::string> MarkedProcesses() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string pid = entry.path().filename().string();
      if (pid.find_first_not_of("0123456789") != std::string::npos || pid == std::to_string(::getpid()))
        continue;
      if (ReadProc(entry.path() / "environ").find((root_ / "cache").string()) != std::string::npos)
        found.push_back(pid);
    }
    return found;
  }

  /// Entries of the private TMPDIR. A folder that its maker was killed in the middle of making is not counted: a
  /// later run removes it a minute after (tests/hostile/test_kills.py).
  std::vector<std::string> TemporaryFiles() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(root_ / "tmp")) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with(".ulpscope-making-")) found.push_back(name);
    }
    return found;
  }

  /// Folders of runs on tmpfs whose lock is free.
  static std::set<std::string> AbandonedFolders() {
    std::set<std::string> found;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("/dev/shm", error)) {
      if (!entry.path().filename().string().starts_with("ulpscope-")) continue;
      const int fd = ::open((entry.path() / ".lock").c_str(), O_RDONLY | O_CLOEXEC);
      if (fd < 0) continue;
      if (::flock(fd, LOCK_EX | LOCK_NB) == 0 && fs::exists(entry.path()))
        found.insert(entry.path().string());
      ::close(fd);
    }
    return found;
  }

  /// Those that are abandoned for ten seconds. /dev/shm belongs to every run of the machine: a run that another
  /// test kills at this moment has a folder that its janitor is about to remove.
  static std::vector<std::string> LastingAbandonedFolders() {
    std::set<std::string> lasting = AbandonedFolders();
    for (int i = 0; i < 1000 && !lasting.empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const auto now = AbandonedFolders();
      std::erase_if(lasting, [&](const std::string& folder) { return !now.contains(folder); });
    }
    return {lasting.begin(), lasting.end()};
  }

  Recorder Run(const std::vector<Case>& cases, const std::vector<std::string>& backends) {
    Recorder recorder;
    const Registry registry = registry_ ? *registry_ : TestRegistry();
    std::vector<BackendSpec> specs;
    for (const auto& text : backends) {
      auto spec = ParseBackend(text, registry);
      EXPECT_TRUE(spec) << spec.error().Text();
      specs.push_back(*spec);
    }
    auto summary = RunCases(cases, specs, registry, inputs_, options_, recorder);
    EXPECT_TRUE(summary) << summary.error().Text();
    if (summary) summary_ = *summary;
    return recorder;
  }

  fs::path root_;
  RunOptions options_;
  InputProvider inputs_ = SmallInputs;
  std::optional<Registry> registry_;  ///< in place of TestRegistry
  RunSummary summary_;
};

}  // namespace ulpscope
