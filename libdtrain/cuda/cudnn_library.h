// cuDNN functions, loaded with dlopen at first use.
#pragma once

#include <cudnn_graph.h>

#include "libdtrain/core/shared_library.h"

namespace dtrain::cuda {

struct Cudnn {
  SharedLibrary library;
  decltype(::cudnnGetVersion)* version = library.symbol("cudnnGetVersion");
  decltype(::cudnnGetErrorString)* get_error_string = library.symbol("cudnnGetErrorString");
  decltype(::cudnnGetLastErrorString)* get_last_error_string = library.symbol("cudnnGetLastErrorString");
  decltype(::cudnnCreate)* create = library.symbol("cudnnCreate");
  decltype(::cudnnDestroy)* destroy = library.symbol("cudnnDestroy");
  decltype(::cudnnSetStream)* set_stream = library.symbol("cudnnSetStream");
  decltype(::cudnnBackendCreateDescriptor)* create_descriptor = library.symbol("cudnnBackendCreateDescriptor");
  decltype(::cudnnBackendDestroyDescriptor)* destroy_descriptor = library.symbol("cudnnBackendDestroyDescriptor");
  decltype(::cudnnBackendSetAttribute)* set_attribute = library.symbol("cudnnBackendSetAttribute");
  decltype(::cudnnBackendGetAttribute)* get_attribute = library.symbol("cudnnBackendGetAttribute");
  decltype(::cudnnBackendFinalize)* finalize = library.symbol("cudnnBackendFinalize");
  decltype(::cudnnBackendExecute)* execute = library.symbol("cudnnBackendExecute");
};

// Throws Error(Fault::resource) where cuDNN is not installed.
const Cudnn& cudnn();

}  // namespace dtrain::cuda
