// One case on one backend, whatever happens.
#include "harness/run/case_runner.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <atomic>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/record/observation_json.h"
#include "harness/run/compare.h"
#include "harness/run/environment.h"
#include "harness/run/hello.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLogLimit = 16384;
constexpr int kStartAttempts = 2;

/// Numbers the runners of this process: folders and tokens are theirs alone.
int64_t NextRunnerNumber() {
  static std::atomic<int64_t> next{0};
  return next++;
}

Outcome Unsupported(std::string reason) {
  return {.kind = OutcomeKind::kUnsupported, .error_class = "", .text = std::move(reason)};
}

Outcome ProtocolBroken(std::string text) {
  return {.kind = OutcomeKind::kProtocolBroken, .error_class = "", .text = std::move(text)};
}

/// The last line of a worker's log that is not empty; for a Python adapter, the error that ended it.
std::string LastLine(const std::string& log) {
  std::string last;
  for (std::string& line : LinesOf(log)) {
    if (!line.empty()) last = std::move(line);
  }
  return last;
}

bool IsWorkerFault(OutcomeKind kind) {
  using enum OutcomeKind;
  return kind == kCrashed || kind == kTimedOut || kind == kOutOfMemory || kind == kProtocolBroken;
}

/// A sparse file of gigabytes costs its writer nothing, and its reader all of them.
std::string HoleIn(const std::string& file) {
  constexpr int64_t kSmall = int64_t{64} << 20;
  struct stat info {};
  struct statfs place {};
  // On file systems other than tmpfs, written data may take less space.
  if (::lstat(file.c_str(), &info) != 0 || info.st_size <= kSmall || ::statfs(file.c_str(), &place) != 0 ||
      place.f_type != TMPFS_MAGIC)
    return "";
  const int64_t written = int64_t{info.st_blocks} * 512;
  if (written >= info.st_size / 2) return "";
  return std::to_string(written) + " of the file's " + std::to_string(info.st_size) + " bytes were written";
}

/// The class of an outcome whose tensors found no room: of an adapter, and of ulpscope itself (PROTOCOL.md).
constexpr const char* kNoRoomForOutputs = "outputs";
constexpr const char* kNoRoomForInputs = "inputs";

/// Whether the file system of `folder` is why a case ended by `outcome`: an adapter reported so, or it ended
/// in whatever way while there was no room left.
bool IsForWantOfRoom(const Outcome& outcome, const fs::path& folder) {
  using enum OutcomeKind;
  constexpr uint64_t kNone =
      uint64_t{64} << 10;  // free space of a small file system after a file of many pages did not fit
  if (outcome.kind == kOutOfMemory && outcome.error_class == kNoRoomForOutputs) return true;
  if (outcome.kind != kCrashed && outcome.kind != kOutOfMemory) return false;
  struct statvfs room {};
  return ::statvfs(folder.c_str(), &room) == 0 && uint64_t{room.f_bavail} * room.f_frsize < kNone;
}

/// "/dev/shm has room for 0.8 MiB, of which 0 are free"
std::string RoomIn(const fs::path& folder, const fs::path& shown) {
  struct statvfs room {};
  if (::statvfs(folder.c_str(), &room) != 0) return "";
  const auto mebibytes = [&](uint64_t blocks) {
    return fmt::format("{:.3g}",
                       static_cast<double>(blocks) * static_cast<double>(room.f_frsize) / (1 << 20));
  };
  return shown.string() + " has room for " + mebibytes(room.f_blocks) + " MiB, of which " +
         mebibytes(room.f_bavail) + " are free now";
}

bool IsOnOneFileSystem(const fs::path& a, const fs::path& b) {
  struct stat first {
  }, second{};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 && first.st_dev == second.st_dev;
}

std::string JoinNames(const std::set<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

struct CaseRunner::Attempt {
  Observation observation;
  bool interrupted = false;
  bool full = false;  ///< the tensors found no room in their folder
};

std::string UnmetRequirement(const Case& test_case, const BackendSpec& backend, const BackendInfo* info) {
  const std::string device(backend.DeviceKind());
  for (const auto& [key, value] : test_case.requires_) {
    if (key == "device") {
      if (value != backend.device && value != device) return "requires device " + value;
    } else if (info != nullptr) {
      const auto& offered = info->capabilities;
      if (!Contains(offered, value)) return "requires " + key + " " + value;
    }
  }
  return "";
}

CaseRunner::CaseRunner(WorkerKey& key, const Registry& registry, const Scratch& scratch,
                       const RunOptions& options, int interrupt_fd)
    : key_(key), registry_(registry), scratch_(scratch), options_(options), interrupt_fd_(interrupt_fd) {
  const std::string name = "w" + std::to_string(NextRunnerNumber());
  shm_ = scratch.shm() / name;
  tmp_ = scratch.tmp() / name;
  disk_ = scratch.tmp() / (name + "-tensors");
}

CaseRunner::~CaseRunner() {
  if (worker_ != nullptr) worker_->Bye();
  std::error_code ignored;
  for (const auto& folder : {shm_, tmp_, disk_}) fs::remove_all(folder, ignored);
}

WorkerLimits CaseRunner::Limits(double seconds) const {
  return {.seconds = seconds, .memory_bytes = options_.memory_budget_bytes, .interrupt_fd = interrupt_fd_};
}

void CaseRunner::Discard() {
  worker_.reset();
  cases_served_ = 0;
  // Removes the files that the worker may have left.
  std::error_code ignored;
  fs::remove_all(tmp_, ignored);
}

std::optional<Outcome> CaseRunner::SayHello(bool& interrupted) {
  Greeting greeting =
      Greet(*worker_, key_.backend, WireKnobs(key_.knobs_asked), Limits(options_.startup_timeout_s));
  interrupted = std::holds_alternative<RunInterrupted>(greeting);
  auto* info = std::get_if<BackendInfo>(&greeting);
  std::optional<Outcome> failure;
  if (info != nullptr)
    failure = WhyUnserved(*info, key_.backend);
  else if (!interrupted)
    failure = std::get<Outcome>(std::move(greeting));
  if (failure && failure->kind != OutcomeKind::kUnsupported) failure->text = "start-up: " + failure->text;
  if (failure || interrupted) return failure;
  const std::lock_guard lock(key_.mutex);
  if (!key_.info) key_.info = std::move(*info);
  return std::nullopt;
}

std::optional<Outcome> CaseRunner::EnsureWorker(bool& interrupted) {
  if (worker_ != nullptr && cases_served_ >= options_.recycle_after) {
    worker_->Bye();
    Discard();
  }
  if (worker_ != nullptr && worker_->IsIdle()) return std::nullopt;
  while (true) {
    Discard();
    {
      const std::lock_guard lock(key_.mutex);
      if (key_.start_failure) return key_.start_failure;
    }
    std::error_code error;
    fs::create_directories(shm_, error);
    fs::create_directories(tmp_, error);
    const std::string token = scratch_.token() + "." + std::to_string(NextRunnerNumber());
    auto worker = Worker::Start(
        {.argv = registry_.Command(key_.row),
         .environment = WorkerEnvironment(WireKnobs(key_.knobs_asked), registry_.places(), tmp_, token),
         .cwd = tmp_,
         .token = token});
    std::optional<Outcome> failure;
    if (worker) {
      worker_ = std::move(*worker);
      failure = SayHello(interrupted);
      if (interrupted || !failure) return std::nullopt;
    } else {
      failure = Outcome{
          .kind = OutcomeKind::kCrashed, .error_class = "", .text = "start-up: " + worker.error().message};
    }
    const std::lock_guard lock(key_.mutex);
    key_.start_log = worker_ == nullptr ? "" : CleanText(worker_->Log(), kLogLimit);
    if (failure->kind != OutcomeKind::kUnsupported && !LastLine(key_.start_log).empty())
      failure->text += "; the last line that it wrote: " + LastLine(key_.start_log);
    // A crash may be bad luck; nonsense, silence and refusals will not change.
    if (failure->kind != OutcomeKind::kCrashed || ++key_.start_failures >= kStartAttempts)
      key_.start_failure = failure;
  }
}

std::string CaseRunner::ReadOutputs(const Case& test_case, const std::string& file,
                                    Observation& observation) const {
  const auto expected = ExpectedTensors(test_case, observation);
  std::error_code error;
  if (expected.empty() && !fs::exists(fs::symlink_status(file, error))) return "";
  if (const std::string hole = HoleIn(file); !hole.empty()) return "outputs: " + hole;
  auto tensors =
      sdk::ReadSafetensors(file, {.max_file_bytes = static_cast<size_t>(options_.memory_budget_bytes)});
  if (!tensors) return "outputs: " + tensors.error().message;
  std::set<std::string> missing = expected, extra;
  for (const auto& [name, tensor] : *tensors) {
    if (missing.erase(name) == 0) extra.insert(name);
    if (HoldsPoison(tensor)) observation.unwritten.push_back(name);
  }
  if (!missing.empty()) return "outputs: missing tensor " + JoinNames(missing);
  if (!extra.empty()) return "outputs: tensor that was not requested: " + JoinNames(extra);
  observation.values = std::move(*tensors);
  return "";
}

CaseRunner::Attempt CaseRunner::RunOnce(const Case& test_case, const std::string& inputs_file, bool trace) {
  Attempt attempt;
  Observation& observation = attempt.observation;
  const int64_t id = next_id_++;
  const RunRequest request{.id = id,
                           .test_case = &test_case,
                           .device = key_.backend.device,
                           .seed = options_.seed,
                           .trace = trace,
                           .schedule = trace ? options_.schedule : std::vector<int>(),
                           .inputs = inputs_file,
                           .outputs = exchange_ / (std::to_string(id) + ".out.safetensors"),
                           .knobs = WireKnobs(key_.knobs_asked)};
  const auto start = std::chrono::steady_clock::now();
  const Answer answer = worker_->Exchange(RunMessage(request), Limits(options_.timeout_s));
  const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
  ++cases_served_;
  if (std::holds_alternative<RunInterrupted>(answer)) {
    attempt.interrupted = true;
  } else if (const auto* outcome = std::get_if<Outcome>(&answer)) {
    observation.outcome = *outcome;
  } else if (auto parsed = ParseRunAnswer(std::get<std::string>(answer), request); !parsed) {
    observation.outcome = ProtocolBroken(parsed.error().message);
  } else {
    observation = std::move(*parsed);
    if (observation.outcome.kind == OutcomeKind::kCompleted) {
      if (auto problem = ReadOutputs(test_case, request.outputs, observation); !problem.empty()) {
        observation = {};
        observation.outcome = ProtocolBroken(problem);
      }
    }
    observation.tainted = DescribeTaint(observation, WireKnobs(key_.knobs_asked));
  }
  observation.durations_ms["exchange"] = elapsed.count();
  attempt.full = IsForWantOfRoom(observation.outcome, exchange_);
  std::error_code ignored;
  fs::remove(request.outputs, ignored);
  if (IsWorkerFault(observation.outcome.kind)) {
    worker_->Kill();
    observation.worker_log = CleanText(worker_->Log(), kLogLimit);
    Discard();
  } else if (!observation.tainted.empty() || attempt.interrupted) {
    Discard();
  }
  return attempt;
}

CaseRunner::Attempt CaseRunner::RunRepeated(const Case& test_case, const std::string& inputs_file) {
  Attempt first = RunOnce(test_case, inputs_file, options_.trace);
  for (int i = 1; i < options_.repeat; ++i) {
    const Observation& so_far = first.observation;
    if (first.interrupted || so_far.outcome.kind != OutcomeKind::kCompleted || !so_far.tainted.empty()) break;
    // Traced the first time only: that a trace changes the numbers would show here too.
    Attempt again = RunOnce(test_case, inputs_file, false);
    if (again.interrupted || IsWorkerFault(again.observation.outcome.kind)) return again;
    CompareRepeats(first.observation, again.observation);
    if (first.observation.tainted.empty()) first.observation.tainted = again.observation.tainted;
  }
  return first;
}

void CaseRunner::RunAloneAfterCrash(const Case& test_case, const std::string& inputs_file,
                                    Observation& crashed, bool& interrupted) {
  if (EnsureWorker(interrupted) || interrupted) return;
  const Attempt alone = RunOnce(test_case, inputs_file, options_.trace);
  interrupted = alone.interrupted;
  // Whatever it may still be about to do, it does not do to the next case.
  Discard();
  const Outcome& outcome = alone.observation.outcome;
  if (interrupted) return;
  if (outcome.kind == OutcomeKind::kCrashed && outcome.error_class == crashed.outcome.error_class) return;
  crashed.notes.push_back(outcome.kind == OutcomeKind::kCompleted
                              ? "order dependence: run once more alone in a fresh worker, it completed"
                              : "run once more alone in a fresh worker, it ended otherwise: " +
                                    std::string(Name(outcome.kind)) + ": " + outcome.text);
}

CaseRunner::Attempt CaseRunner::RunIn(const fs::path& folder, const Case& test_case,
                                      const sdk::TensorMap& inputs) {
  exchange_ = folder;
  const fs::path inputs_file = folder / (std::to_string(next_id_++) + ".in.safetensors");
  auto written = sdk::WriteSafetensors(inputs_file, inputs);
  if (!written) {
    // Files that an earlier case has left take no room from this one.
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) fs::remove_all(entry.path(), ignored);
    written = sdk::WriteSafetensors(inputs_file, inputs);
  }
  if (!written) {
    Attempt refused{.observation = {}, .full = true};
    refused.observation.outcome = {.kind = OutcomeKind::kOutOfMemory,
                                   .error_class = kNoRoomForInputs,
                                   .text = "the inputs could not be handed over: " + written.error().message};
    return refused;
  }
  Attempt attempt = RunRepeated(test_case, inputs_file);
  if (!attempt.interrupted && !attempt.full && attempt.observation.outcome.kind == OutcomeKind::kCrashed) {
    RunAloneAfterCrash(test_case, inputs_file, attempt.observation, attempt.interrupted);
  }
  std::error_code ignored;
  fs::remove(inputs_file, ignored);
  return attempt;
}

std::optional<Observation> CaseRunner::Run(const Case& test_case, const sdk::TensorMap& inputs) {
  Observation observation;
  bool interrupted = false;
  const auto end_with = [&](Outcome outcome) {
    observation = {};
    observation.outcome = std::move(outcome);
    observation.knobs_asked = key_.knobs_asked;
    return observation;
  };
  if (!key_.refusal.empty()) return end_with(Unsupported(key_.refusal));
  if (auto unmet = UnmetRequirement(test_case, key_.backend, nullptr); !unmet.empty())
    return end_with(Unsupported(unmet));
  if (auto failure = EnsureWorker(interrupted)) {
    end_with(*failure);
    const std::lock_guard lock(key_.mutex);
    observation.worker_log = key_.start_log;
    return observation;
  }
  if (interrupted) return std::nullopt;
  if (auto unmet = UnmetRequirement(test_case, key_.backend, &*key_.info); !unmet.empty())
    return end_with(Unsupported(unmet));
  Attempt attempt = RunIn(shm_, test_case, inputs);
  if (attempt.full && !attempt.interrupted) {
    const Outcome before = attempt.observation.outcome;
    std::error_code error;
    fs::create_directories(disk_, error);
    if (!error && !IsOnOneFileSystem(shm_, disk_) && !EnsureWorker(interrupted) && !interrupted) {
      attempt = RunIn(disk_, test_case, inputs);
      if (before.kind == OutcomeKind::kCrashed && !attempt.full)
        attempt.observation.notes.push_back("its tensors lay in " + scratch_.tmp().parent_path().string() +
                                            ": with no room left in " +
                                            scratch_.shm().parent_path().string() + " " + before.text);
    }
    if (interrupted) return std::nullopt;
    if (attempt.full)
      attempt.observation.outcome.text += "; " + RoomIn(exchange_, exchange_.parent_path().parent_path());
  }
  if (attempt.interrupted) return std::nullopt;
  attempt.observation.knobs_asked = key_.knobs_asked;
  return std::move(attempt.observation);
}

}  // namespace ulpscope
