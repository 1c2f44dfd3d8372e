// SharedRanks: shared memory (a file in /dev/shm) of the ranks of an emulated NCCL communicator.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace emulation {

// Part of one rank.
struct SharedRank {
  static constexpr size_t kPiece = 256 << 10;
  struct Header {
    int kind, type, root;
    uint64_t count;
    bool operator==(const Header&) const = default;
  };

  std::atomic<int> state;            // 0: not arrived; 1: present; 2: left orderly
  std::atomic<uint64_t> gave, took;  // pieces of all collectives
  Header header;                     // describes the piece's collective
  alignas(64) unsigned char piece[kPiece];
};

class SharedRanks {
 public:
  SharedRanks(const std::string& name, int ranks, int rank);
  ~SharedRanks();
  SharedRanks(const SharedRanks&) = delete;
  SharedRanks& operator=(const SharedRanks&) = delete;

  SharedRank& operator[](int rank) const { return shares_[rank]; }
  int size() const { return ranks_; }
  // Whether all have arrived. The file can then be unlinked.
  bool complete();
  // Whether its process ended without leaving.
  bool is_dead(int rank) const;

 private:
  std::string name_;
  int ranks_, rank_, file_ = -1;
  SharedRank* shares_ = nullptr;
  bool named_ = true;
};

}  // namespace emulation
