// Runs the tiers in order, item by item of the batch.
#include "oracles/fast/product.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "harness/base/check.h"
#include "harness/num/error_free.h"
#include "oracles/exact/real.h"
#include "oracles/fast/expansion.h"
#include "oracles/fast/float_env.h"
#include "oracles/fast/grid.h"
#include "oracles/fast/lines.h"
#include "oracles/fast/peel.h"
#include "oracles/fast/store.h"
#include "oracles/fast/superaccumulator.h"

namespace ulpscope::fast {
namespace {

/// Below this many multiply-adds a call of a BLAS costs more than it saves.
constexpr int64_t kLeastForBlas = 24 * 24 * 24;
/// Formats of at most 11 significand bits: two of them multiply exactly with room to spare.
bool IsNarrow(DType dtype) { return dtype != DType::kFloat64 && dtype != DType::kFloat32; }

bool IsPowerOfTwo(double x) {
  int exponent;
  return std::isfinite(x) && std::fabs(std::frexp(x, &exponent)) == 0.5;
}

/// Inside this range (or at zero) TwoProduct is exact and no step over- or underflows.
bool IsTame(double x) { return x == 0 || (std::fabs(x) > 0x1p-450 && std::fabs(x) < 0x1p450); }

}  // namespace

class Engine::Impl {
 public:
  explicit Impl(const Options& options)
      : options_(options),
        kernels_(options.kernels != nullptr ? *options.kernels : BestKernels()),
        team_(std::max(1, options.threads)),
        grid_(kernels_) {}

  bool Compute(const Product& product, Results* results) {
    if (!EnvironmentIsDefault()) return false;
    Results::Store& store = results->store();
    store.Start(product);
    const GridBounds bounds = BoundsOf(product.k);
    store.exact_from = bounds.exact_from;
    store.twice_delta = 2 * bounds.delta;
    if (team_.members() > 1 && product.batch >= 2 * team_.members()) {
      // Each member has buffers of its own.
      while (static_cast<int>(workers_.size()) < team_.members())
        workers_.push_back(std::make_unique<Impl>(Alone()));
      team_.For(product.batch, 1, [&](int64_t begin, int64_t end, int member) {
        for (int64_t item = begin; item < end; ++item)
          workers_[static_cast<size_t>(member)]->Item(product, item, store);
      });
    } else {
      for (int64_t item = 0; item < product.batch; ++item) Item(product, item, store);
    }
    if (product.c || product.alpha != 1) Epilogue(product, results);
    store.Count();
    return true;
  }

  double correction_seconds() const { return team_.correction_seconds(); }

 private:
  Options Alone() const {
    Options options = options_;
    options.threads = 1;
    return options;
  }

  bool EnvironmentIsDefault() {
    if (team_.members() == 1) return DefaultFloatEnvironment();
    std::atomic<bool> good{true};
    team_.For(team_.members(), 1, [&](int64_t, int64_t, int) {
      if (!DefaultFloatEnvironment()) good = false;
    });
    return good;
  }

  void Item(const Product& product, int64_t item, Results::Store& store) {
    const Matrix &a = product.a, &b = product.b;
    rows_.Set(kernels_, a, item * a.batch_stride, product.m, product.k, a.row_stride, a.column_stride);
    columns_.Set(kernels_, b, item * b.batch_stride, product.n, product.k, b.column_stride, b.row_stride);
    refused_.clear();
    rows_.Scan(team_);
    columns_.Scan(team_);
    if (options_.tiers == LastTier::kAccumulatorOnly) {
      for (int64_t i = 0; i < product.m * product.n; ++i)
        refused_.push_back(item * product.m * product.n + i);
    } else {
      if (!TryPeel(product, item, store)) {
        refused_.clear();
        grid_.Run(rows_, columns_, item, team_, store, &refused_);
      }
      RefuseWild(item);
    }
    if (!refused_.empty() || rows_.has_specials || columns_.has_specials) {
      store.NeedMarks();
      Specials(item, store);
      Accumulate(item, store);
    }
  }

  bool TryPeel(const Product& product, int64_t item, Results::Store& store) {
    if (!IsNarrow(product.a.dtype) || !IsNarrow(product.b.dtype) || options_.blas == BlasUse::kNever)
      return false;
    if (product.m * product.n * product.k < kLeastForBlas) return false;
    if (!peel_) {
      const Blas* blas = Blas::Get();
      if (blas == nullptr) {
        options_.blas = BlasUse::kNever;
        return false;
      }
      peel_ = std::make_unique<PeeledProduct>(kernels_, *blas);
    }
    return peel_->Run(rows_, columns_, item, team_, store, &refused_);
  }

  /// Elements of lines that the other tiers read as zeros.
  void RefuseWild(int64_t item) {
    if (!rows_.has_wild && !columns_.has_wild) return;
    const int64_t m = rows_.lines, n = columns_.lines;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const bool wild = (rows_.has_wild && rows_.wild_line[static_cast<size_t>(i)] != 0) ||
                          (columns_.has_wild && columns_.wild_line[static_cast<size_t>(j)] != 0);
        if (wild) refused_.push_back((item * m + i) * n + j);
      }
    }
    std::ranges::sort(refused_);
    refused_.erase(std::unique(refused_.begin(), refused_.end()), refused_.end());
  }

  /// NaN and infinities by the rules of IEEE 754: they do not depend on the finite terms, whose sum is a real
  /// number.
  void Specials(int64_t item, Results::Store& store) {
    if (!rows_.has_specials && !columns_.has_specials) return;
    const int64_t m = rows_.lines, n = columns_.lines;
    std::vector<double> sum(static_cast<size_t>(m * n), 0);
    std::vector<double> line(static_cast<size_t>(std::max<int64_t>({rows_.count, 1})));
    const auto each = [&](const Lines& own, const Lines& other, auto&& place) {
      if (own.specials.empty()) return;
      for (int64_t j = 0; j < other.lines; ++j) {
        other.Gather(j, line.data());
        for (const auto& special : own.specials)
          sum[place(special.line, j)] += special.value * line[static_cast<size_t>(special.k)];
      }
    };
    each(rows_, columns_, [&](int64_t i, int64_t j) { return static_cast<size_t>(i * n + j); });
    each(columns_, rows_, [&](int64_t j, int64_t i) { return static_cast<size_t>(i * n + j); });
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const bool special = (rows_.has_specials && rows_.special_line[static_cast<size_t>(i)] != 0) ||
                             (columns_.has_specials && columns_.special_line[static_cast<size_t>(j)] != 0);
        if (!special) continue;
        store.Set(
            (item * m + i) * n + j,
            {.hi = sum[static_cast<size_t>(i * n + j)], .lo = 0, .err = 0, .kind = ReferenceKind::kDomain},
            Tier::kSpecial);
      }
    }
  }

  /// P3: the remaining elements, one by one.
  void Accumulate(int64_t item, Results::Store& store) {
    std::erase_if(refused_, [&](int64_t element) { return store.MarkOf(element) == Mark::kDomain; });
    if (refused_.empty()) return;
    const int64_t n = columns_.lines, k = rows_.count, first = item * rows_.lines;
    // Whole columns are gathered once if most are needed.
    const bool many = static_cast<int64_t>(refused_.size()) > n;
    double* all = many ? gathered_.Need(n * k + 1) : nullptr;
    const auto gather = [&](int64_t begin, int64_t end, int) {
      for (int64_t j = begin; j < end; ++j) columns_.Gather(j, all + j * k);
    };
    if (many) team_.For(n, 8, gather);
    const auto work = [&](int64_t begin, int64_t end, int) {
      std::vector<double> row(static_cast<size_t>(k)), column(static_cast<size_t>(k));
      int64_t have = -1;
      Superaccumulator sum;
      for (int64_t at = begin; at < end; ++at) {
        const int64_t element = refused_[static_cast<size_t>(at)], i = element / n, j = element % n;
        if (i != have) rows_.Gather(i - first, row.data());
        have = i;
        if (!many) columns_.Gather(j, column.data());
        sum.Clear();
        sum.AddProducts(row.data(), many ? all + j * k : column.data(), k);
        store.Set(element, sum.ToReference(), Tier::kAccumulated);
      }
    };
    team_.For(static_cast<int64_t>(refused_.size()), 1, work);
  }

  // ---- alpha, beta, c ----

  void Epilogue(const Product& product, Results* results) {
    Results::Store& store = results->store();
    store.NeedMarks();
    team_.For(product.batch * product.m, 4, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t column = 0; column < product.n; ++column) {
          const int64_t element = row * product.n + column;
          const double c = product.c ? Addend(product, row, column) : 0.0;
          const auto quick = AddQuickly(product, results->At(element), c);
          if (quick) {
            store.Set(element, *quick, store.tiers[static_cast<size_t>(element)]);
          } else {
            const Tier tier = store.tiers[static_cast<size_t>(element)];
            store.Set(element, AddExactly(product, row, column, c),
                      tier == Tier::kSpecial ? tier : Tier::kAccumulated);
          }
        }
      }
    });
  }

  static double Addend(const Product& product, int64_t row, int64_t column) {
    const Matrix& c = *product.c;
    return ElementAt(
        c, row / product.m * c.batch_stride + row % product.m * c.row_stride + column * c.column_stride);
  }

  static std::optional<Reference> AddQuickly(const Product& product, const Reference& dot, double c) {
    const bool exact = dot.kind == ReferenceKind::kExact;
    if (!exact && dot.kind != ReferenceKind::kCertified) return std::nullopt;
    if (!IsTame(dot.hi) || !IsTame(dot.lo) || !IsTame(c) || !IsTame(product.alpha) || !IsTame(product.beta))
      return std::nullopt;
    double parts[6];
    size_t count = 0;
    const auto add = [&](double factor, double x) {
      if (factor == 1) {
        parts[count++] = x;
        return;
      }
      const TwoDoubles two = TwoProduct(factor, x);
      parts[count++] = two.hi;
      if (!IsPowerOfTwo(factor)) parts[count++] = two.lo;
    };
    add(product.alpha, dot.hi);
    add(product.alpha, dot.lo);
    if (product.c) add(product.beta, c);
    return RoundSum(std::span(parts, count), exact ? 0 : std::fabs(product.alpha) * dot.err * (1 + 0x1p-50));
  }

  /// By the definition of truth's own arithmetic, from an exact sum.
  Reference AddExactly(const Product& product, int64_t row, int64_t column, double c) const {
    const Matrix &a = product.a, &b = product.b;
    const int64_t item = row / product.m;
    double domain = 0;
    bool special = false;
    Superaccumulator sum;
    for (int64_t k = 0; k < product.k; ++k) {
      const double x =
          ElementAt(a, item * a.batch_stride + row % product.m * a.row_stride + k * a.column_stride);
      const double y = ElementAt(b, item * b.batch_stride + k * b.row_stride + column * b.column_stride);
      if (std::isfinite(x) && std::isfinite(y)) {
        sum.Add(x, y);
      } else {
        special = true;
        domain += x * y;
      }
    }
    constexpr int64_t kBits = 256;  // products and sums of points stay points: no precision is asked of it
    Real value = special ? DomainValue(domain) : Real::From(sum.Value());
    if (product.alpha != 1) value = ulpscope::Multiply(Real::From(product.alpha), value, kBits);
    if (product.c)
      value = ulpscope::Add(value, ulpscope::Multiply(Real::From(product.beta), Real::From(c), kBits), kBits);
    return value.ToReference();
  }

  Options options_;
  const Kernels& kernels_;
  Team team_;
  std::vector<std::unique_ptr<Impl>> workers_;
  GridProduct grid_;
  std::unique_ptr<PeeledProduct> peel_;
  Lines rows_, columns_;
  std::vector<int64_t> refused_;
  Buffer<double> gathered_;
};

Engine::Engine(Options options) : impl_(std::make_unique<Impl>(options)) {}
Engine::~Engine() = default;

bool Engine::Compute(const Product& product, Results* results) { return impl_->Compute(product, results); }

double Engine::correction_seconds() const { return impl_->correction_seconds(); }

}  // namespace ulpscope::fast
