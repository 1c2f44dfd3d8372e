// NCCL functions, loaded with dlopen at first use.
#pragma once

#include <nccl.h>

#include "libdtrain/cuda/shared_library.h"

namespace dtrain::cuda {

struct Nccl {
  SharedLibrary library;
  decltype(::ncclGetVersion)* get_version = library.function("ncclGetVersion");
  decltype(::ncclGetErrorString)* get_error_string = library.function("ncclGetErrorString");
  decltype(::ncclGetLastError)* get_last_error = library.function("ncclGetLastError");
  decltype(::ncclGetUniqueId)* get_unique_id = library.function("ncclGetUniqueId");
  decltype(::ncclCommInitRankConfig)* init_rank = library.function("ncclCommInitRankConfig");
  decltype(::ncclCommFinalize)* finalize = library.function("ncclCommFinalize");
  decltype(::ncclCommDestroy)* destroy = library.function("ncclCommDestroy");
  decltype(::ncclCommAbort)* abort = library.function("ncclCommAbort");
  decltype(::ncclCommGetAsyncError)* get_async_error = library.function("ncclCommGetAsyncError");
  decltype(::ncclGroupStart)* group_start = library.function("ncclGroupStart");
  decltype(::ncclGroupEnd)* group_end = library.function("ncclGroupEnd");
  decltype(::ncclAllReduce)* all_reduce = library.function("ncclAllReduce");
  decltype(::ncclBroadcast)* broadcast = library.function("ncclBroadcast");

  // Version of the loaded library: 22809 is 2.28.9.
  int version() const {
    int number = 0;
    return get_version(&number) == ncclSuccess ? number : 0;
  }
};

// Throws Error(Fault::resource) where NCCL is not installed.
const Nccl& nccl();

}  // namespace dtrain::cuda
