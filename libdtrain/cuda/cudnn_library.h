// cuDNN functions, loaded with dlopen at first use.
#pragma once

#include <cudnn_graph.h>

#include "libdtrain/cuda/shared_library.h"

namespace dtrain::cuda {

struct Cudnn {
  SharedLibrary library;
  decltype(::cudnnGetVersion)* version = library.function("cudnnGetVersion");
  decltype(::cudnnGetErrorString)* get_error_string = library.function("cudnnGetErrorString");
  decltype(::cudnnGetLastErrorString)* get_last_error_string = library.function("cudnnGetLastErrorString");
  decltype(::cudnnCreate)* create = library.function("cudnnCreate");
  decltype(::cudnnDestroy)* destroy = library.function("cudnnDestroy");
  decltype(::cudnnSetStream)* set_stream = library.function("cudnnSetStream");
  decltype(::cudnnBackendCreateDescriptor)* create_descriptor = library.function("cudnnBackendCreateDescriptor");
  decltype(::cudnnBackendDestroyDescriptor)* destroy_descriptor = library.function("cudnnBackendDestroyDescriptor");
  decltype(::cudnnBackendSetAttribute)* set_attribute = library.function("cudnnBackendSetAttribute");
  decltype(::cudnnBackendGetAttribute)* get_attribute = library.function("cudnnBackendGetAttribute");
  decltype(::cudnnBackendFinalize)* finalize = library.function("cudnnBackendFinalize");
  decltype(::cudnnBackendExecute)* execute = library.function("cudnnBackendExecute");
};

// Throws Error(Fault::resource) where cuDNN is not installed.
const Cudnn& cudnn();

}  // namespace dtrain::cuda
