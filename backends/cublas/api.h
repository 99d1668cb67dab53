// The part of CUDA and cuBLAS that this adapter calls: constants and functions, declared here by hand.
//
// The adapter has to build where no CUDA is (the headers and libraries are half a gigabyte) and to run where
// some CUDA is, whose version is not known beforehand. So it needs none of the headers: the libraries are
// opened when it runs, their functions looked up by name, and the dozen constants that go over that border
// stand here. They are part of the libraries' ABI and the same in CUDA 12 and 13; check_headers.cc compares
// them with the real headers wherever a build finds those.
//
// Source: NVIDIA, cuda_runtime_api.h, library_types.h, cublas_api.h and cublasLt.h of CUDA 13.0.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ulpscope::cublas {

// cudaDataType
inline constexpr int kR32F = 0, kR64F = 1, kR16F = 2, kR16BF = 14, kR8FE4M3 = 28, kR8FE5M2 = 29;

// cudaMemcpyKind, cudaDeviceAttr, cudaError_t
inline constexpr int kHostToDevice = 1, kDeviceToHost = 2;
inline constexpr int kAttributeMajor = 75, kAttributeMinor = 76;
inline constexpr int kErrorMemoryAllocation = 2;

// cublasStatus_t
inline constexpr int kSuccess = 0, kNotInitialized = 1, kAllocFailed = 3, kInvalidValue = 7,
                     kArchMismatch = 8, kMappingError = 11, kExecutionFailed = 13, kInternalError = 14,
                     kNotSupported = 15, kLicenseError = 16;

// cublasOperation_t, cublasMath_t, cublasGemmAlgo_t
inline constexpr int kOpN = 0, kOpT = 1;
inline constexpr int kDefaultMath = 0, kDisallowReducedPrecisionReduction = 16;
inline constexpr int kGemmDefault = -1;

// cublasComputeType_t
inline constexpr int kCompute16F = 64, kCompute16FPedantic = 65, kCompute32F = 68, kCompute32FPedantic = 69,
                     kCompute64F = 70, kCompute64FPedantic = 71, kCompute32FFast16F = 74,
                     kCompute32FFast16BF = 75, kCompute32FFastTf32 = 77, kCompute32FEmulated16BFx9 = 78,
                     kCompute64FEmulatedFixedPoint = 79;

// cublasLtMatmulDescAttributes_t, cublasLtEpilogue_t
inline constexpr int kDescTransA = 3, kDescTransB = 4, kDescEpilogue = 7, kDescBiasPointer = 8,
                     kDescFastAccum = 25, kDescBiasDataType = 26;
inline constexpr int kEpilogueBias = 4;

// cublasLtMatrixLayoutAttribute_t
inline constexpr int kLayoutBatchCount = 5, kLayoutStridedBatchOffset = 6;

// cublasLtMatmulPreferenceAttributes_t
inline constexpr int kPreferenceMaxWorkspaceBytes = 1, kPreferenceReductionSchemeMask = 3;

// cublasLtMatmulAlgoConfigAttributes_t
inline constexpr int kAlgoId = 0, kAlgoTileId = 1, kAlgoSplitKNum = 2, kAlgoReductionScheme = 3,
                     kAlgoStagesId = 6;

// cublasLtReductionScheme_t
inline constexpr uint32_t kReductionNone = 0, kReductionInPlace = 1, kReductionComputeType = 2,
                          kReductionOutputType = 4;

/// cublasLtMatmulAlgo_t
struct LtAlgo {
  uint64_t data[8] = {};
};

/// cublasLtMatmulHeuristicResult_t
struct LtHeuristic {
  LtAlgo algo;
  size_t workspace_bytes = 0;
  int state = kSuccess;
  float waves = 0;
  int reserved[4] = {};
};

using Handle = void*;

// clang-format off
/// name, result and arguments, by library. Handles and descriptors are pointers that the library owns.
#define ULPSCOPE_CUDA_DRIVER(X)                                                                                   \
  X(cuInit, int(unsigned))                                                                                        \
  X(cuDeviceGetName, int(char*, int, int))                                                                        \
  X(cuDriverGetVersion, int(int*))

#define ULPSCOPE_CUDA_RUNTIME(X)                                                                                  \
  X(cudaGetDeviceCount, int(int*))                                                                                \
  X(cudaSetDevice, int(int))                                                                                      \
  X(cudaDeviceGetAttribute, int(int*, int, int))                                                                  \
  X(cudaRuntimeGetVersion, int(int*))                                                                             \
  X(cudaMalloc, int(void**, size_t))                                                                              \
  X(cudaFree, int(void*))                                                                                         \
  X(cudaMemcpy, int(void*, const void*, size_t, int))                                                             \
  X(cudaDeviceSynchronize, int())                                                                                 \
  X(cudaGetErrorString, const char*(int))

#define ULPSCOPE_CUBLAS(X)                                                                                        \
  X(cublasCreate_v2, int(Handle*))                                                                                \
  X(cublasDestroy_v2, int(Handle))                                                                                \
  X(cublasGetVersion_v2, int(Handle, int*))                                                                       \
  X(cublasSetMathMode, int(Handle, int))                                                                          \
  X(cublasGetMathMode, int(Handle, int*))                                                                         \
  X(cublasGemmEx, int(Handle, int, int, int, int, int, const void*, const void*, int, int, const void*, int, int, \
                      const void*, void*, int, int, int, int))                                                    \
  X(cublasGemmStridedBatchedEx, int(Handle, int, int, int, int, int, const void*, const void*, int, int,          \
                                    long long, const void*, int, int, long long, const void*, void*, int, int,    \
                                    long long, int, int, int))

#define ULPSCOPE_CUBLASLT(X)                                                                                      \
  X(cublasLtCreate, int(Handle*))                                                                                 \
  X(cublasLtDestroy, int(Handle))                                                                                 \
  X(cublasLtGetVersion, size_t())                                                                                 \
  X(cublasLtMatmulDescCreate, int(void**, int, int))                                                              \
  X(cublasLtMatmulDescDestroy, int(void*))                                                                        \
  X(cublasLtMatmulDescSetAttribute, int(void*, int, const void*, size_t))                                         \
  X(cublasLtMatmulDescGetAttribute, int(void*, int, void*, size_t, size_t*))                                      \
  X(cublasLtMatrixLayoutCreate, int(void**, int, uint64_t, uint64_t, int64_t))                                    \
  X(cublasLtMatrixLayoutDestroy, int(void*))                                                                      \
  X(cublasLtMatrixLayoutSetAttribute, int(void*, int, const void*, size_t))                                       \
  X(cublasLtMatmulPreferenceCreate, int(void**))                                                                  \
  X(cublasLtMatmulPreferenceDestroy, int(void*))                                                                  \
  X(cublasLtMatmulPreferenceSetAttribute, int(void*, int, const void*, size_t))                                   \
  X(cublasLtMatmulAlgoGetHeuristic, int(Handle, void*, void*, void*, void*, void*, void*, int, LtHeuristic*, int*)) \
  X(cublasLtMatmulAlgoConfigGetAttribute, int(const LtAlgo*, int, void*, size_t, size_t*))                        \
  X(cublasLtMatmulAlgoConfigSetAttribute, int(LtAlgo*, int, const void*, size_t))                                 \
  X(cublasLtMatmulAlgoCheck, int(Handle, void*, void*, void*, void*, void*, const LtAlgo*, LtHeuristic*))         \
  X(cublasLtMatmul, int(Handle, void*, const void*, const void*, void*, const void*, void*, const void*,          \
                        const void*, void*, void*, void*, const LtAlgo*, void*, size_t, void*))
// clang-format on

template <class Signature>
struct PointerTo {
  using Type = Signature*;
};

/// Every function, looked up; none is null once Load has succeeded.
struct Api {
#define ULPSCOPE_MEMBER(name, ...) PointerTo<__VA_ARGS__>::Type name = nullptr;
  ULPSCOPE_CUDA_DRIVER(ULPSCOPE_MEMBER)
  ULPSCOPE_CUDA_RUNTIME(ULPSCOPE_MEMBER)
  ULPSCOPE_CUBLAS(ULPSCOPE_MEMBER)
  ULPSCOPE_CUBLASLT(ULPSCOPE_MEMBER)
#undef ULPSCOPE_MEMBER
};

}  // namespace ulpscope::cublas
