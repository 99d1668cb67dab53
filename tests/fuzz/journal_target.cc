// The journal reader on any text: as it stands, and with every line as a record whose checksum is right, for no mutation
// would hit a checksum.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "harness/record/crc.h"
#include "harness/record/journal.h"
#include "harness/record/journal_format.h"
#include "tests/fuzz/targets.h"

namespace ulpscope::fuzz {
namespace {

/// A folder for the one journal of this process; it goes with it.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ulpscope-fuzz-XXXXXX").string();
    Demand(::mkdtemp(pattern.data()) != nullptr, "there is a folder for temporary files");
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

  void Write(std::string_view text) const {
    const int fd = ::open((path_ / "journal.jsonl").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    Demand(fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()),
           "the journal can be written");
    ::close(fd);
  }

 private:
  std::filesystem::path path_;
};

/// The lines of `text` as records; what follows the last newline stays what it is: a torn end.
std::string Sealed(std::string_view text) {
  std::string sealed;
  for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    const std::string_view record = text.substr(0, end);
    sealed += R"({"crc":")" + Crc32Text(record) + R"(","record":)";
    sealed += record;
    sealed += "}\n";
  }
  return sealed + std::string(text);
}

}  // namespace

Reached Journal(std::string_view input) {
  static const Folder folder;
  if (const auto raw = ParseJournal(input)) {
    Demand(raw->whole_bytes <= input.size() && raw->records.size() == raw->lines.size(),
           "records have lines");
    Demand(raw->torn || raw->whole_bytes == input.size(), "what is not torn is read to its end");
  }
  folder.Write(Sealed(input));
  const auto run = ReadRun(folder.path(), TensorLoading::kLater);
  if (!run) {
    Demand(!run.error().Text().empty(), "an error has a text");
    return Reached::kRefused;
  }
  for (RecordedResult result : run->results) {
    Demand(run->Find(result.case_id, result.backend) != nullptr, "a result is found by its case and backend");
    Demand(result.tensors_file.empty() || result.tensors_file.starts_with("tensors/"),
           "tensors lie in the run");
    Demand(result.trace_file.empty() || result.trace_file.starts_with("traces/"), "traces lie in the run");
    Demand(result.tensors_file.empty() || !LoadTensors(*run, result), "a file that is not there is an error");
  }
  Plant(!run->results.empty() && IsPlantedLength(input.size()));
  return Reached::kAccepted;
}

}  // namespace ulpscope::fuzz
