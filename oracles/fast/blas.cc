// Binds OpenBLAS.
#include "oracles/fast/blas.h"

#include <dlfcn.h>

#include <cstdlib>
#include <optional>

namespace ulpscope::fast {
namespace {

// Full paths first: the alternatives system may have given the plain name to another BLAS.
constexpr const char* kFiles[] = {
    "/usr/lib/x86_64-linux-gnu/openblas-serial/libopenblas.so.0",
    "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0",
    "/usr/lib/aarch64-linux-gnu/openblas-serial/libopenblas.so.0",
    "/usr/lib/aarch64-linux-gnu/openblas-pthread/libopenblas.so.0",
    "libopenblas.so.0",
};

// cblas.h's enumerators.
constexpr int kRowMajor = 101, kNoTrans = 111, kTrans = 112;

void* Open() {
  for (const char* file : kFiles) {
    if (void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

}  // namespace

const Blas* Blas::Get() {
  static const Blas* const kBound = []() -> const Blas* {
    void* library = Open();
    if (library == nullptr) return nullptr;
    static Blas blas;
    blas.gemm_ = reinterpret_cast<Gemm>(dlsym(library, "cblas_dgemm"));
    blas.core_name_ = reinterpret_cast<char* (*)()>(dlsym(library, "openblas_get_corename"));
    const auto set_threads = reinterpret_cast<void (*)(int)>(dlsym(library, "openblas_set_num_threads"));
    if (blas.gemm_ == nullptr || set_threads == nullptr) return nullptr;
    set_threads(1);
    return &blas;
  }();
  return kBound;
}

const Blas* Blas::GetWithoutThreads() {
  constexpr const char* kThreads = "OPENBLAS_NUM_THREADS";
  const char* set = std::getenv(kThreads);
  const std::optional<std::string> before = set == nullptr ? std::nullopt : std::optional<std::string>(set);
  setenv(kThreads, "1", 1);
  const Blas* blas = Get();
  // Adapters inherit the environment as it was.
  if (before)
    setenv(kThreads, before->c_str(), 1);
  else
    unsetenv(kThreads);
  return blas;
}

void Blas::Multiply(int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, Layout layout_a,
                    const double* b, int64_t ldb, Layout layout_b, double* c, int64_t ldc) const {
  const auto whole = [](int64_t x) { return static_cast<int>(x); };
  gemm_(kRowMajor, layout_a == Layout::kRows ? kNoTrans : kTrans,
        layout_b == Layout::kRows ? kTrans : kNoTrans, whole(m), whole(n), whole(k), 1.0, a, whole(lda), b,
        whole(ldb), 0.0, c, whole(ldc));
}

std::string Blas::CoreName() const { return core_name_ == nullptr ? "unknown" : core_name_(); }

}  // namespace ulpscope::fast
