// Benches of the certified fast path. All ratios are medians of interleaved rounds, in CPU time (of several
// threads: of the longest part between two meetings, so that a busy machine does no harm), with OpenBLAS's
// dgemm of the same size in the same rounds as the unit; conversion, scan, proof and fallback are part of the
// oracle's time.
//
//   bench [--quick] [GOOGLE_BENCHMARK_OPTION...]
#include <benchmark/benchmark.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "harness/num/tensor_data.h"
#include "oracles/exact/real.h"
#include "oracles/fast/agree.h"
#include "oracles/fast/blas.h"
#include "oracles/fast/float_env.h"
#include "oracles/fast/product.h"
#include "oracles/fast/self_test.h"
#include "oracles/fast/team.h"
#include "tests/bench/table.h"

namespace ulpscope::bench {
namespace {

using fast::Engine;
using fast::Product;
using fast::Results;

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double Timed(const std::function<void()>& work) {
  const double begin = CpuSeconds();
  work();
  return CpuSeconds() - begin;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

enum class Data { kNormal, kCancelling, kFullRange };

std::vector<double> Normal(int64_t count, uint64_t seed) {
  std::mt19937_64 bits(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) value = normal(bits);
  return values;
}

TensorData Into(DType dtype, const std::vector<double>& values) {
  TensorData data = TensorData::Zeros(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i)
    data.Set(static_cast<int64_t>(i), RoundTo(values[i], *FormatOf(dtype)));
  return data;
}

/// batch products of two n x n matrices, the doubles for the BLAS beside them.
struct Problem {
  int64_t n = 0, batch = 1;
  std::vector<double> a, b, c;
  TensorData typed_a, typed_b;
  Product product;
};

std::unique_ptr<Problem> Make(DType dtype, int64_t n, int64_t batch, Data data) {
  auto p = std::make_unique<Problem>();
  p->n = n;
  p->batch = batch;
  p->a = Normal(batch * n * n, 1);
  p->b = Normal(batch * n * n, 2);
  p->c.resize(static_cast<size_t>(batch * n * n));
  for (int64_t i = 0; i < n && data == Data::kCancelling; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      if (j >= n / 2) p->a[static_cast<size_t>(i * n + j)] = -p->a[static_cast<size_t>(i * n + j - n / 2)];
      if (i >= n / 2) p->b[static_cast<size_t>(i * n + j)] = p->b[static_cast<size_t>((i - n / 2) * n + j)];
    }
  }
  if (data == Data::kFullRange) {
    std::mt19937_64 bits(3);
    for (auto* values : {&p->a, &p->b}) {
      for (double& value : *values) value = std::ldexp(value, static_cast<int>(bits() % 2000) - 1050);
    }
  }
  p->typed_a = Into(dtype, p->a);
  p->typed_b = Into(dtype, p->b);
  const fast::Matrix shape{
      .data = nullptr, .dtype = dtype, .batch_stride = n * n, .row_stride = n, .column_stride = 1};
  p->product = {
      .batch = batch, .m = n, .n = n, .k = n, .a = shape, .b = shape, .c = {}, .alpha = 1, .beta = 1};
  p->product.a.data = p->typed_a.bytes.data();
  p->product.b.data = p->typed_b.bytes.data();
  return p;
}

/// The unit: the same products by OpenBLAS, on as many threads.
void Dgemm(Problem& p, fast::Team& team) {
  const fast::Blas& blas = *fast::Blas::Get();
  const int64_t n = p.n, rows = p.batch == 1 ? n : p.batch;
  team.For(rows, p.batch == 1 ? 8 : 1, [&](int64_t begin, int64_t end, int) {
    if (p.batch == 1) {
      blas.Multiply(end - begin, n, n, p.a.data() + begin * n, n, fast::Layout::kRows, p.b.data(), n,
                    fast::Layout::kColumns, p.c.data() + begin * n, n);
      return;
    }
    for (int64_t item = begin; item < end; ++item)
      blas.Multiply(n, n, n, p.a.data() + item * n * n, n, fast::Layout::kRows, p.b.data() + item * n * n, n,
                    fast::Layout::kColumns, p.c.data() + item * n * n, n);
  });
}

void Check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "bench: %s\n", what);
  std::exit(1);
}

struct RatioRow {
  const char* what;
  DType dtype;
  int64_t n, batch;
  int threads;
  Data data;
  double gate, aim;
};

int g_scale = 1;  ///< --quick divides the rounds

/// Elements of the normal data that fell back, over all sizes and types.
struct Fallen {
  int64_t elements = 0, fallen = 0;
};
std::map<DType, Fallen> g_fallen;
std::map<DType, double> g_seconds_per_multiply_add;  ///< at 1024, one thread

void Ratio(benchmark::State& state, const RatioRow& row) {
  const auto p = Make(row.dtype, row.n, row.batch, row.data);
  fast::Team team(row.threads);
  Engine engine({.threads = row.threads});
  Results results;
  const auto oracle = [&] {
    Check(engine.Compute(p->product, &results), "the floating-point environment is not the default one");
  };
  oracle();
  Dgemm(*p, team);
  std::vector<double> ours, theirs;
  for (auto _ : state) {
    double before = team.correction_seconds();
    theirs.push_back(Timed([&] { Dgemm(*p, team); }) + team.correction_seconds() - before);
    before = engine.correction_seconds();
    ours.push_back(Timed(oracle) + engine.correction_seconds() - before);
    state.SetIterationTime(ours.back());
  }
  const double unit = Median(theirs), ratio = Median(ours) / unit;
  state.counters["ratio"] = ratio;
  state.counters["dgemm_ns_per_mac"] = unit * 1e9 / static_cast<double>(row.batch * row.n * row.n * row.n);
  const auto& counts = results.counts();
  const int64_t fallen = counts.deep + counts.accumulated;
  if (row.data == Data::kNormal && row.threads == 1) {
    g_fallen[row.dtype].elements += results.size();
    g_fallen[row.dtype].fallen += fallen;
  }
  const double macs = static_cast<double>(row.batch * row.n * row.n * row.n);
  if (row.n == 1024 && row.threads == 1) g_seconds_per_multiply_add[row.dtype] = Median(ours) / macs;
  std::string note = "dgemm " + std::to_string(unit * 1e9 / macs).substr(0, 6) + " ns";
  if (row.data != Data::kNormal) {
    Check(fallen > results.size() / 10 * 9, "data that was to fall back did not");
    note +=
        ", " + std::to_string(counts.deep) + " deep, " + std::to_string(counts.accumulated) + " accumulated";
  }
  const std::string size =
      row.batch == 1 ? std::to_string(row.n) : std::to_string(row.batch) + " x " + std::to_string(row.n);
  Table::Instance().Add({.what = std::string(row.what) + " " + std::string(Name(row.dtype)),
                         .size = size,
                         .threads = row.threads,
                         .figure = ratio,
                         .gate = row.gate,
                         .aim = row.aim,
                         .sense = Sense::kAtMost,
                         .note = note});
}

// ---- tiny products, against the loop that one would write ----

void PlainLoop(const Problem& p, double* c) {
  const int64_t n = p.n;
  for (int64_t item = 0; item < p.batch; ++item) {
    const double *a = p.a.data() + item * n * n, *b = p.b.data() + item * n * n;
    double* to = c + item * n * n;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
        to[i * n + j] = sum;
      }
    }
  }
}

void Tiny(benchmark::State& state, DType dtype) {
  const auto p = Make(dtype, 8, 10000, Data::kNormal);
  Engine engine;
  Results results;
  std::vector<double> ours, theirs;
  for (auto _ : state) {
    theirs.push_back(Timed([&] {
      PlainLoop(*p, p->c.data());
      benchmark::ClobberMemory();
    }));
    ours.push_back(Timed([&] { Check(engine.Compute(p->product, &results), "refused"); }));
    state.SetIterationTime(ours.back());
  }
  const double ratio = Median(ours) / Median(theirs);
  state.counters["ratio"] = ratio;
  const std::string note = "loop " + std::to_string(Median(theirs) * 1e2).substr(0, 6) + " us, oracle " +
                           std::to_string(Median(ours) * 1e2).substr(0, 6) + " us each";
  Table::Instance().Add({.what = "batch against a float64 loop " + std::string(Name(dtype)),
                         .size = "10000 x 8",
                         .threads = 1,
                         .figure = ratio,
                         .gate = 20,
                         .aim = 5,
                         .sense = Sense::kAtMost,
                         .note = note});
}

// ---- Boost ----

using Quad = boost::multiprecision::number<
    boost::multiprecision::cpp_bin_float<113, boost::multiprecision::digit_base_2>,
    boost::multiprecision::et_off>;

/// Sampled by rows: all of it would take a minute.
void SpeedUp(benchmark::State& state, int64_t n) {
  const auto p = Make(DType::kFloat64, n, 1, Data::kNormal);
  const std::vector<Quad> a(p->a.begin(), p->a.begin() + n), b(p->b.begin(), p->b.end());
  int64_t elements = 0;
  double seconds = 0;
  for (auto _ : state) {
    const double spent = Timed([&] {
      for (int64_t j = 0; j < n; ++j) {
        Quad sum = 0;
        for (int64_t k = 0; k < n; ++k) sum += a[static_cast<size_t>(k)] * b[static_cast<size_t>(k * n + j)];
        p->c[static_cast<size_t>(j)] = sum.convert_to<double>();
        ++elements;
      }
    });
    seconds += spent;
    state.SetIterationTime(spent);
  }
  const double boost_time = seconds / static_cast<double>(elements * n);
  for (const DType dtype : {DType::kBfloat16, DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    const auto own = g_seconds_per_multiply_add.find(dtype);
    if (own == g_seconds_per_multiply_add.end()) continue;
    Table::Instance().Add(
        {.what = "speed-up over cpp_bin_float<113> " + std::string(Name(dtype)),
         .size = std::to_string(n),
         .threads = 1,
         .figure = boost_time / own->second,
         .gate = 800,
         .aim = 2000,
         .sense = Sense::kAtLeast,
         .note = "Boost " + std::to_string(boost_time * 1e9).substr(0, 5) + " ns per multiply-add"});
  }
}

// ---- what is certified must be right ----

Real Exact(const Problem& p, int64_t element) {
  const int64_t i = element / p.n, j = element % p.n;
  Real sum = Real::From(0.0);
  for (int64_t k = 0; k < p.n; ++k)
    sum =
        Add(sum, Multiply(Real::From(p.typed_a.At(i * p.n + k)), Real::From(p.typed_b.At(k * p.n + j)), 256),
            256);
  return sum;
}

void Wrong(benchmark::State& state, bool quick) {
  int64_t compared = 0, wrong = 0;
  for (auto _ : state) {
    for (const DType dtype : {DType::kBfloat16, DType::kFloat16, DType::kFloat32, DType::kFloat64,
                              DType::kFloat8E4m3fn, DType::kFloat8E5m2}) {
      for (const Data data : {Data::kNormal, Data::kCancelling, Data::kFullRange}) {
        for (const int64_t n : {int64_t{64}, int64_t{quick ? 256 : 1024}}) {
          const auto p = Make(dtype, n, 1, data);
          Engine engine;
          Results results;
          Check(engine.Compute(p->product, &results), "refused");
          const int64_t step = n == 64 ? 1 : std::max<int64_t>(1, n * n * n / (quick ? 300000 : 1000000) | 1);
          for (int64_t element = 0; element < results.size(); element += step) {
            ++compared;
            wrong += fast::Agree(results.At(element), Exact(*p, element).ToReference()) ? 0 : 1;
          }
        }
      }
    }
    const std::string self_test = fast::SelfTest({});
    if (!self_test.empty()) ++wrong;
  }
  Check(compared > 0, "nothing was compared");
  Table::Instance().Add({.what = "wrong results (of " + std::to_string(compared) + " against Boost)",
                         .size = "",
                         .threads = 1,
                         .figure = static_cast<double>(wrong),
                         .gate = 0,
                         .aim = 0,
                         .sense = Sense::kAtMost,
                         .note = ""});
  for (const auto& [dtype, fallen] : g_fallen) {
    const double share = static_cast<double>(fallen.fallen) / static_cast<double>(fallen.elements);
    Table::Instance().Add({.what = "fallback share on N(0,1) " + std::string(Name(dtype)),
                           .size = "",
                           .threads = 1,
                           .figure = share,
                           .gate = 1e-5,
                           .aim = 2e-6,
                           .sense = Sense::kAtMost,
                           .note = std::to_string(fallen.fallen) + " of " + std::to_string(fallen.elements)});
  }
}

void Register(bool quick) {
  std::vector<RatioRow> rows;
  std::vector<int64_t> sizes{256, 512};
  if (!quick) sizes.insert(sizes.end(), {1024, 2048});
  for (const DType dtype : {DType::kBfloat16, DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    const bool narrow = dtype == DType::kBfloat16 || dtype == DType::kFloat16;
    for (const int threads : {1, 2}) {
      // At this size threads share a batch.
      rows.push_back({.what = "exact or certified",
                      .dtype = dtype,
                      .n = 64,
                      .batch = threads == 1 ? 1 : 64,
                      .threads = threads,
                      .data = Data::kNormal,
                      .gate = narrow ? 2.0 : 4.5,
                      .aim = narrow ? 1.3 : 3.0});
      for (const int64_t n : sizes)
        rows.push_back({.what = "exact or certified",
                        .dtype = dtype,
                        .n = n,
                        .batch = 1,
                        .threads = threads,
                        .data = Data::kNormal,
                        .gate = narrow ? 1.35 : 2.75,
                        .aim = narrow ? 1.1 : 2.0});
    }
  }
  rows.push_back({.what = "everything falls back, cancelling",
                  .dtype = DType::kFloat64,
                  .n = 256,
                  .batch = 1,
                  .threads = 1,
                  .data = Data::kCancelling,
                  .gate = 300,
                  .aim = 10});
  rows.push_back({.what = "everything falls back, full range",
                  .dtype = DType::kFloat64,
                  .n = 256,
                  .batch = 1,
                  .threads = 1,
                  .data = Data::kFullRange,
                  .gate = 300,
                  .aim = 10});
  for (const RatioRow& row : rows) {
    const std::string name = std::string(row.data == Data::kNormal       ? "ratio/"
                                         : row.data == Data::kCancelling ? "cancelling/"
                                                                         : "full_range/") +
                             std::string(Name(row.dtype)) + "/" + std::to_string(row.n) +
                             "/threads:" + std::to_string(row.threads);
    const int64_t work = row.batch * row.n * row.n * row.n;
    const int rounds = static_cast<int>(std::clamp<int64_t>((int64_t{1} << 31) / work, 5, 301)) /
                           (row.data == Data::kFullRange ? 10 : 1) / g_scale |
                       1;
    benchmark::RegisterBenchmark(name.c_str(), [row](benchmark::State& state) { Ratio(state, row); })
        ->Iterations(std::max(3, rounds))
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  }
  for (const DType dtype : {DType::kBfloat16, DType::kFloat32, DType::kFloat64})
    benchmark::RegisterBenchmark(("batch_of_8x8x8/" + std::string(Name(dtype))).c_str(),
                                 [dtype](benchmark::State& state) { Tiny(state, dtype); })
        ->Iterations(21)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  if (!quick)
    benchmark::RegisterBenchmark("cpp_bin_float_113/1024",
                                 [](benchmark::State& state) { SpeedUp(state, 1024); })
        ->Iterations(20)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("agreement_with_boost",
                               [quick](benchmark::State& state) { Wrong(state, quick); })
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
}

/// OpenBLAS reads its environment when it is loaded: start again with the one that makes the unit what it
/// should be.
void Restart(char** argv) {
  const char* core = fast::KernelsOf(fast::Level::kAvx512) != nullptr ? "SkylakeX" : "Haswell";
  const auto is = [](const char* name, const char* value) {
    const char* now = std::getenv(name);
    return now != nullptr && std::strcmp(now, value) == 0;
  };
  if (is("OPENBLAS_CORETYPE", core) && is("OPENBLAS_NUM_THREADS", "1") &&
      std::getenv("OPENBLAS_L2_SIZE") == nullptr)
    return;
  setenv("OPENBLAS_CORETYPE", core, 1);
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  unsetenv("OPENBLAS_L2_SIZE");
  execv("/proc/self/exe", argv);
  std::perror("bench: cannot start itself again");
  std::exit(4);
}

}  // namespace

int Main(int argc, char** argv) {
  Restart(argv);
  bool quick = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") != 0) continue;
    quick = true;
    std::copy(argv + i + 1, argv + argc + 1, argv + i);
    --argc;
    --i;
  }
  g_scale = quick ? 3 : 1;
  Check(fast::Blas::Get() != nullptr, "OpenBLAS cannot be bound: there is no unit to measure in");
  const std::string core = fast::Blas::Get()->CoreName();
  std::printf("BLAS core %s, kernels %s, %s\n", core.c_str(), fast::BestKernels().name,
              fast::DescribeFloatEnvironment().c_str());
  Register(quick);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 4;
  benchmark::RunSpecifiedBenchmarks();
  std::printf("\nBLAS core %s, kernels %s, %s\n", core.c_str(), fast::BestKernels().name,
              fast::DescribeFloatEnvironment().c_str());
  const int fallen = Table::Instance().Print();
  return Table::Instance().size() == 0 || fallen > 0 ? 1 : 0;
}

}  // namespace ulpscope::bench

int main(int argc, char** argv) { return ulpscope::bench::Main(argc, argv); }
