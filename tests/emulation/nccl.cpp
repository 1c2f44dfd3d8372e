// NCCL calls: sequential collectives of a communicator on the streams of all its ranks.
#include <nccl.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "tests/emulation/block.h"
#include "tests/emulation/emulation.h"
#include "tests/emulation/shared_ranks.h"

struct ncclComm {
  ncclComm(const char* name, int ranks, int own_rank, int own_blocks)
      : all(name, ranks, own_rank), rank(own_rank), blocks(own_blocks) {}

  emulation::SharedRanks all;
  int rank;
  int blocks;           // of each kernel
  uint64_t pieces = 0;  // completed
  std::atomic<bool> aborted = false;
  int in_progress = 0;  // number of times to report ncclInProgress before completion
};

namespace emulation {
namespace {

enum Kind { kAllReduce, kBroadcast };

size_t size_of(ncclDataType_t type) { return type == ncclFloat32 ? 4 : type == ncclUint8 ? 1 : 2; }

template <class T>
void add(const unsigned char* from, unsigned char* sum, size_t bytes) {
  const auto* terms = reinterpret_cast<const T*>(from);
  auto* sums = reinterpret_cast<T*>(sum);
  for (size_t i = 0; i < bytes / sizeof(T); ++i)
    sums[i] = T(static_cast<float>(sums[i]) + static_cast<float>(terms[i]));
}

// One collective on one rank, piece by piece.
struct Collective {
  std::shared_ptr<ncclComm> comm;
  const unsigned char* from;
  unsigned char* to;
  SharedRank::Header header;
  size_t bytes, done = 0;
  bool given = false, told = false, holds = false;

  bool all_have(std::atomic<uint64_t> SharedRank::*count, uint64_t pieces) const {
    for (int rank = 0; rank < comm->all.size(); ++rank)
      if (comm->all[rank].*count < pieces) return false;
    return true;
  }

  void take(size_t length) const {
    if (header.kind == kBroadcast) {
      std::memcpy(to + done, comm->all[header.root].piece, length);
      return;
    }
    // On the heap: thread-local memory is taken from thread stacks, which other libraries keep small.
    static thread_local const auto piece_sum = std::make_unique<unsigned char[]>(SharedRank::kPiece);
    unsigned char* const sum = piece_sum.get();
    std::memcpy(sum, comm->all[0].piece, length);
    for (int rank = 1; rank < comm->all.size(); ++rank) {
      const unsigned char* piece = comm->all[rank].piece;
      if (header.type == ncclFloat32) add<float>(piece, sum, length);
      if (header.type == ncclFloat16) add<__half>(piece, sum, length);
      if (header.type == ncclBfloat16) add<__nv_bfloat16>(piece, sum, length);
    }
    std::memcpy(to + done, sum, length);
  }

  // NCCL's behaviour is undefined here; mostly its kernels hang.
  bool mismatch(int rank) {
    if (!std::exchange(told, true))
      std::fprintf(stderr, "emulated NCCL: ranks %d and %d are out of step\n", comm->rank, rank);
    return false;
  }

  // Progresses as far as peers allow; true at its end, ready for a restart. Until then its kernel holds the
  // multiprocessors of its blocks.
  bool operator()() {
    if (!std::exchange(holds, true)) emulation::hold_multiprocessors(comm->blocks);
    const bool ended = proceed();
    if (ended && std::exchange(holds, false)) emulation::hold_multiprocessors(-comm->blocks);
    return ended;
  }
  bool proceed() {
    SharedRank& mine = comm->all[comm->rank];
    for (; !comm->aborted && done < bytes; ++comm->pieces, given = false) {
      const size_t length = std::min(SharedRank::kPiece, bytes - done);
      if (!given) {
        if (!all_have(&SharedRank::took, comm->pieces)) return false;
        mine.header = header;
        std::memcpy(mine.piece, from + done, length);
        mine.gave = comm->pieces + 1;
        given = true;
      }
      if (!all_have(&SharedRank::gave, comm->pieces + 1)) return false;
      for (int rank = 0; rank < comm->all.size(); ++rank)
        if (!(comm->all[rank].header == header)) return mismatch(rank);
      take(length);
      mine.took = comm->pieces + 1;
      done += length;
    }
    done = 0;
    return true;
  }
};

// By handle, to keep what enqueued or captured work needs.
std::vector<std::shared_ptr<ncclComm>>& communicators() {
  static std::vector<std::shared_ptr<ncclComm>> all;
  return all;
}

// Calls since ncclGroupStart.
thread_local int groups = 0;
thread_local std::vector<std::function<ncclResult_t()>> asked;

ncclResult_t ask(Kind kind, const void* from, void* to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                 cudaStream_t stream) {
  const auto known = std::ranges::find(communicators(), comm, &std::shared_ptr<ncclComm>::get);
  if (known == communicators().end()) return ncclInvalidArgument;
  Collective collective{*known,
                        static_cast<const unsigned char*>(from),
                        static_cast<unsigned char*>(to),
                        {kind, type, root, count},
                        count * size_of(type)};
  if (groups == 0) return ncclInvalidUsage;  // not emulated
  if (count == 0) return ncclSuccess;
  asked.push_back([collective, stream] {
    collective.comm->in_progress = 2;
    return enqueue_waiting(stream, collective) == cudaSuccess ? ncclInProgress : ncclUnhandledCudaError;
  });
  return ncclSuccess;
}

ncclResult_t leave(ncclComm_t comm) {
  return std::erase_if(communicators(), [&](const auto& known) { return known.get() == comm; }) == 1
             ? ncclSuccess
             : ncclInvalidArgument;
}

}  // namespace
}  // namespace emulation

using emulation::communicators;

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error" : "an error of NCCL";
}
const char* ncclGetLastError(ncclComm_t) { return "no details"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::random_device random;
  std::snprintf(id->internal, sizeof id->internal, "/dtrain-nccl-%d-%08x%08x", static_cast<int>(getpid()), random(),
                random());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config->blocking != 0) return ncclInvalidUsage;  // not emulated
  constexpr int kUsualBlocks = 2;
  const int blocks = config->maxCTAs == NCCL_CONFIG_UNDEF_INT ? kUsualBlocks : config->maxCTAs;
  communicators().push_back(std::make_shared<ncclComm>(id.internal, ranks, rank, blocks));
  *comm = communicators().back().get();
  return ncclInProgress;
}

ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return emulation::leave(comm); }
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->aborted = true;
  return emulation::leave(comm);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  *error = ncclSuccess;
  if (comm->in_progress > 0 && --comm->in_progress > 0) *error = ncclInProgress;
  if (!comm->all.complete()) *error = ncclInProgress;
  for (int rank = 0; rank < comm->all.size(); ++rank)
    if (comm->all.is_dead(rank)) *error = ncclRemoteError;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++emulation::groups;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (emulation::groups == 0) return ncclInvalidUsage;
  if (--emulation::groups > 0) return ncclSuccess;
  ncclResult_t result = ncclSuccess;
  for (const auto& call : std::exchange(emulation::asked, {})) result = call();
  return result;
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t, ncclComm_t comm,
                           cudaStream_t stream) {
  return emulation::ask(emulation::kAllReduce, from, to, count, type, 0, comm, stream);
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return emulation::ask(emulation::kBroadcast, from, to, count, type, root, comm, stream);
}
