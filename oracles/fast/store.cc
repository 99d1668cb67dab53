// Results that the tiers wrote, element by element.
#include "oracles/fast/store.h"

#include <algorithm>

#include "harness/base/check.h"
#include "oracles/fast/kernels.h"

namespace ulpscope::fast {

void Results::Store::Start(const Product& product) {
  batch = product.batch;
  m = product.m;
  n = product.n;
  constexpr int64_t kPad = kMostTileColumns;  // tiles read whole vectors of the per-line arrays
  hi.Need(batch * m * n + 1);
  lo.Need(batch * m * n + 1);
  rules.assign(static_cast<size_t>(batch), Rule::kNone);
  for (auto* rows : {&row_low, &row_scale}) std::fill_n(rows->Need(batch * m + kPad) + batch * m, kPad, 1.0);
  for (auto* columns : {&column_low, &column_scale})
    std::fill_n(columns->Need(batch * n + kPad) + batch * n, kPad, 1.0);
  marks.clear();
  errs.clear();
  tiers.clear();
  counts = {};
}

void Results::Store::NeedMarks() {
  const std::lock_guard lock(mutex);
  if (!marks.empty()) return;
  const auto size = static_cast<size_t>(batch * m * n);
  errs.assign(size, 0);
  tiers.assign(size, Tier::kMain);
  marks.assign(size, Mark::kNone);
}

void Results::Store::Set(int64_t element, const Reference& reference, Tier tier) {
  tiers[static_cast<size_t>(element)] = tier;
  hi.data()[element] = reference.hi;
  lo.data()[element] = reference.lo;
  errs[static_cast<size_t>(element)] = reference.err;
  switch (reference.kind) {
    case ReferenceKind::kExact:
      marks[static_cast<size_t>(element)] = Mark::kExact;
      break;
    case ReferenceKind::kCertified:
      marks[static_cast<size_t>(element)] = Mark::kCertified;
      break;
    case ReferenceKind::kWide:
      marks[static_cast<size_t>(element)] = Mark::kWide;
      break;
    case ReferenceKind::kDomain:
      marks[static_cast<size_t>(element)] = Mark::kDomain;
      break;
    case ReferenceKind::kUndecided:
      ULPSCOPE_CHECK(false, "sums of products are never undecided");
  }
}

Results::Results() : store_(std::make_unique<Store>()) {}
Results::~Results() = default;
Results::Results(Results&&) noexcept = default;
Results& Results::operator=(Results&&) noexcept = default;

int64_t Results::size() const { return store_->batch * store_->m * store_->n; }
const TierCounts& Results::counts() const { return store_->counts; }
bool Results::FellBack(int64_t element) const {
  return !store_->tiers.empty() && store_->tiers[static_cast<size_t>(element)] != Tier::kMain;
}

void Results::Store::Count() {
  int64_t marked[4] = {};
  for (int64_t item = 0; item < batch; ++item) {
    int64_t main = m * n;
    if (!tiers.empty()) {
      for (int64_t i = item * m * n; i < (item + 1) * m * n; ++i) {
        const Tier tier = tiers[static_cast<size_t>(i)];
        ++marked[static_cast<int>(tier)];
        main -= tier != Tier::kMain;
      }
    }
    const Rule rule = rules[static_cast<size_t>(item)];
    (rule == Rule::kExact || rule == Rule::kExactHi ? counts.peel : counts.grid) += main;
  }
  counts.deep = marked[static_cast<int>(Tier::kDeep)];
  counts.accumulated = marked[static_cast<int>(Tier::kAccumulated)];
  counts.special = marked[static_cast<int>(Tier::kSpecial)];
}

Reference Results::At(int64_t element) const {
  const Store& s = *store_;
  // Adding +0 makes a zero of either sign +0 and changes nothing else. (What has a mark may be a -0: a tiny
  // negative number.)
  Reference reference{.hi = s.hi.data()[element] + 0.0, .lo = 0, .err = 0, .kind = ReferenceKind::kExact};
  const Mark mark = s.MarkOf(element);
  if (mark != Mark::kNone) {
    reference.hi = s.hi.data()[element];
    reference.lo = s.lo.data()[element];
    reference.err = s.errs[static_cast<size_t>(element)];
    reference.kind = mark == Mark::kExact       ? ReferenceKind::kExact
                     : mark == Mark::kCertified ? ReferenceKind::kCertified
                     : mark == Mark::kWide      ? ReferenceKind::kWide
                     : mark == Mark::kDomain    ? ReferenceKind::kDomain
                                                : ReferenceKind::kUndecided;
    return reference;
  }
  const int64_t row = element / s.n, item = row / s.m, column = item * s.n + element % s.n;
  switch (s.rules[static_cast<size_t>(item)]) {
    case Rule::kExactHi:
      return reference;
    case Rule::kExact:
      break;
    case Rule::kNone:
      ULPSCOPE_CHECK(false, "an element that no tier computed");
    case Rule::kGrid:
      if (s.row_low.data()[row] + s.column_low.data()[column] < s.exact_from) {
        reference.err = s.twice_delta * s.row_scale.data()[row] * s.column_scale.data()[column];
        reference.kind = ReferenceKind::kCertified;
      }
      break;
  }
  reference.lo = s.lo.data()[element] + 0.0;
  return reference;
}

}  // namespace ulpscope::fast
