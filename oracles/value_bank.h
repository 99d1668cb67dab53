// ValueBank: the models of one value with their bindings, and those of cases before this one.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "oracles/dot/sum.h"
#include "oracles/hypothesis.h"

namespace ulpscope {

/// The orders in which the sums on a path are simulated.
const std::vector<SumOrder>& OrdersOf(const Plan& plan, const ValuePath& path);

/// The candidate models of one value, shared by every backend that stored it in the same dtype.
struct ValueBank {
  int node = 0;  ///< as observed: a view of path.root, or the root itself
  ValuePath path;
  std::vector<Choice> choices;
  std::vector<std::string> order_names;
  std::vector<PrecisionModel> models;  ///< of each choice
  std::vector<Binding> bindings;       ///< of each choice

  /// Once all choices are there.
  void Bind(const Plan& plan);
};

using Enumerate = std::vector<Choice> (*)(const Plan&, const ValuePath&, DType);

/// The candidate models made last, for the next case: they depend on the plan and on no input, and a suite
/// runs one program on many inputs and shapes. The key is the plan itself, field by field, no digest of it.
/// It leaves out how many elements there are and where they lie, which no model depends on. The number of
/// terms of a sum stays in the key: some models exist for long sums only.
class RecentBanks {
 public:
  using Bank = std::shared_ptr<const ValueBank>;

  /// Null if none is of this very plan.
  Bank Find(const Plan& plan, int node, DType observed, Enumerate enumerate);
  void Keep(const Plan& plan, DType observed, Enumerate enumerate, Bank bank);

 private:
  static constexpr size_t kMostBanks = 16, kMostChoices = 10000;  // some 1 KiB a choice
  struct Kept {
    std::vector<PlanNode> nodes;  ///< without their shapes
    DType observed = DType::kFloat32;
    Enumerate enumerate = nullptr;
    Bank bank;
  };
  std::mutex mutex_;
  std::vector<Kept> kept_;  ///< the last one used first
};

/// The instance of this process.
RecentBanks& Recent();

}  // namespace ulpscope
