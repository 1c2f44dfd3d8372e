// Intra-host shared memory and the all-reduce through it: each rank sums one part from all ranks' areas.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "dtrain/distributed/group.h"
#include "libdtrain/distributed/exchange.h"

namespace dtrain::host {

// One area per rank, and progress counters. Anonymous (memfd): freed with the last process that maps it.
class SharedMemory {
 public:
  static constexpr uint64_t kSlots = 2;          // chunks of a sum in flight
  static constexpr size_t kAreaBytes = 1 << 19;  // per rank and slot; keeps all ranks' data in cache
  // Counted in chunks from the start; each written by its rank only, on its own cache line.
  struct alignas(64) Progress {
    std::atomic<uint64_t> filled, summed, taken;
  };

  // Collective, for a group on one host. Null on all ranks if it fails on one; with `tells`, rank 0 then reports the
  // reason through Group::tell.
  static std::shared_ptr<SharedMemory> open(Group& group, bool tells);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  Progress& progress(int rank) const;
  // Elements of a piece: a rank's data for one other rank in a chunk.
  int64_t piece() const;
  std::byte* place(uint64_t chunk, int rank, int piece) const;
  // Completed chunks of the sums.
  uint64_t chunks = 0;

 private:
  SharedMemory(int rank, int ranks, std::byte* memory) : rank_(rank), ranks_(ranks), memory_(memory) {}

  int rank_, ranks_;
  std::byte* memory_;
};

// One f32 all-reduce. Part i of split() is added in the order i, i - 1, ..., i + 1 and rounded to the wire as in
// direct_all_reduce: results are bitwise equal.
class SharedSum {
 public:
  SharedSum(SharedMemory& memory, const Elements& elements, int64_t count);
  // Makes progress, at most one chunk; never blocks. Returns whether it did anything.
  bool advance();
  bool done() const { return taken_ == end_; }

 private:
  using Counter = std::atomic<uint64_t> SharedMemory::Progress::*;
  bool all_past(Counter counter, uint64_t chunk) const;
  Range piece_of(uint64_t chunk, int part) const;
  float* values(const Range& piece) const { return reinterpret_cast<float*>(elements_.memory) + piece.begin; }
  void fill(uint64_t chunk);
  void sum(uint64_t chunk);
  void take(uint64_t chunk);

  SharedMemory& memory_;
  Elements elements_;
  std::vector<Range> parts_;
  uint64_t begin_ = 0, end_ = 0, filled_ = 0, summed_ = 0, taken_ = 0;  // in chunks
};

}  // namespace dtrain::host
