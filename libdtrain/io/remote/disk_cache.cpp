#include "libdtrain/io/remote/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "dtrain/core/error.h"

namespace dtrain::remote {
namespace {

// While another process fetches the same block.
constexpr std::chrono::seconds kPartWait{30};
// A read block's time is set if it is older: reads need not write each time.
constexpr time_t kSecondsBetweenMarks = 10;

// A number that is uniform over blocks and equal in all processes.
double place_of(const BlockId& block) {
  uint64_t hash = 0xcbf29ce484222325 ^ block.number;
  for (const char c : block.object) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  hash ^= hash >> 32;
  hash *= 0x9e3779b97f4a7c15;
  return static_cast<double>(hash >> 11) * 0x1p-53;
}

void mark_block_as_read(int fd, const struct stat& info) {
  if (::time(nullptr) - info.st_mtim.tv_sec > kSecondsBetweenMarks) ::futimens(fd, nullptr);
}

}  // namespace

// The locked file of a block that is fetched.
class DiskCache::Part {
 public:
  Part() = default;
  ~Part() {
    if (fd_ < 0) return;
    if (!stored) ::unlink(path.c_str());
    ::close(fd_);
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  // False if another process holds it for long, has stored the block meanwhile, or the file cannot be opened (`cause`).
  bool open(const std::string& at) {
    path = at;
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    cause = fd < 0 ? errno : 0;
    if (fd < 0) return false;
    struct stat here, named;
    // The one who held it has renamed or removed it.
    const bool locked = lock_within(fd, kPartWait) && ::fstat(fd, &here) == 0 && ::lstat(path.c_str(), &named) == 0 &&
                        here.st_ino == named.st_ino && here.st_dev == named.st_dev;
    if (locked)
      fd_ = fd;
    else
      ::close(fd);
    return locked;
  }
  int fd() const { return fd_; }

  std::string path{};
  int cause = 0;
  bool stored = false;

 private:
  int fd_ = -1;
};

DiskCache::DiskCache(const RemoteCacheOptions& options, FileSystem& files)
    : files_(files), folder_(options.directory + "/remote-blocks", options.max_bytes, files), notice_(options.notice) {}

bool DiskCache::keeps(const BlockId& block) const {
  // A sixteenth is free after blocks were removed.
  const double room = static_cast<double>(folder_.max_bytes() - folder_.max_bytes() / 8);
  const double all = static_cast<double>(file_bytes_.load());
  return all <= room || place_of(block) < room / all;
}

bool DiskCache::has(const BlockId& block) const { return ::access(folder_.path_of(block).c_str(), F_OK) == 0; }

bool DiskCache::read(const BlockId& block, size_t begin, std::span<char> into) {
  const std::string path = folder_.path_of(block);
  const int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return false;
  struct stat info;
  const bool intact = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && read_block(fd, block, begin, into);
  if (intact) {
    mark_block_as_read(fd, info);
    from_disk_ += into.size();
  } else {
    ++damaged_;
    files_.unlink(path);
  }
  ::close(fd);
  return intact;
}

void DiskCache::read_or_fetch(const BlockId& block, size_t begin, std::span<char> into, const Fetch& fetch) {
  Part part;
  const bool mine = writable_ && open_part(part, block);
  // Another thread or process may have stored it since the caller looked.
  if (has(block) && read(block, begin, into)) return;
  const bool whole = begin == 0 && into.size() == block.bytes;
  std::vector<char> buffer(whole ? 0 : block.bytes);
  const std::span<char> bytes = whole ? into : std::span(buffer);
  fetch(bytes);
  fetched_ += bytes.size();
  if (!whole) std::memcpy(into.data(), bytes.data() + begin, into.size());
  if (mine)
    store(part, block, bytes);
  else
    ++unstored_;
}

bool DiskCache::open_part(Part& part, const BlockId& block) {
  if (part.open(folder_.part_of(block))) return true;
  errno = part.cause;
  if (part.cause != 0 && part.cause != EMFILE && part.cause != ENFILE) give_up(describe_errno("create", part.path));
  return false;
}

void DiskCache::store(Part& part, const BlockId& block, std::span<const char> bytes) try {
  if (!folder_.reserve(block)) {
    ++unstored_;
    return;
  }
  write_part(part, block, bytes);
  const std::string path = folder_.path_of(block);
  if (files_.rename(part.path, path) == 0)
    part.stored = true;
  else if (errno != ENOENT)  // the folder was removed
    require_success(-1, "rename to", path);
} catch (const Error& error) {
  give_up(error.what());
}

void DiskCache::write_part(Part& part, const BlockId& block, std::span<const char> bytes) {
  require_success(::ftruncate(part.fd(), 0), "truncate", part.path);  // what a killed process left
  const std::string header = block_header(block, bytes);
  for (std::span<const char> rest : {std::span<const char>(header), bytes})
    while (!rest.empty()) {
      const ssize_t written = files_.write(part.fd(), rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      require_success(written, "write", part.path);
      if (written == 0) throw Error(Fault::resource, concat("write ", part.path, ": the file system took no bytes"));
      rest = rest.subspan(static_cast<size_t>(written));
    }
}

void DiskCache::give_up(const std::string& reason) {
  ++unstored_;
  if (!writable_.exchange(false)) return;
  if (notice_)
    notice_(concat("the disk cache of remote data takes no more blocks; training goes on without: ", reason));
}

RemoteCacheStats DiskCache::stats() const {
  return {.bytes_from_disk = from_disk_,
          .bytes_fetched = fetched_,
          .damaged_blocks = damaged_,
          .unstored_blocks = unstored_};
}

}  // namespace dtrain::remote
