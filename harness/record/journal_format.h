// The lines of a journal: a CRC around each record, and the division of a record file's text into records.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/result.h"
#include "harness/record/file_bytes.h"
#include "harness/record/journal.h"

namespace ulpscope {

/// {"crc":"1a2b3c4d","record":...} and the newline.
std::string JournalLine(const nlohmann::json& record);

struct JournalText {
  std::vector<nlohmann::json> records;
  std::vector<int> lines;  ///< of each record, from 1
  size_t whole_bytes = 0;  ///< length of the text up to the last whole record
  bool torn = false;       ///< something follows it: the last write did not finish
};

/// Splits a journal into records. A last line without its newline is torn: a write that did not finish leaves
/// a prefix. Anything else that is not a record is an error with its line number.
Result<JournalText> ParseJournal(std::string_view text);

/// The same for an open file of at most `limit` bytes, a record at a time: `take` gets each with its line, and the
/// first error ends it. Lines that `wanted` refuses are skipped unread. Memory holds a few lines, and the returned
/// JournalText holds no records.
Result<JournalText> ForEachRecordOf(const FileHandle& file, int64_t limit,
                                    const std::function<bool(std::string_view)>& wanted,
                                    const std::function<Result<void>(nlohmann::json record, int line)>& take);

/// The text of the record in a whole line without its newline, held against its checksum; it is not read yet.
Result<std::string_view> RecordText(std::string_view line);
/// The record in it.
Result<nlohmann::json> ParseRecord(std::string_view line);

nlohmann::json ToJson(const PlannedCase& planned);
/// The first problem is left in `error`.
PlannedCase PlannedCaseFromJson(const nlohmann::json& json, std::string& error);
nlohmann::json ToJson(const RunHeader& header);
Result<RunHeader> RunHeaderFromJson(const nlohmann::json& json);

}  // namespace ulpscope
