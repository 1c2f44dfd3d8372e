// memfd created by rank 0 and opened by the others through /proc; the three stages of a sum.
#include "libdtrain/distributed/shared_memory.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dtrain/core/error.h"
#include "libdtrain/distributed/wire.h"

namespace dtrain::host {
namespace {

// Header that detects the mapping of a wrong process's memory.
struct alignas(64) Mark {
  std::array<uint64_t, 2> random{};
  bool operator==(const Mark&) const = default;
};

class File {
 public:
  explicit File(int file) : file_(file) {}
  ~File() {
    if (file_ >= 0) close(file_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return file_; }

 private:
  int file_;
};

size_t data_at(int ranks) { return sizeof(Mark) + static_cast<size_t>(ranks) * sizeof(SharedMemory::Progress); }
size_t bytes_for(int ranks) {
  return data_at(ranks) + SharedMemory::kSlots * static_cast<size_t>(ranks) * SharedMemory::kAreaBytes;
}

std::string refusal(const char* call) { return concat(call, ": ", std::strerror(errno)); }

// Maps the memory; on failure sets `reason`.
std::byte* map(int file, size_t bytes, std::string& reason) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory != MAP_FAILED) return static_cast<std::byte*>(memory);
  reason = refusal("mmap");
  return nullptr;
}

// Shrinking it would kill other ranks with SIGBUS.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// Allocates all pages now: a later write without free memory would kill the process.
std::byte* make(int file, size_t bytes, const Mark& mark, std::string& reason) {
  if (file < 0)
    reason = refusal("memfd_create");
  else if (const int error = posix_fallocate(file, 0, static_cast<off_t>(bytes)); error != 0)
    reason = concat("posix_fallocate of ", bytes, " bytes: ", std::strerror(error));
  else if (fcntl(file, F_ADD_SEALS, kSeals) != 0)
    reason = refusal("F_ADD_SEALS");
  if (!reason.empty()) return nullptr;
  std::byte* const memory = map(file, bytes, reason);
  if (memory != nullptr) std::memcpy(memory, &mark, sizeof mark);
  return memory;
}

std::byte* find(const std::string& path, size_t bytes, const Mark& mark, std::string& reason) {
  const File file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (file.get() < 0 || fstat(file.get(), &status) != 0) {
    reason = refusal(path.c_str());
    return nullptr;
  }
  std::byte* memory = nullptr;
  const bool sealed = (fcntl(file.get(), F_GET_SEALS) & kSeals) == kSeals;  // -1 if it is not a memfd
  if (S_ISREG(status.st_mode) && sealed && static_cast<size_t>(status.st_size) == bytes)
    memory = map(file.get(), bytes, reason);
  if (memory != nullptr && std::memcmp(memory, &mark, sizeof mark.random) != 0) {
    munmap(memory, bytes);
    memory = nullptr;
  }
  if (memory == nullptr && reason.empty()) reason = concat(path, ": it is not rank 0's memory");
  return memory;
}

}  // namespace

std::shared_ptr<SharedMemory> SharedMemory::open(Group& group, bool tells) {
  const size_t bytes = bytes_for(group.size());
  const bool first = group.rank() == 0;
  Mark mark;
  std::string reason, offer;
  std::byte* memory = nullptr;
  const File file(first ? memfd_create("dtrain-sums", MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1);
  if (first) {
    if (file.get() >= 0 && getrandom(mark.random.data(), sizeof mark.random, 0) < 0) reason = refusal("getrandom");
    if (reason.empty()) memory = make(file.get(), bytes, mark, reason);
    offer = concat(file.get(), " ", mark.random[0], " ", mark.random[1]);
  }
  offer = group.broadcast(offer, 0, "the shared memory");
  int number = -1;
  unsigned long long one = 0, two = 0;
  if (!first && std::sscanf(offer.c_str(), "%d %llu %llu", &number, &one, &two) == 3 && number >= 0) {
    mark.random = {one, two};
    memory = find(concat("/proc/", group.places()[0].pid, "/fd/", number), bytes, mark, reason);
  }
  // Rank 0 keeps its file open until all have passed here.
  const std::vector<std::string> reasons = group.all_gather(reason, "the shared memory of all");
  std::shared_ptr<SharedMemory> shared;
  if (memory != nullptr) shared.reset(new SharedMemory(group.rank(), group.size(), memory));
  const auto failed = std::ranges::find_if(reasons, [](const std::string& text) { return !text.empty(); });
  if (failed == reasons.end()) return shared;
  if (first && tells)
    group.tell(concat("all-reduce over ", group.transport(), " instead of shared memory, which is faster: ",
                      group.name(static_cast<int>(failed - reasons.begin())), " failed to map it: ", *failed));
  return nullptr;
}

SharedMemory::~SharedMemory() { munmap(memory_, bytes_for(ranks_)); }

SharedMemory::Progress& SharedMemory::progress(int rank) const {
  return reinterpret_cast<Progress*>(memory_ + sizeof(Mark))[rank];
}

int64_t SharedMemory::piece() const {
  constexpr int64_t kMultiple = 16;  // as in split()
  return static_cast<int64_t>(kAreaBytes / sizeof(float)) / ranks_ / kMultiple * kMultiple;
}

std::byte* SharedMemory::place(uint64_t chunk, int rank, int piece) const {
  const uint64_t area = chunk % kSlots * static_cast<uint64_t>(ranks_) + static_cast<uint64_t>(rank);
  return memory_ + data_at(ranks_) + area * kAreaBytes +
         static_cast<size_t>(piece) * static_cast<size_t>(this->piece()) * sizeof(float);
}

SharedSum::SharedSum(SharedMemory& memory, const Elements& elements, int64_t count)
    : memory_(memory), elements_(elements), parts_(split({0, count}, memory.ranks())) {
  int64_t longest = 0;
  for (const Range& part : parts_) longest = std::max(longest, part.count());
  begin_ = filled_ = summed_ = taken_ = memory.chunks;
  end_ = begin_ + static_cast<uint64_t>((longest + memory.piece() - 1) / memory.piece());
  memory.chunks = end_;
}

bool SharedSum::all_past(Counter counter, uint64_t chunk) const {
  for (int rank = 0; rank < memory_.ranks(); ++rank)
    if ((memory_.progress(rank).*counter).load(std::memory_order_acquire) <= chunk) return false;
  return true;
}

bool SharedSum::advance() {
  using Progress = SharedMemory::Progress;
  Progress& mine = memory_.progress(memory_.rank());
  const uint64_t before = filled_ + summed_ + taken_;
  if (taken_ < summed_ && all_past(&Progress::summed, taken_)) {
    take(taken_);
    mine.taken.store(++taken_, std::memory_order_release);
  }
  if (summed_ < filled_ && all_past(&Progress::filled, summed_)) {
    sum(summed_);
    mine.summed.store(++summed_, std::memory_order_release);
  }
  const uint64_t slots = SharedMemory::kSlots;
  if (filled_ < end_ && (filled_ < slots || all_past(&Progress::taken, filled_ - slots))) {
    fill(filled_);
    mine.filled.store(++filled_, std::memory_order_release);
  }
  return filled_ + summed_ + taken_ != before;
}

Range SharedSum::piece_of(uint64_t chunk, int part) const {
  const Range& whole = parts_[static_cast<size_t>(part)];
  const int64_t begin = std::min(whole.end, whole.begin + static_cast<int64_t>(chunk - begin_) * memory_.piece());
  return {begin, std::min(whole.end, begin + memory_.piece())};
}

void SharedSum::fill(uint64_t chunk) {
  for (int part = 0; part < memory_.ranks(); ++part) {
    if (part == memory_.rank()) continue;
    const Range piece = piece_of(chunk, part);
    std::byte* const to = memory_.place(chunk, memory_.rank(), part);
    if (elements_.wire == DType::f32)
      std::memcpy(to, values(piece), static_cast<size_t>(piece.count()) * sizeof(float));
    else
      round_to_wire(elements_.wire, values(piece), to, piece.count());
  }
}

void SharedSum::sum(uint64_t chunk) {
  constexpr int64_t kBlock = 2048;  // stays in L1 while others' elements are added
  const int me = memory_.rank(), ranks = memory_.ranks();
  const Range piece = piece_of(chunk, me);
  for (int64_t at = piece.begin; at < piece.end; at += kBlock) {
    const Range block{at, std::min(at + kBlock, piece.end)};
    const auto offset = static_cast<size_t>(at - piece.begin) * size_of(elements_.wire);
    for (int distance = 1; distance < ranks; ++distance)
      add_from_wire(elements_.wire, memory_.place(chunk, (me + ranks - distance) % ranks, me) + offset, values(block),
                    block.count());
    std::byte* const to = memory_.place(chunk, me, me) + offset;
    if (elements_.wire == DType::f32)
      std::memcpy(to, values(block), static_cast<size_t>(block.count()) * sizeof(float));
    else
      round_to_wire(elements_.wire, values(block), to, block.count());
  }
}

void SharedSum::take(uint64_t chunk) {
  for (int part = 0; part < memory_.ranks(); ++part) {
    if (part == memory_.rank()) continue;
    const Range piece = piece_of(chunk, part);
    const std::byte* const from = memory_.place(chunk, part, part);
    if (elements_.wire == DType::f32)
      std::memcpy(values(piece), from, static_cast<size_t>(piece.count()) * sizeof(float));
    else
      copy_from_wire(elements_.wire, from, values(piece), piece.count());
  }
}

}  // namespace dtrain::host
