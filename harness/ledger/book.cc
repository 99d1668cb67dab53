// Exact differences, and shares of them.
#include "harness/ledger/book.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "harness/base/check.h"
#include "harness/ledger/pairs.h"
#include "harness/num/dtype.h"
#include "harness/num/error_free.h"

namespace ulpscope {
namespace {

// Differences are exact pairs (TwoSum): no element is near the end of the range (CanBeSummed).

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// Both sides' hybrids at one place of the walk.
struct Place {
  const TensorData* a = nullptr;
  const TensorData* b = nullptr;
};

class Booking {
 public:
  Booking(const TensorData& a, const TensorData& b, bool counted) : counted_(counted) {
    ledger.counted = counted;
    ledger.elements = a.size();
    ledger.shape = a.shape;
    for (int64_t i = 0; i < a.size(); ++i) {
      const double left = a.At(i), right = b.At(i);
      if (left == right || (std::isnan(left) && std::isnan(right))) {
        whole_.push_back(0);
        continue;
      }
      ++ledger.differing;
      const double apart = std::fabs(right - left);
      ledger.atol = std::max(ledger.atol, std::isnan(apart) ? kInfinite : apart);
      ledger.rtol =
          std::max(ledger.rtol, std::isfinite(apart) && right != 0 ? apart / std::fabs(right) : kInfinite);
      whole_.push_back(counted ? 1 : ValueOf(TwoSum(right, -left)));
    }
    for (const long double each : whole_) norm_ += each * each;
    if (!counted && ledger.elements > 0)
      ledger.rms = static_cast<double>(std::sqrt(norm_ / static_cast<long double>(ledger.elements)));
  }

  void Enter(const std::string& step, const Place& before, const Place& after) {
    LedgerEntry entry{.step = step};
    long double product = 0, squares = 0;
    for (int64_t i = 0; i < ledger.elements; ++i) {
      const long double change =
          counted_ ? CountedChange(before, after, i, &entry) : ExactChange(before, after, i, &entry);
      // For counts, the whole is one for each element that differs, and zero elsewhere: a change there is
      // undone by a later entry.
      product += counted_ ? change : change * whole_[static_cast<size_t>(i)];
      squares += change * change;
    }
    if (entry.moved == 0) return;
    if (norm_ > 0) entry.share = static_cast<double>(product / norm_);
    if (!counted_)
      entry.rms = static_cast<double>(std::sqrt(squares / static_cast<long double>(ledger.elements)));
    ledger.entries.push_back(std::move(entry));
  }

  Ledger ledger;

 private:
  static long double ExactChange(const Place& before, const Place& after, int64_t i, LedgerEntry* entry) {
    const TwoDoubles was = TwoSum(before.b->At(i), -before.a->At(i)),
                     is = TwoSum(after.b->At(i), -after.a->At(i));
    if (was.hi == is.hi && was.lo == is.lo) return 0;
    ++entry->moved;
    // Equal high parts subtract exactly, which may leave the low parts alone.
    const long double change =
        (static_cast<long double>(is.hi) - was.hi) + (static_cast<long double>(is.lo) - was.lo);
    entry->largest = std::max(entry->largest, static_cast<double>(std::fabs(change)));
    return change;
  }

  static bool Differs(const Place& place, int64_t i) {
    const double left = place.a->At(i), right = place.b->At(i);
    return left != right && !(std::isnan(left) && std::isnan(right));
  }

  static long double CountedChange(const Place& before, const Place& after, int64_t i, LedgerEntry* entry) {
    const Place a{.a = before.a, .b = after.a}, b{.a = before.b, .b = after.b};
    const bool was = Differs(before, i), is = Differs(after, i);
    // If both sides move alike, the difference does not move.
    if ((was || is) && (Differs(a, i) || Differs(b, i))) ++entry->moved;
    return static_cast<int>(is) - static_cast<int>(was);
  }

  bool counted_;
  std::vector<long double> whole_;
  long double norm_ = 0;
};

/// Whether all differences between elements of it are finite.
bool CanBeSummed(const TensorData& tensor) {
  if (!IsFloating(tensor.dtype)) return false;
  constexpr double kMost =
      0x1p1000;  // differences of smaller numbers are finite, and so are their products as long doubles
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (!(std::fabs(tensor.At(i)) < kMost)) return false;
  }
  return true;
}

}  // namespace

Ledger Book(const TensorData& start, const LedgerWalk& a, const LedgerWalk& b,
            const std::vector<std::string>& order) {
  bool summed = CanBeSummed(start);
  const auto look = [&](const TensorData& tensor) {
    ULPSCOPE_CHECK(tensor.dtype == start.dtype && tensor.shape == start.shape,
                   "hybrids of one value have several shapes");
    summed = summed && CanBeSummed(tensor);
  };
  for (const LedgerWalk* walk : {&a, &b}) {
    look(walk->end);
    for (const auto& hybrid : walk->hybrids) look(hybrid.value);
  }
  Booking booking(a.end, b.end, !summed);
  Place here{.a = &start, .b = &start};
  const auto enter = [&](const std::string& step, const Place& after) {
    booking.Enter(step, here, after);
    here = after;
  };
  const auto at = [](const LedgerWalk& walk, const std::string& step, const TensorData* otherwise) {
    const auto found = std::ranges::find_if(
        walk.hybrids, [&](const LedgerWalk::Hybrid& hybrid) { return hybrid.step == step; });
    return found == walk.hybrids.end() ? otherwise : &found->value;
  };
  for (const std::string& step : order) {
    const Place after{.a = at(a, step, here.a), .b = at(b, step, here.b)};
    if (after.a != here.a || after.b != here.b) enter(step, after);
  }
  enter("", {.a = &a.end, .b = &b.end});
  booking.ledger.steps = static_cast<int64_t>(order.size());
  return std::move(booking.ledger);
}

}  // namespace ulpscope
