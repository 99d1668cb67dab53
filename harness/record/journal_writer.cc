// Appending to a journal.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "backends/sdk/safetensors.h"
#include "harness/record/crc.h"
#include "harness/record/file_bytes.h"
#include "harness/record/journal.h"
#include "harness/record/journal_format.h"
#include "harness/record/observation_json.h"

namespace ulpscope {

using nlohmann::json;

class JournalWriter::Impl {
 public:
  /// `lines`: how many records the journal has already.
  Impl(std::filesystem::path dir, int fd, int64_t next_number, size_t lines)
      : dir_(std::move(dir)), fd_(fd), next_number_(next_number), lines_(lines), syncer_([this] {
          SyncLoop();
        }) {}

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    syncer_.join();
    ::fdatasync(fd_);
    ::close(fd_);
  }

  Result<void> Append(json record) {
    const std::lock_guard lock(mutex_);
    if (!broken_.empty()) return Fail(broken_);
    // A line that is gone or there twice has a right checksum all the same: each says which it is.
    record["n"] = lines_++;
    const std::string line = JournalLine(record);
    // One write per record: a reader, and a run that was killed, sees it whole or not at all.
    ssize_t written;
    do written = ::write(fd_, line.data(), line.size());
    while (written < 0 && errno == EINTR);
    if (written != static_cast<ssize_t>(line.size())) {
      // What was written is a torn last line, which a reader tolerates; so nothing may follow it.
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

  const std::filesystem::path& dir() const { return dir_; }

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

  std::filesystem::path dir_;
  int fd_;
  int64_t next_number_;
  size_t lines_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string broken_;
  bool dirty_ = false;
  bool stopping_ = false;
  std::thread syncer_;  // last: it uses all of the above
};

namespace {

Result<int> OpenLocked(const std::filesystem::path& file, int flags) {
  const int fd = ::open(file.c_str(), flags | O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
  if (fd < 0) return Fail("cannot write " + file.string() + ": " + std::strerror(errno));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    ::close(fd);
    return Fail(file.parent_path().string() + " is being written by another run");
  }
  return fd;
}

int64_t NumberAfter(const RecordedRun& run) {
  int64_t next = 0;
  for (const auto& result : run.results) {
    for (const auto& file : {result.tensors_file, result.trace_file}) {
      const auto stem = std::filesystem::path(file).stem().string();
      if (!stem.empty()) next = std::max<int64_t>(next, std::strtoll(stem.c_str(), nullptr, 10) + 1);
    }
  }
  return next;
}

}  // namespace

JournalWriter::JournalWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
JournalWriter::~JournalWriter() = default;

Result<std::unique_ptr<JournalWriter>> JournalWriter::Create(const std::filesystem::path& dir,
                                                             const RunHeader& header) {
  for (const char* folder : {"tensors", "traces"}) {
    ULPSCOPE_TRY(MakeFolders(dir / folder));
  }
  const auto fd = ULPSCOPE_TRY(OpenLocked(dir / "journal.jsonl", O_CREAT));
  if (HoldsRun(dir)) {
    ::close(fd);
    return Fail(Problem(dir.string() + " holds a run already", {}, {},
                        "--resume continues it; or name another folder"));
  }
  if (::ftruncate(fd, 0) != 0) return Fail("cannot empty " + (dir / "journal.jsonl").string());
  std::unique_ptr<JournalWriter> writer(new JournalWriter(std::make_unique<Impl>(dir, fd, 0, 0)));
  ULPSCOPE_TRY(writer->impl_->Append(ToJson(header)));
  return writer;
}

Result<std::unique_ptr<JournalWriter>> JournalWriter::Continue(const RecordedRun& run,
                                                               const RunHeader& header) {
  const auto file = run.dir / "journal.jsonl";
  const auto fd = ULPSCOPE_TRY(OpenLocked(file, 0));
  // Read again under the lock: only now is nobody else appending.
  const auto text = ReadFileBytes(file, int64_t{4} << 30);
  if (!text) {
    ::close(fd);
    return tl::unexpected(text.error());
  }
  const auto journal = ParseJournal(*text);
  if (!journal) {
    ::close(fd);
    return tl::unexpected(journal.error());
  }
  if (journal->torn && ::ftruncate(fd, static_cast<off_t>(journal->whole_bytes)) != 0) {
    return Fail("cannot cut the torn last record off " + file.string() + ": " + std::strerror(errno));
  }
  std::unique_ptr<JournalWriter> writer(
      new JournalWriter(std::make_unique<Impl>(run.dir, fd, NumberAfter(run), journal->records.size())));
  ULPSCOPE_TRY(writer->impl_->Append(ToJson(header)));
  return writer;
}

Result<void> JournalWriter::Backend(const std::string& backend,
                                    const std::map<std::string, std::string>& versions,
                                    const std::map<std::string, std::vector<std::string>>& knobs) {
  return impl_->Append({{"type", "backend"}, {"backend", backend}, {"versions", versions}, {"knobs", knobs}});
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
              {"observation", ToJson(observation)}};
  const std::string number =
      observation.values.empty() && observation.trace.empty() ? "" : impl_->NextNumber();
  if (!observation.trace.empty()) {
    const std::string name = "traces/" + number + ".json";
    const json trace{{"case", case_id}, {"backend", backend}, {"nodes", TraceToJson(observation.trace)}};
    const std::string text = trace.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
    ULPSCOPE_TRY(WriteFileBytes(impl_->dir() / name, text));
    record["trace"] = {{"file", name}, {"crc", Crc32Text(text)}};
  }
  if (!observation.values.empty()) {
    const std::string name = "tensors/" + number + ".safetensors";
    const auto encoded = sdk::FormatSafetensors(observation.values);
    const std::string_view bytes(reinterpret_cast<const char*>(encoded.data()), encoded.size());
    ULPSCOPE_TRY(WriteFileBytes(impl_->dir() / name, bytes));
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
