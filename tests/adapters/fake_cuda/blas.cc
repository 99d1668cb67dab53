// Stand-in for libcublas.so.13.
#include "tests/adapters/fake_cuda/arithmetic.h"

namespace {

struct Handle {
  int math_mode = 0;
};

int Run(void* handle, fake::Problem p, int compute) {
  if (handle == nullptr) return 1;
  // Long sums are split, and the parts stored in C's own type, unless that is forbidden: as on the hardware.
  const bool forbidden = (static_cast<Handle*>(handle)->math_mode & 16) != 0;
  p.parts = p.k >= 128 ? 4 : 1;
  p.narrow_partials = p.parts > 1 && !forbidden;
  fake::Log(fake::Text(p, compute));
  if (const int planted = fake::FromEnvironment("FAKE_CUBLAS_STATUS", 0); planted != 0) return planted;
  fake::Arithmetic how;
  if (!fake::Choose(compute, p.type_a, p.type_b, p.type_c, &how) || fake::IsFloat8(p.type_a))
    return fake::kNotSupported;
  return fake::Multiply(p, how);
}

}  // namespace

extern "C" {

int cublasCreate_v2(void** handle) {
  if (fake::FromEnvironment("FAKE_CUBLAS_CREATE", 0) != 0) return 1;
  *handle = new Handle();
  return 0;
}
int cublasDestroy_v2(void* handle) { return delete static_cast<Handle*>(handle), 0; }
int cublasGetVersion_v2(void*, int* version) { return *version = 130101, 0; }
int cublasSetMathMode(void* handle, int mode) { return static_cast<Handle*>(handle)->math_mode = mode, 0; }
int cublasGetMathMode(void* handle, int* mode) {
  *mode = fake::FromEnvironment("FAKE_CUBLAS_DEAF", 0) != 0 ? 0 : static_cast<Handle*>(handle)->math_mode;
  return 0;
}

#ifndef FAKE_WITHOUT_GEMM_EX
int cublasGemmEx(void* handle, int op_a, int op_b, int m, int n, int k, const void* alpha, const void* a,
                 int type_a, int lda, const void* b, int type_b, int ldb, const void* beta, void* c,
                 int type_c, int ldc, int compute, int algo) {
  if (algo != -1) return fake::kInvalidValue;
  fake::Problem p;
  p.op_a = op_a, p.op_b = op_b, p.m = m, p.n = n, p.k = k, p.lda = lda, p.ldb = ldb, p.ldc = ldc;
  p.type_a = type_a, p.type_b = type_b, p.type_c = type_c;
  p.a = a, p.b = b, p.c = c, p.alpha = alpha, p.beta = beta;
  return Run(handle, p, compute);
}
#endif

int cublasGemmStridedBatchedEx(void* handle, int op_a, int op_b, int m, int n, int k, const void* alpha,
                               const void* a, int type_a, int lda, long long stride_a, const void* b,
                               int type_b, int ldb, long long stride_b, const void* beta, void* c, int type_c,
                               int ldc, long long stride_c, int batch, int compute, int algo) {
  if (algo != -1) return fake::kInvalidValue;
  fake::Problem p;
  p.op_a = op_a, p.op_b = op_b, p.m = m, p.n = n, p.k = k, p.lda = lda, p.ldb = ldb, p.ldc = ldc;
  p.type_a = type_a, p.type_b = type_b, p.type_c = type_c;
  p.a = a, p.b = b, p.c = c, p.alpha = alpha, p.beta = beta;
  p.stride_a = stride_a, p.stride_b = stride_b, p.stride_c = stride_c, p.batch = batch;
  return Run(handle, p, compute);
}

}  // extern "C"
