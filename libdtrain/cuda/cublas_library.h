// cuBLASLt functions, loaded with dlopen at first use.
#pragma once

#include <cublasLt.h>

#include "libdtrain/core/shared_library.h"

namespace dtrain::cuda {

struct CublasLt {
  SharedLibrary library;
  decltype(::cublasLtGetVersion)* version = library.symbol("cublasLtGetVersion");
  decltype(::cublasLtGetStatusString)* get_status_string = library.symbol("cublasLtGetStatusString");
  decltype(::cublasLtCreate)* create = library.symbol("cublasLtCreate");
  decltype(::cublasLtDestroy)* destroy = library.symbol("cublasLtDestroy");
  decltype(::cublasLtMatrixLayoutCreate)* layout_create = library.symbol("cublasLtMatrixLayoutCreate");
  decltype(::cublasLtMatrixLayoutDestroy)* layout_destroy = library.symbol("cublasLtMatrixLayoutDestroy");
  decltype(::cublasLtMatmulDescCreate)* operation_create = library.symbol("cublasLtMatmulDescCreate");
  decltype(::cublasLtMatmulDescDestroy)* operation_destroy = library.symbol("cublasLtMatmulDescDestroy");
  decltype(::cublasLtMatmulDescSetAttribute)* operation_set = library.symbol("cublasLtMatmulDescSetAttribute");
  decltype(::cublasLtMatmulPreferenceCreate)* preference_create = library.symbol("cublasLtMatmulPreferenceCreate");
  decltype(::cublasLtMatmulPreferenceDestroy)* preference_destroy = library.symbol("cublasLtMatmulPreferenceDestroy");
  decltype(::cublasLtMatmulPreferenceSetAttribute)* preference_set =
      library.symbol("cublasLtMatmulPreferenceSetAttribute");
  decltype(::cublasLtMatmulAlgoGetHeuristic)* get_heuristic = library.symbol("cublasLtMatmulAlgoGetHeuristic");
  decltype(::cublasLtMatmul)* matmul = library.symbol("cublasLtMatmul");
};

// Throws Error(Fault::resource) where cuBLASLt is not installed.
const CublasLt& cublas_lt();

}  // namespace dtrain::cuda
