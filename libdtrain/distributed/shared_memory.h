// Memory that the ranks of a host share, and sums through it: each rank adds up a part of its own from the areas of
// all.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "libdtrain/distributed/exchange.h"
#include "libdtrain/distributed/group.h"

namespace dtrain::host {

// An area for each rank of a group, and how far each has come. It has no name that could be left behind: it ends with
// the last process that maps it.
class SharedMemory {
 public:
  static constexpr uint64_t kSlots = 2;          // chunks of a sum that are under way at a time
  static constexpr size_t kAreaBytes = 1 << 19;  // of a rank in a slot: what all ranks write stays in their caches
  // Counted in chunks since the beginning, each written by its rank alone, on cache lines of their own.
  struct alignas(64) Progress {
    std::atomic<uint64_t> filled, summed, taken;
  };

  // Collective, for a group on one host. Null on all ranks where it cannot be had on one of them; with `tells`
  // rank 0 then reports why in one line, through Group::tell.
  static std::shared_ptr<SharedMemory> open(Group& group, bool tells);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  Progress& progress(int rank) const;
  // Elements of a piece: what a rank has for another in a chunk.
  int64_t piece() const;
  std::byte* place(uint64_t chunk, int rank, int piece) const;
  // Chunks of the sums that are done.
  uint64_t chunks = 0;

 private:
  SharedMemory(int rank, int ranks, std::byte* memory) : rank_(rank), ranks_(ranks), memory_(memory) {}

  int rank_, ranks_;
  std::byte* memory_;
};

// One sum of f32 over the ranks. Part i, as split() has it, is added in the order i, i - 1, ..., i + 1 and rounded to
// the wire where a direct_all_reduce would: the same bits come out.
class SharedSum {
 public:
  SharedSum(SharedMemory& memory, const Elements& elements, int64_t count);
  // Does what can be done, at most a chunk of it; never waits. True where something was done.
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
  uint64_t begin_ = 0, end_ = 0, filled_ = 0, summed_ = 0, taken_ = 0;  // chunks
};

}  // namespace dtrain::host
