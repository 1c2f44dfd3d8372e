#include "libdtrain/io/remote/cache_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "dtrain/core/error.h"
#include "dtrain/io/atomic_file.h"

namespace dtrain::remote {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kFreeBytesLeft = uint64_t{256} << 20;  // of the file system, for checkpoints and logs
constexpr std::chrono::seconds kUsageWait{10}, kUsagePause{60};
constexpr size_t kUsageDigits = 20;
constexpr std::string_view kBlockEnd = ".block", kPartEnd = ".part";

struct CachedBlock {
  int64_t used_at = 0;  // time of the last read
  uint64_t bytes = 0;
  std::string path{};
};

uint64_t in_pages(uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

// Removes a part file that no process holds; returns whether it is gone.
bool remove_abandoned(FileSystem& files, const std::string& part) {
  const int fd = ::open(part.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT;
  const bool gone = ::flock(fd, LOCK_EX | LOCK_NB) == 0 && files.unlink(part) == 0;
  ::close(fd);
  return gone;
}

// Blocks in the folder; adds blocks that are fetched now to `pending`.
std::vector<CachedBlock> blocks_in(FileSystem& files, const std::string& folder, uint64_t& pending) {
  std::vector<CachedBlock> blocks;
  std::error_code gone;  // other processes add and remove files concurrently
  for (fs::directory_iterator group(folder, gone), end; !gone && group != end; group.increment(gone)) {
    std::error_code failure;
    for (fs::directory_iterator at(group->path(), failure); !failure && at != end; at.increment(failure)) {
      const std::string path = at->path().string();
      struct stat info;
      if (path.ends_with(kPartEnd)) {
        if (!remove_abandoned(files, path)) pending += in_pages(kBlockBytes + kPageBytes);
      } else if (path.ends_with(kBlockEnd) && ::lstat(path.c_str(), &info) == 0) {
        blocks.push_back({int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec,
                          in_pages(static_cast<uint64_t>(info.st_size)), path});
      }
    }
  }
  return blocks;
}

}  // namespace

bool lock_within(int fd, std::chrono::milliseconds wait) {
  const auto end = std::chrono::steady_clock::now() + wait;
  while (::flock(fd, LOCK_EX | LOCK_NB) < 0) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

CacheFolder::CacheFolder(std::string path, uint64_t max_bytes, FileSystem& files)
    : path_(std::move(path)), max_bytes_(max_bytes), files_(files) {
  make_directories(files_, directory_of(path_));
  // For this user alone: whoever can write blocks can change the data of a training run.
  if (::mkdir(path_.c_str(), 0700) < 0 && errno != EEXIST) require_success(-1, "mkdir", path_);
  struct stat info;
  require_success(::lstat(path_.c_str(), &info), "stat", path_);
  if (!S_ISDIR(info.st_mode)) throw Error(Fault::config, concat(path_, ": is not a folder; choose another one"));
  if (info.st_uid != ::geteuid() || (info.st_mode & S_IWOTH) != 0)
    throw Error(Fault::config, concat(path_,
                                      ": other users can write to this folder of cached data; expected a folder "
                                      "of this user alone; choose another one"));
  const std::string usage = path_ + "/usage";
  usage_fd_ = ::open(usage.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  require_success(usage_fd_, "open", usage);
  make_room(0);  // earlier runs may have had a larger cache
}

CacheFolder::~CacheFolder() { ::close(usage_fd_); }

std::string CacheFolder::path_of(const BlockId& block) const {
  return concat(path_, "/", block.object.substr(0, 2), "/", block.object.substr(2, 38), "-", block.number, kBlockEnd);
}

std::string CacheFolder::part_of(const BlockId& block) const {
  const std::string path = path_of(block);
  ::mkdir(directory_of(path).c_str(), 0700);  // a failure shows when the file is created
  return path.substr(0, path.size() - kBlockEnd.size()) + std::string(kPartEnd);
}

uint64_t CacheFolder::disk_bytes(const BlockId& block) { return in_pages(block_header_bytes(block) + block.bytes); }

bool CacheFolder::lock_usage() {
  if (std::chrono::steady_clock::now() < next_try_) return false;
  if (lock_within(usage_fd_, kUsageWait)) return true;
  next_try_ = std::chrono::steady_clock::now() + kUsagePause;
  return false;
}

std::optional<uint64_t> CacheFolder::stated_usage() const {
  std::array<char, kUsageDigits> text{};
  uint64_t bytes = 0;
  if (::pread(usage_fd_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) return std::nullopt;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  return wrong == std::errc{} && end == text.data() + text.size() ? std::optional(bytes) : std::nullopt;
}

bool CacheFolder::reserve(const BlockId& block) {
  const uint64_t bytes = disk_bytes(block);
  if (bytes > max_bytes_) return false;
  uint64_t free = 0;
  if (files_.free_bytes(path_, free) == 0 && free < kFreeBytesLeft + bytes)
    throw Error(Fault::resource, concat(path_, ": its disk has ", free, " bytes left"));
  return make_room(bytes);
}

// Counts `bytes` that will be stored; false if there is no room for them.
bool CacheFolder::make_room(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!lock_usage()) return false;
  struct Unlock {
    int fd;
    ~Unlock() { ::flock(fd, LOCK_UN); }
  } const unlock{usage_fd_};
  std::optional<uint64_t> used = stated_usage();
  if (!used || *used > max_bytes_ || bytes > max_bytes_ - *used) used = remove_oldest(bytes);
  const bool fits = *used + bytes <= max_bytes_;
  std::array<char, kUsageDigits + 2> text{};
  std::snprintf(text.data(), text.size(), "%0*llu\n", static_cast<int>(kUsageDigits),
                static_cast<unsigned long long>(*used + (fits ? bytes : 0)));
  require_success(::pwrite(usage_fd_, text.data(), kUsageDigits + 1, 0), "write", path_ + "/usage");
  return fits;
}

// Returns the bytes of all that remains.
uint64_t CacheFolder::remove_oldest(uint64_t room) {
  uint64_t used = 0;
  std::vector<CachedBlock> blocks = blocks_in(files_, path_, used);
  for (const CachedBlock& block : blocks) used += block.bytes;
  if (used + room <= max_bytes_) return used;
  std::ranges::sort(blocks, {}, [](const CachedBlock& block) { return std::pair(block.used_at, block.path); });
  // More than needed, because each call lists the folder.
  const uint64_t most = max_bytes_ - max_bytes_ / 16;
  for (const CachedBlock& block : blocks) {
    if (used + room <= most) break;
    if (files_.unlink(block.path) == 0 || errno == ENOENT) used -= block.bytes;
  }
  return used;
}

}  // namespace dtrain::remote
