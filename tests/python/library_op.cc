// Two products as a user registers them with PyTorch: one keeps its sum in float32, one in bfloat16 (test_library_op.py).
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

namespace {

// x[m,k] w[k,n] -> [m,n], all bfloat16; Total is what the sum over k is kept in.
template <typename Total>
at::Tensor Product(const at::Tensor& x, const at::Tensor& w) {
  const auto a = x.accessor<at::BFloat16, 2>(), b = w.accessor<at::BFloat16, 2>();
  at::Tensor y = at::empty({x.size(0), w.size(1)}, x.options());
  auto c = y.accessor<at::BFloat16, 2>();
  for (int64_t i = 0; i < y.size(0); ++i) {
    for (int64_t j = 0; j < y.size(1); ++j) {
      Total total = 0;
      for (int64_t k = 0; k < x.size(1); ++k) {
        total += static_cast<Total>(static_cast<float>(a[i][k]) * static_cast<float>(b[k][j]));
      }
      c[i][j] = static_cast<at::BFloat16>(total);
    }
  }
  return y;
}

}  // namespace

TORCH_LIBRARY(ulpscope_own, m) {
  m.def("wide(Tensor x, Tensor w) -> Tensor", Product<float>);
  m.def("narrow(Tensor x, Tensor w) -> Tensor", Product<at::BFloat16>);
}
