// Converts, peels, multiplies, corrects.
#include "oracles/fast/peel.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "harness/num/error_free.h"
#include "oracles/fast/exponents.h"

namespace ulpscope::fast {
namespace {

/// At most one element in this many may be peeled.
constexpr int64_t kPeelShare = 64;

/// The least l with norm <= 2^(l + 26.5), and 2^l as a double.
double UnitOf(double norm) {
  constexpr double kRootHalf = 0x1.6a09e667f3bccp-1;  // rounded down: the claim stays proved
  const int floor = FloorLog2(norm);                  // norm = fraction * 2^floor, fraction in [1, 2)
  return TwoTo(norm <= 2 * kRootHalf * TwoTo(floor) ? floor - 26 : floor - 25);
}

/// 2^low of a line, infinity for zeros.
double LowestBit(double low) { return low == kNoLowBit ? HUGE_VAL : TwoTo(static_cast<int>(low)); }

bool IsMultiple(double x, double unit) {
  const double quotient =
      x / unit;  // exact: unit is a power of two and both are far from the ends of the range
  return quotient == std::rint(quotient);
}

const void* RowOf(const Lines& lines, int64_t at) {
  const int64_t size = lines.type == kSourceF64   ? 8
                       : lines.type == kSourceF32 ? 4
                       : lines.type <= kSourceF16 ? 2
                                                  : 1;
  return static_cast<const char*>(lines.data) + at * lines.stride * size;
}

}  // namespace

double* PeeledProduct::Side::At(const Lines& lines, int64_t line, int64_t k) const {
  return matrix + (lines.layout == Layout::kRows ? line * stride + k : k * stride + line);
}

/// Converts the operand into side->matrix (the same layout) and removes the parts that the budget does not hold.
bool PeeledProduct::Prepare(const Lines& lines, Team& team, Side* side) {
  const bool rows = lines.layout == Layout::kRows;
  side->stride = std::max<int64_t>(1, rows ? lines.count : lines.lines);
  double* matrix = side->matrix =
      lines.own != nullptr ? lines.own : side->copy.Need(lines.lines * lines.count + 1);
  double* limits = side->limits.Need(lines.lines + 1);
  side->peeled.clear();
  bool any = false;
  for (int64_t line = 0; line < lines.lines; ++line) {
    limits[line] = lines.norm[line] == 0 ? 0 : UnitOf(lines.norm[line]);
    any |= LowestBit(lines.low[line]) < limits[line];
  }
  const int64_t most = lines.lines * lines.count / kPeelShare;
  std::mutex mutex;
  const auto peel = [&](int64_t line, int64_t k, double* x, std::vector<Peeled>* list) {
    if (*x == 0 || IsMultiple(*x, limits[line])) return;
    list->push_back({.line = line, .k = k, .value = *x});
    *x = 0;
  };
  const auto work = [&](int64_t begin, int64_t end, int) {
    std::vector<Peeled> list;
    const auto convert = kernels_.convert[lines.type];
    for (int64_t at = begin; at < end; ++at) {
      double* x = matrix + at * side->stride;
      if (matrix != lines.own) convert(RowOf(lines, at), side->stride, x);
      if (!any) continue;
      if (rows) {
        if (LowestBit(lines.low[at]) < limits[at]) {
          for (int64_t k = 0; k < lines.count; ++k) peel(at, k, x + k, &list);
        }
      } else if (kernels_.any_low(x, lines.lines, limits)) {
        for (int64_t line = 0; line < lines.lines; ++line) peel(line, at, x + line, &list);
      }
      if (static_cast<int64_t>(list.size()) > most) break;
    }
    const std::lock_guard lock(mutex);
    side->peeled.insert(side->peeled.end(), list.begin(), list.end());
  };
  if (matrix == lines.own && !any) return true;
  const int64_t outer = rows ? lines.lines : lines.count;
  if (team.members() == 1)
    work(0, outer, 0);
  else
    team.For(outer, 16, work);
  std::ranges::sort(side->peeled, [](const Peeled& x, const Peeled& y) {
    return x.line != y.line ? x.line < y.line : x.k < y.k;
  });
  return static_cast<int64_t>(side->peeled.size()) <= most;
}

/// Restores the removed parts of a matrix that others read too.
void PeeledProduct::Restore(const Lines& lines, const Side& side) {
  for (const Peeled& entry : side.peeled) *side.At(lines, entry.line, entry.k) = entry.value;
}

bool PeeledProduct::Run(const Lines& a, const Lines& b, int64_t item, Team& team, Results::Store& store,
                        std::vector<int64_t>* refused) {
  item_ = item;
  const bool good_a = Prepare(a, team, &a_), good_b = good_a && Prepare(b, team, &b_);
  if (!good_b) {
    Restore(a, a_);
    if (good_a) Restore(b, b_);
    return false;
  }
  const int64_t m = a.lines, n = b.lines;
  double* hi = store.hi.data() + item * m * n;
  const bool peeled = !a_.peeled.empty() || !b_.peeled.empty();
  std::mutex mutex;
  const auto work = [&](int64_t begin, int64_t end, int) {
    blas_.Multiply(end - begin, n, a.count, a_.At(a, begin, 0), a_.stride, a.layout, b_.matrix, b_.stride,
                   b.layout, hi + begin * n, n);
    if (!peeled) return;
    std::vector<double> scratch;
    std::vector<int64_t> list;
    for (int64_t row = begin; row < end; ++row) Correct(a, b, row, store, &scratch, &list);
    const std::lock_guard lock(mutex);
    refused->insert(refused->end(), list.begin(), list.end());
  };
  if (team.members() == 1)
    work(0, m, 0);
  else
    team.For(m, 8, work);
  store.rules[static_cast<size_t>(item)] = peeled ? Rule::kExact : Rule::kExactHi;
  return true;
}

/// Adds row `row` of A''B' + A B'' to the dense product.
void PeeledProduct::Correct(const Lines& a, const Lines& b, int64_t row, Results::Store& store,
                            std::vector<double>* scratch, std::vector<int64_t>* refused) const {
  const int64_t n = b.lines, first = (item_ * a.lines + row) * n;
  double *hi = store.hi.data() + first, *lo = store.lo.data() + first;
  const auto less = [](const Peeled& x, int64_t line) { return x.line < line; };
  const auto begin = std::lower_bound(a_.peeled.begin(), a_.peeled.end(), row, less);
  const auto end = std::lower_bound(begin, a_.peeled.end(), row + 1, less);
  bool exact = true;
  scratch->assign(static_cast<size_t>(2 * n), 0);
  double *rest = scratch->data(), *other = rest + n;
  for (auto entry = begin; entry != end; ++entry) {
    const double* x = b_.At(b, 0, entry->k);
    if (b.layout == Layout::kRows) {
      for (int64_t j = 0; j < n; ++j) other[j] = *b_.At(b, j, entry->k);
      x = other;
    }
    exact = kernels_.add_exactly(entry->value, x, n, rest) && exact;
    *a_.At(a, row, entry->k) = entry->value;  // the GEMM has read A': from here on the row is A's
  }
  for (const Peeled& entry : b_.peeled) {
    const double product = *a_.At(a, row, entry.k) * entry.value;
    const TwoDoubles sum = TwoSum(rest[entry.line], product);
    rest[entry.line] = sum.hi;
    exact = exact && sum.lo == 0;
  }
  kernels_.two_sum(hi, lo, rest, n);
  if (exact) return;
  store.NeedMarks();
  for (int64_t j = 0; j < n; ++j) refused->push_back(first + j);
}

}  // namespace ulpscope::fast
