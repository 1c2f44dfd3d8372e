// SharedRanks: the memory through which the ranks of an emulated NCCL communicator meet, a file of /dev/shm.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace emulation {

// A rank's share of it.
struct SharedRank {
  static constexpr size_t kPiece = 256 << 10;
  struct Header {
    int kind, type, root;
    uint64_t count;
    bool operator==(const Header&) const = default;
  };

  std::atomic<int> state;            // 0: has not come yet; 1: is here; 2: has left in order
  std::atomic<uint64_t> gave, took;  // pieces of all collectives together
  Header header;                     // describes what the piece is part of
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
  // All have come. Then nobody else needs the file's name.
  bool complete();
  // Its process has ended without leaving.
  bool is_dead(int rank) const;

 private:
  std::string name_;
  int ranks_, rank_, file_ = -1;
  SharedRank* shares_ = nullptr;
  bool named_ = true;
};

}  // namespace emulation
