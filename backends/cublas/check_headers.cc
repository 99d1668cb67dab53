// The hand-written constants of api.h against NVIDIA's headers: compiled only where a build finds those.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "backends/cublas/api.h"

namespace ulpscope::cublas {

static_assert(kR32F == CUDA_R_32F && kR64F == CUDA_R_64F && kR16F == CUDA_R_16F && kR16BF == CUDA_R_16BF);
static_assert(kR8FE4M3 == CUDA_R_8F_E4M3 && kR8FE5M2 == CUDA_R_8F_E5M2);
static_assert(kHostToDevice == cudaMemcpyHostToDevice && kDeviceToHost == cudaMemcpyDeviceToHost);
static_assert(kAttributeMajor == cudaDevAttrComputeCapabilityMajor);
static_assert(kAttributeMinor == cudaDevAttrComputeCapabilityMinor);
static_assert(kErrorMemoryAllocation == cudaErrorMemoryAllocation);

static_assert(kSuccess == CUBLAS_STATUS_SUCCESS && kNotInitialized == CUBLAS_STATUS_NOT_INITIALIZED);
static_assert(kAllocFailed == CUBLAS_STATUS_ALLOC_FAILED && kInvalidValue == CUBLAS_STATUS_INVALID_VALUE);
static_assert(kArchMismatch == CUBLAS_STATUS_ARCH_MISMATCH && kMappingError == CUBLAS_STATUS_MAPPING_ERROR);
static_assert(kExecutionFailed == CUBLAS_STATUS_EXECUTION_FAILED &&
              kInternalError == CUBLAS_STATUS_INTERNAL_ERROR);
static_assert(kNotSupported == CUBLAS_STATUS_NOT_SUPPORTED && kLicenseError == CUBLAS_STATUS_LICENSE_ERROR);
static_assert(kOpN == CUBLAS_OP_N && kOpT == CUBLAS_OP_T && kGemmDefault == CUBLAS_GEMM_DEFAULT);
static_assert(kDefaultMath == CUBLAS_DEFAULT_MATH);
static_assert(kDisallowReducedPrecisionReduction == CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);

static_assert(kCompute16F == CUBLAS_COMPUTE_16F && kCompute16FPedantic == CUBLAS_COMPUTE_16F_PEDANTIC);
static_assert(kCompute32F == CUBLAS_COMPUTE_32F && kCompute32FPedantic == CUBLAS_COMPUTE_32F_PEDANTIC);
static_assert(kCompute64F == CUBLAS_COMPUTE_64F && kCompute64FPedantic == CUBLAS_COMPUTE_64F_PEDANTIC);
static_assert(kCompute32FFast16F == CUBLAS_COMPUTE_32F_FAST_16F);
static_assert(kCompute32FFast16BF == CUBLAS_COMPUTE_32F_FAST_16BF);
static_assert(kCompute32FFastTf32 == CUBLAS_COMPUTE_32F_FAST_TF32);
#if CUBLAS_VERSION >= 130000
static_assert(kCompute32FEmulated16BFx9 == CUBLAS_COMPUTE_32F_EMULATED_16BFX9);
#endif
#if CUBLAS_VERSION >= 130100
static_assert(kCompute64FEmulatedFixedPoint == CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT);
#endif

static_assert(kDescTransA == CUBLASLT_MATMUL_DESC_TRANSA && kDescTransB == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(kDescEpilogue == CUBLASLT_MATMUL_DESC_EPILOGUE);
static_assert(kDescBiasPointer == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(kDescFastAccum == CUBLASLT_MATMUL_DESC_FAST_ACCUM);
static_assert(kDescBiasDataType == CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
static_assert(kEpilogueBias == CUBLASLT_EPILOGUE_BIAS);
static_assert(kLayoutBatchCount == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
static_assert(kLayoutStridedBatchOffset == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(kPreferenceMaxWorkspaceBytes == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(kPreferenceReductionSchemeMask == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
static_assert(kAlgoId == CUBLASLT_ALGO_CONFIG_ID && kAlgoTileId == CUBLASLT_ALGO_CONFIG_TILE_ID);
static_assert(kAlgoSplitKNum == CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
static_assert(kAlgoReductionScheme == CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
static_assert(kAlgoStagesId == CUBLASLT_ALGO_CONFIG_STAGES_ID);
static_assert(kReductionNone == CUBLASLT_REDUCTION_SCHEME_NONE &&
              kReductionInPlace == CUBLASLT_REDUCTION_SCHEME_INPLACE);
static_assert(kReductionComputeType == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
static_assert(kReductionOutputType == CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE);
static_assert(sizeof(LtAlgo) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(LtHeuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(LtHeuristic, workspace_bytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(LtHeuristic, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));

}  // namespace ulpscope::cublas
