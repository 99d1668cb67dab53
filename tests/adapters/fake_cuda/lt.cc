// Stand-in for libcublasLt.so.13: a heuristic that splits long sums, and algorithms that report the split.
#include <map>
#include <vector>

#include "tests/adapters/fake_cuda/arithmetic.h"

namespace {

/// A descriptor of any kind: attributes by number.
struct Attributes {
  std::map<int, std::vector<char>> values;
  int type = 0, compute = 0;
  uint64_t rows = 0, columns = 0;
  int64_t ld = 0;

  template <class T>
  T Get(int attribute, T otherwise) const {
    const auto found = values.find(attribute);
    if (found == values.end() || found->second.size() != sizeof(T)) return otherwise;
    T value;
    std::memcpy(&value, found->second.data(), sizeof value);
    return value;
  }
};

struct Algo {
  int32_t id = 21;
  uint32_t tile = 5;
  int32_t parts = 1;
  uint32_t reduction = 0;
  uint32_t stages = 3;
  uint32_t rest[11] = {};
};
static_assert(sizeof(Algo) == 64);

struct Heuristic {
  Algo algo;
  size_t workspace = 0;
  int state = 0;
  float waves = 1;
  int reserved[4] = {};
};

Attributes& Of(void* pointer) { return *static_cast<Attributes*>(pointer); }

int Create(void** made, Attributes attributes) {
  *made = new Attributes(std::move(attributes));
  return 0;
}
int Destroy(void* made) { return delete static_cast<Attributes*>(made), 0; }
int Set(void* made, int attribute, const void* value, size_t bytes) {
  const auto* begin = static_cast<const char*>(value);
  Of(made).values[attribute].assign(begin, begin + bytes);
  return 0;
}

size_t WorkspaceOf(const Attributes& c, const Algo& algo) {
  return algo.parts > 1 ? c.rows * c.columns * static_cast<size_t>(algo.parts) * 4 : 0;
}

fake::Problem ProblemOf(void* operation, void* a, void* b, void* c) {
  fake::Problem p;
  p.op_a = Of(operation).Get<int32_t>(3, 0), p.op_b = Of(operation).Get<int32_t>(4, 0);
  p.m = static_cast<int64_t>(Of(c).rows), p.n = static_cast<int64_t>(Of(c).columns);
  p.k = static_cast<int64_t>(p.op_a == 0 ? Of(a).columns : Of(a).rows);
  p.lda = Of(a).ld, p.ldb = Of(b).ld, p.ldc = Of(c).ld;
  p.type_a = Of(a).type, p.type_b = Of(b).type, p.type_c = Of(c).type;
  p.batch = Of(c).Get<int32_t>(5, 1);
  p.stride_a = Of(a).Get<int64_t>(6, 0), p.stride_b = Of(b).Get<int64_t>(6, 0),
  p.stride_c = Of(c).Get<int64_t>(6, 0);
  if (Of(operation).Get<int32_t>(7, 1) == 4) {
    p.bias = Of(operation).Get<const void*>(8, nullptr);
    p.type_bias = Of(operation).Get<int32_t>(26, p.type_c);
  }
  return p;
}

/// Layouts that go together, and the further conditions of float8: both operands along K, all sizes multiples
/// of 16.
int Acceptable(void* operation, void* a, void* b, void* c, fake::Arithmetic* how) {
  const fake::Problem p = ProblemOf(operation, a, b, c);
  const auto rows = [](void* matrix, int op) {
    return static_cast<int64_t>(op == 0 ? Of(matrix).rows : Of(matrix).columns);
  };
  if (rows(a, p.op_a) != p.m || rows(b, 1 - p.op_b) != p.n || rows(b, p.op_b) != p.k)
    return fake::kInvalidValue;
  if (!fake::Choose(Of(operation).compute, p.type_a, p.type_b, p.type_c, how)) return fake::kNotSupported;
  if (fake::IsFloat8(p.type_a) &&
      (p.op_a != 1 || p.op_b != 0 || p.m % 16 != 0 || p.n % 16 != 0 || p.k % 16 != 0))
    return fake::kNotSupported;
  if (Of(operation).Get<int8_t>(25, 0) != 0 && fake::IsFloat8(p.type_a)) how->accumulator_bits = 14;
  return 0;
}

}  // namespace

extern "C" {

int cublasLtCreate(void** handle) { return *handle = new int(0), 0; }
int cublasLtDestroy(void* handle) { return delete static_cast<int*>(handle), 0; }
size_t cublasLtGetVersion() { return 130101; }

int cublasLtMatmulDescCreate(void** made, int compute, int) {
  Attributes attributes;
  attributes.compute = compute;
  return Create(made, attributes);
}
int cublasLtMatmulDescDestroy(void* made) { return Destroy(made); }
int cublasLtMatmulDescSetAttribute(void* made, int attribute, const void* value, size_t bytes) {
  return Set(made, attribute, value, bytes);
}
int cublasLtMatmulDescGetAttribute(void* made, int attribute, void* value, size_t bytes, size_t* written) {
  const auto& found = Of(made).values[attribute];
  std::memcpy(value, found.data(), bytes < found.size() ? bytes : found.size());
  return *written = found.size(), 0;
}
int cublasLtMatrixLayoutCreate(void** made, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  Attributes attributes;
  attributes.type = type, attributes.rows = rows, attributes.columns = columns, attributes.ld = ld;
  return Create(made, attributes);
}
int cublasLtMatrixLayoutDestroy(void* made) { return Destroy(made); }
int cublasLtMatrixLayoutSetAttribute(void* made, int attribute, const void* value, size_t bytes) {
  return Set(made, attribute, value, bytes);
}
int cublasLtMatmulPreferenceCreate(void** made) { return Create(made, {}); }
int cublasLtMatmulPreferenceDestroy(void* made) { return Destroy(made); }
int cublasLtMatmulPreferenceSetAttribute(void* made, int attribute, const void* value, size_t bytes) {
  return Set(made, attribute, value, bytes);
}

int cublasLtMatmulAlgoGetHeuristic(void*, void* operation, void* a, void* b, void* c, void*, void* preference,
                                   int asked, Heuristic* results, int* found) {
  *found = 0;
  fake::Arithmetic how;
  if (const int status = Acceptable(operation, a, b, c, &how); status != 0) return status;
  const auto workspace = Of(preference).Get<uint64_t>(1, 0);
  const auto schemes = Of(preference).Get<uint32_t>(3, 7);
  std::vector<Heuristic> all;
  if (ProblemOf(operation, a, b, c).k >= 128) {
    Heuristic split;
    split.algo.parts = 4;
    split.algo.reduction = (schemes & 4) != 0 ? 4 : 2;
    split.workspace = WorkspaceOf(Of(c), split.algo);
    if (split.workspace <= workspace) all.push_back(split);
  }
  all.emplace_back();
  for (int i = 0; i < asked && i < static_cast<int>(all.size()); ++i)
    results[(*found)++] = all[static_cast<size_t>(i)];
  return 0;
}
int cublasLtMatmulAlgoConfigGetAttribute(const Algo* algo, int attribute, void* value, size_t bytes,
                                         size_t* written) {
  const uint32_t values[] = {static_cast<uint32_t>(algo->id),
                             algo->tile,
                             static_cast<uint32_t>(algo->parts),
                             algo->reduction,
                             0,
                             0,
                             algo->stages};
  if (bytes != 4 || attribute < 0 || attribute > 6) return fake::kInvalidValue;
  std::memcpy(value, &values[attribute], 4);
  return *written = 4, 0;
}
int cublasLtMatmulAlgoConfigSetAttribute(Algo* algo, int attribute, const void* value, size_t bytes) {
  if (bytes != 4) return fake::kInvalidValue;
  if (attribute == 2)
    std::memcpy(&algo->parts, value, 4);
  else if (attribute == 3)
    std::memcpy(&algo->reduction, value, 4);
  else
    return fake::kInvalidValue;
  return 0;
}
int cublasLtMatmulAlgoCheck(void*, void* operation, void* a, void* b, void* c, void*, const Algo* algo,
                            Heuristic* result) {
  fake::Arithmetic how;
  if (const int status = Acceptable(operation, a, b, c, &how); status != 0) return status;
  // Several parts have to be added somehow; one part cannot be.
  if ((algo->parts > 1) != (algo->reduction != 0) || algo->parts > 8) return fake::kNotSupported;
  *result = {};
  result->algo = *algo;
  result->workspace = WorkspaceOf(Of(c), *algo);
  return 0;
}

int cublasLtMatmul(void* handle, void* operation, const void* alpha, const void* a, void* layout_a,
                   const void* b, void* layout_b, const void* beta, const void* c, void* layout_c, void* d,
                   void* layout_d, const Algo* algo, void* workspace, size_t bytes, void*) {
  if (handle == nullptr || c != d || layout_c != layout_d) return fake::kInvalidValue;
  fake::Arithmetic how;
  if (const int status = Acceptable(operation, layout_a, layout_b, layout_c, &how); status != 0)
    return status;
  if (bytes < WorkspaceOf(Of(layout_c), *algo) || (bytes > 0 && workspace == nullptr))
    return fake::kInvalidValue;
  fake::Problem p = ProblemOf(operation, layout_a, layout_b, layout_c);
  p.a = a, p.b = b, p.c = d, p.alpha = alpha, p.beta = beta;
  p.parts = algo->parts;
  p.narrow_partials = algo->reduction == 4;
  fake::Log(fake::Text(p, Of(operation).compute));
  if (const int planted = fake::FromEnvironment("FAKE_CUBLAS_STATUS", 0); planted != 0) return planted;
  return fake::Multiply(p, how);
}

}  // extern "C"
