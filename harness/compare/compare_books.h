// The books of two programs of one function on one backend (harness/compare/compare_programs.h).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/base/result.h"
#include "harness/compare/compared_run.h"
#include "harness/hybrid/carriers.h"
#include "harness/model/ledger.h"
#include "harness/run/registry.h"

namespace ulpscope {

class ComparisonBooks {
 public:
  struct Programs {
    ProgramRun *f, *g;
  };
  /// `in_f`: step of g -> its counterpart in f. All arguments must outlive this.
  ComparisonBooks(const Registry& registry, const CompareOptions& options, Carriers* carriers,
                  const Programs& programs, const std::map<std::string, std::string>& in_f);
  ~ComparisonBooks();

  /// A ledger for each result whose bits differ.
  Result<std::vector<Ledger>> Make(const std::vector<ComparedResult>& results);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ulpscope
