// Replaces libdtrain/cuda/nccl_library.h: the emulated NCCL, linked into the program.
#pragma once

#include <nccl.h>

namespace dtrain::cuda {

struct Nccl {
  decltype(::ncclGetErrorString)* get_error_string = ncclGetErrorString;
  decltype(::ncclGetLastError)* get_last_error = ncclGetLastError;
  decltype(::ncclGetUniqueId)* get_unique_id = ncclGetUniqueId;
  decltype(::ncclCommInitRankConfig)* init_rank = ncclCommInitRankConfig;
  decltype(::ncclCommFinalize)* finalize = ncclCommFinalize;
  decltype(::ncclCommDestroy)* destroy = ncclCommDestroy;
  decltype(::ncclCommAbort)* abort = ncclCommAbort;
  decltype(::ncclCommGetAsyncError)* get_async_error = ncclCommGetAsyncError;
  decltype(::ncclGroupStart)* group_start = ncclGroupStart;
  decltype(::ncclGroupEnd)* group_end = ncclGroupEnd;
  decltype(::ncclAllReduce)* all_reduce = ncclAllReduce;
  decltype(::ncclBroadcast)* broadcast = ncclBroadcast;

  int version() const { return NCCL_VERSION_CODE; }
};

inline const Nccl& nccl() {
  static const Nccl functions;
  return functions;
}

}  // namespace dtrain::cuda
