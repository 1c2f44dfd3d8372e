// cuBLASLt functions, loaded with dlopen at first use.
#pragma once

#include <cublasLt.h>

#include "libdtrain/cuda/shared_library.h"

namespace dtrain::cuda {

struct CublasLt {
  SharedLibrary library;
  decltype(::cublasLtGetVersion)* version = library.function("cublasLtGetVersion");
  decltype(::cublasLtGetStatusString)* get_status_string = library.function("cublasLtGetStatusString");
  decltype(::cublasLtCreate)* create = library.function("cublasLtCreate");
  decltype(::cublasLtDestroy)* destroy = library.function("cublasLtDestroy");
  decltype(::cublasLtMatrixLayoutCreate)* layout_create = library.function("cublasLtMatrixLayoutCreate");
  decltype(::cublasLtMatrixLayoutDestroy)* layout_destroy = library.function("cublasLtMatrixLayoutDestroy");
  decltype(::cublasLtMatmulDescCreate)* operation_create = library.function("cublasLtMatmulDescCreate");
  decltype(::cublasLtMatmulDescDestroy)* operation_destroy = library.function("cublasLtMatmulDescDestroy");
  decltype(::cublasLtMatmulDescSetAttribute)* operation_set = library.function("cublasLtMatmulDescSetAttribute");
  decltype(::cublasLtMatmulPreferenceCreate)* preference_create = library.function("cublasLtMatmulPreferenceCreate");
  decltype(::cublasLtMatmulPreferenceDestroy)* preference_destroy = library.function("cublasLtMatmulPreferenceDestroy");
  decltype(::cublasLtMatmulPreferenceSetAttribute)* preference_set =
      library.function("cublasLtMatmulPreferenceSetAttribute");
  decltype(::cublasLtMatmulAlgoGetHeuristic)* get_heuristic = library.function("cublasLtMatmulAlgoGetHeuristic");
  decltype(::cublasLtMatmul)* matmul = library.function("cublasLtMatmul");
};

// Throws Error(Fault::resource) where cuBLASLt is not installed.
const CublasLt& cublas_lt();

}  // namespace dtrain::cuda
