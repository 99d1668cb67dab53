// Appending to a journal.
#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include "backends/sdk/safetensors.h"
#include "harness/base/machine_limits.h"
#include "harness/base/secrets.h"
#include "harness/record/crc.h"
#include "harness/record/journal.h"
#include "harness/record/journal_format.h"
#include "harness/record/observation_json.h"
#include "harness/record/run_file.h"

namespace ulpscope {

using nlohmann::json;

class JournalWriter::Impl {
 public:
  /// `lines`: the number of records in the journal.
  Impl(std::shared_ptr<RunLock> lock, int64_t next_number, size_t lines)
      : lock_(std::move(lock)),
        fd_(lock_->journal().fd()),
        next_number_(next_number),
        lines_(lines),
        syncer_(TryThread([this] { SyncLoop(); })) {}

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    if (syncer_) syncer_->join();
    ::fdatasync(fd_);
  }

  Result<void> Append(json record) {
    const std::lock_guard lock(mutex_);
    if (!broken_.empty()) return Fail(broken_);
    // A line that is missing or there twice has a right checksum all the same: so each line has its number.
    record["n"] = lines_++;
    const std::string line = JournalLine(record);
    // One write per record: a reader, and a run that was killed, sees it whole or not at all.
    ssize_t written;
    do written = ::write(fd_, line.data(), line.size());
    while (written < 0 && errno == EINTR);
    if (written != static_cast<ssize_t>(line.size())) {
      // The written part is a torn last line, which a reader tolerates; so nothing may follow it.
      broken_ =
          "cannot write the journal: " + std::string(written < 0 ? std::strerror(errno) : "the disk is full");
      return Fail(broken_);
    }
    dirty_ = true;
    wake_.notify_one();
    return {};
  }

  /// Six digits or more, never given twice: tensors/<number>.safetensors, traces/<number>.json.
  std::string NextNumber() {
    const std::lock_guard lock(mutex_);
    std::string number = std::to_string(next_number_++);
    if (number.size() < 6) number.insert(0, 6 - number.size(), '0');
    return number;
  }

  /// A file that the next record names; it replaces one that a killed run left under its name.
  Result<void> WriteBeside(const std::string& name, std::string_view bytes) const {
    return CreateRunFile({.folder = lock_->folder(), .name = name}, bytes);
  }

 private:
  void SyncLoop() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return dirty_ || stopping_; });
      if (!dirty_) return;
      dirty_ = false;
      lock.unlock();
      ::fdatasync(fd_);
      lock.lock();
    }
  }

  std::shared_ptr<RunLock> lock_;
  int fd_;
  int64_t next_number_;
  size_t lines_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string broken_;
  bool dirty_ = false;
  bool stopping_ = false;
  std::optional<std::thread> syncer_;  // last: it uses all of the above; none: the machine has no thread left
};

namespace {

/// Removes secrets from the adapter's texts: a run folder is passed on. Names of values and knobs stay: they
/// are the case's own.
void CleanTexts(json* texts) {
  if (texts->is_string()) *texts = WithoutSecrets(texts->get_ref<const std::string&>());
  if (!texts->is_structured()) return;
  for (json& each : *texts) CleanTexts(&each);
}

json CleanObservation(const Observation& observation) {
  json said = ToJson(observation);
  CleanTexts(&said["outcome"]["class"]);
  CleanTexts(&said["outcome"]["text"]);
  for (const char* key : {"observations", "knobs_effective", "notes", "untraced", "tainted", "worker_log"})
    CleanTexts(&said[key]);
  for (json& cast : said["casts"]) CleanTexts(&cast["under"]);
  return said;
}

json CleanTrace(const std::vector<TraceNode>& trace) {
  json nodes = TraceToJson(trace);
  for (json& node : nodes) CleanTexts(&node["op"]);
  return nodes;
}

/// Paths and commands of this machine.
RunHeader CleanHeader(RunHeader header) {
  for (auto& [backend, why] : header.not_installed) why = WithoutSecrets(why);
  for (auto& [name, value] : header.environment) {
    if (value) value = WithoutSecrets(*value);
  }
  return header;
}

Result<void> CutOff(const RunLock& lock, size_t bytes) {
  if (::ftruncate(lock.journal().fd(), static_cast<off_t>(bytes)) == 0) return {};
  return Fail("cannot cut the torn last record off " + lock.journal().shown() + ": " + std::strerror(errno));
}

Result<void> MakeRecordFolders(const std::filesystem::path& dir) {
  for (const char* name : {"tensors/any", "traces/any"}) {
    ULPSCOPE_TRY(MakeFoldersOf({.folder = dir, .name = name}));
  }
  return {};
}

}  // namespace

JournalWriter::JournalWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
JournalWriter::~JournalWriter() = default;

Result<std::unique_ptr<JournalWriter>> JournalWriter::Create(std::shared_ptr<RunLock> lock,
                                                             const RunHeader& header) {
  if (HoldsRun(lock->folder())) {
    return Fail(Problem(lock->folder().string() + " holds a run already", {}, {},
                        "--resume continues it; or name another folder"));
  }
  ULPSCOPE_TRY(MakeRecordFolders(lock->folder()));
  ULPSCOPE_TRY(CutOff(*lock, 0));
  std::unique_ptr<JournalWriter> writer(new JournalWriter(std::make_unique<Impl>(std::move(lock), 0, 0)));
  ULPSCOPE_TRY(writer->impl_->Append(ToJson(CleanHeader(header))));
  return writer;
}

Result<std::unique_ptr<JournalWriter>> JournalWriter::Create(const std::filesystem::path& dir,
                                                             const RunHeader& header) {
  auto lock = ULPSCOPE_TRY(RunLock::TakeNew(dir));
  return Create(std::move(lock), header);
}

Result<std::unique_ptr<JournalWriter>> JournalWriter::Continue(std::shared_ptr<RunLock> lock,
                                                               const RecordedRun& run,
                                                               const RunHeader& header) {
  ULPSCOPE_TRY(MakeRecordFolders(lock->folder()));
  ULPSCOPE_TRY(CutOff(*lock, run.whole_bytes));
  std::unique_ptr<JournalWriter> writer(
      new JournalWriter(std::make_unique<Impl>(std::move(lock), run.next_number, run.records)));
  ULPSCOPE_TRY(writer->impl_->Append(ToJson(CleanHeader(header))));
  return writer;
}

Result<void> JournalWriter::Backend(const std::string& backend,
                                    const std::map<std::string, std::string>& versions,
                                    const std::map<std::string, std::vector<std::string>>& knobs) {
  json said(versions);
  CleanTexts(&said);
  return impl_->Append({{"type", "backend"}, {"backend", backend}, {"versions", said}, {"knobs", knobs}});
}

Result<void> JournalWriter::Begin(const std::string& case_id, const std::string& backend) {
  return impl_->Append({{"type", "begin"}, {"case", case_id}, {"backend", backend}});
}

Result<void> JournalWriter::Store(const std::string& case_id, const std::string& digest,
                                  const std::string& backend, const Observation& observation) {
  json record{{"type", "result"},
              {"case", case_id},
              {"digest", digest},
              {"backend", backend},
              {"observation", CleanObservation(observation)}};
  const std::string number =
      observation.values.empty() && observation.trace.empty() ? "" : impl_->NextNumber();
  if (!observation.trace.empty()) {
    const std::string name = "traces/" + number + ".json";
    const json trace{{"case", case_id}, {"backend", backend}, {"nodes", CleanTrace(observation.trace)}};
    const std::string text = trace.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
    ULPSCOPE_TRY(impl_->WriteBeside(name, text));
    record["trace"] = {{"file", name}, {"crc", Crc32Text(text)}};
  }
  if (!observation.values.empty()) {
    const std::string name = "tensors/" + number + ".safetensors";
    const auto encoded = sdk::FormatSafetensors(observation.values);
    const std::string_view bytes(reinterpret_cast<const char*>(encoded.data()), encoded.size());
    ULPSCOPE_TRY(impl_->WriteBeside(name, bytes));
    record["tensors"] = {{"file", name}, {"crc", Crc32Text(bytes)}};
  }
  return impl_->Append(record);
}

Result<void> JournalWriter::End(Ending ending, int64_t stopped_after) {
  json record{{"type", "end"}, {"complete", ending == Ending::kComplete}};
  if (stopped_after > 0) record["stopped_after"] = stopped_after;
  return impl_->Append(std::move(record));
}

}  // namespace ulpscope
