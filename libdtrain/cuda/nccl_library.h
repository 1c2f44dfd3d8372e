// NCCL functions, loaded with dlopen at first use.
#pragma once

#include <nccl.h>

#include "libdtrain/core/shared_library.h"

namespace dtrain::cuda {

struct Nccl {
  SharedLibrary library;
  decltype(::ncclGetVersion)* get_version = library.symbol("ncclGetVersion");
  decltype(::ncclGetErrorString)* get_error_string = library.symbol("ncclGetErrorString");
  decltype(::ncclGetLastError)* get_last_error = library.symbol("ncclGetLastError");
  decltype(::ncclGetUniqueId)* get_unique_id = library.symbol("ncclGetUniqueId");
  decltype(::ncclCommInitRankConfig)* init_rank = library.symbol("ncclCommInitRankConfig");
  decltype(::ncclCommFinalize)* finalize = library.symbol("ncclCommFinalize");
  decltype(::ncclCommDestroy)* destroy = library.symbol("ncclCommDestroy");
  decltype(::ncclCommAbort)* abort = library.symbol("ncclCommAbort");
  decltype(::ncclCommGetAsyncError)* get_async_error = library.symbol("ncclCommGetAsyncError");
  decltype(::ncclGroupStart)* group_start = library.symbol("ncclGroupStart");
  decltype(::ncclGroupEnd)* group_end = library.symbol("ncclGroupEnd");
  decltype(::ncclAllReduce)* all_reduce = library.symbol("ncclAllReduce");
  decltype(::ncclBroadcast)* broadcast = library.symbol("ncclBroadcast");

  // Version of the loaded library: 22809 is 2.28.9.
  int version() const {
    int number = 0;
    return get_version(&number) == ncclSuccess ? number : 0;
  }
};

// Throws Error(Fault::resource) where NCCL is not installed.
const Nccl& nccl();

}  // namespace dtrain::cuda
