// Structure check: does a tree have the shape that a Type of the field table gives it?
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/casefile/fields.h"
#include "harness/casefile/yaml_tree.h"

namespace ulpscope {

/// Collects errors with their places in one file. It stops at a limit, since a thousand errors of one broken
/// file help no reader.
class ErrorSink {
 public:
  explicit ErrorSink(std::string file) : file_(std::move(file)) {}

  void Add(const Mark& mark, std::string message, std::string found = {}, std::string expected = {},
           std::string hint = {});
  /// An error from a helper that does not know the place.
  void Add(const Mark& mark, Error error, std::string_view context = {});

  /// True if additional errors would be dropped: then their hints need not be computed.
  bool full() const { return errors_.size() >= kMaxErrors; }
  /// How often Add was called, including errors that were reported already (by another combination of a
  /// sweep) and those past the limit. Whether a part of a file is sound is decided by this number, never by
  /// the list.
  size_t reported() const { return reported_; }
  const std::string& file() const { return file_; }
  SourcePos At(const Mark& mark) const { return {.file = file_, .line = mark.line, .column = mark.column}; }
  std::vector<Error> Take() { return std::move(errors_); }

 private:
  static constexpr size_t kMaxErrors = 50;
  std::string file_;
  std::vector<Error> errors_;
  size_t reported_ = 0;
};

/// "did you mean 'x'?" or "", also for words so long that the search would take its time.
std::string Suggest(std::string_view word, std::span<const std::string> candidates);

/// Adds an error for everything in `node` that `type` does not allow. `name` identifies the place in messages ("tensor
/// 'x'").
void CheckStructure(const Node& node, const Type& type, std::string_view name, ErrorSink& errors);

}  // namespace ulpscope
