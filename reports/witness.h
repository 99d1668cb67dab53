// The decisive element of a result: its observed value, and the rival's.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "harness/model/run_report.h"

namespace ulpscope {

struct Witness {
  std::string proof;  ///< "product[0,3] = 2.328125 on torch-aot-eager; the exact value is 2.3330078"
  std::string
      rival;  ///< "as openblas computes it (sums in float32, nothing rounded before the output): 2.333 there"
};

class Witnesses {
 public:
  /// `report` must outlive this.
  explicit Witnesses(const RunReport& report);

  /// For `result`'s value in `divergence`, against the first backend of the other side; without a divergence, or if
  /// that excludes nothing, for its first value against the nearest excluded model.
  std::optional<Witness> Of(const CaseResult& result, const Divergence* divergence) const;

 private:
  std::pair<std::string, const Classification*> Opposite(const CaseResult& result,
                                                         const Divergence* divergence,
                                                         const std::string& value) const;

  std::map<std::pair<std::string, std::string>, const CaseResult*> results_;
};

}  // namespace ulpscope
