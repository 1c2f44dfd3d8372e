#include "data/unpacked_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "dtrain/io/atomic_file.h"
#include "dtrain/io/record_file.h"
#include "libdtrain/io/digest.h"
#include "libdtrain/io/file_lock.h"
#include "libdtrain/io/gzip.h"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPiece = size_t{1} << 20;
constexpr uint64_t kBetweenSums = uint64_t{64} << 20;  // bytes between two checks of the folder's size
constexpr time_t kSecondsKept = time_t{30} * 24 * 60 * 60;
constexpr std::string_view kCopy = ".tfrecord";

void require_no_stop(const CacheOptions& cache) {
  if (cache.stop && cache.stop()) throw Error(Fault::resource, "a stop was requested");
}

std::string digest_of(const InputFile& file, const CacheOptions& cache) {
  Digest digest;
  const auto piece = std::make_unique_for_overwrite<char[]>(kPiece);
  uint64_t offset = 0;
  for (size_t got = kPiece; got == kPiece; offset += got) {
    require_no_stop(cache);
    got = file.read_some(offset, piece.get(), kPiece);
    digest.add(piece.get(), got);
  }
  return digest.hex();
}

// Digest by path, size and modification time; hashing the whole file at each start would take as long as decompression.
std::string remembered_digest(const InputFile& file, const std::string& folder, const CacheOptions& cache) {
  const std::string note = folder + "/" + cached_name(file.path()) + ".source";
  const std::string facts = concat(file.size(), " ", file.revision(), " ");
  constexpr size_t kMaxNote = 256;
  std::string text;
  try {
    text = read_text(note, kMaxNote);
  } catch (const Error&) {  // not cached yet
  }
  if (text.starts_with(facts) && text.size() == facts.size() + Digest::kDigits) return text.substr(facts.size());
  const std::string digest = digest_of(file, cache);
  AtomicFile written(note);
  written.write(facts + digest);
  written.commit();
  return digest;
}

uint64_t bytes_in(const std::string& folder) {
  uint64_t sum = 0;
  std::error_code gone;  // other processes add and remove files concurrently
  for (const auto& entry : fs::directory_iterator(folder)) {
    const uintmax_t bytes = entry.file_size(gone);
    if (!gone) sum += bytes;
  }
  return sum;
}

// Writes the records of a gzip file.
class Unpacker {
 public:
  Unpacker(const InputFile& packed, AtomicFile& to, const CacheOptions& cache)
      : packed_(packed), stream_(packed), to_(to), folder_(directory_of(to.path())), cache_(cache) {}

  // Stops after the first invalid header, so that the index ends there and reports it.
  void run() {
    std::array<std::byte, kRecordHeader> header;
    std::optional<uint64_t> length;
    do {
      const size_t got = stream_.read(header.data(), header.size());
      append(header.data(), got);
      length = got == header.size() ? record_length(header) : std::nullopt;
    } while (length && *length <= kMaxRecordBytes && append_from_stream(*length + kRecordFooter));
    flush();
    if (stream_.fault())
      throw Error(Fault::data, concat(packed_.path(), ": ", stream_.fault(), "; copy or make the file again"));
  }

 private:
  void append(const std::byte* data, size_t size) {
    if (used_ + size > kPiece) flush();
    std::copy_n(data, size, piece_.get() + used_);
    used_ += size;
  }

  // Returns false if the stream ends early.
  bool append_from_stream(uint64_t bytes) {
    while (bytes > 0) {
      if (used_ == kPiece) flush();
      const size_t wanted = std::min<uint64_t>(bytes, kPiece - used_), got = stream_.read(piece_.get() + used_, wanted);
      used_ += got;
      bytes -= got;
      if (got < wanted) return false;
    }
    return true;
  }

  void flush() {
    require_no_stop(cache_);
    const uint64_t written = to_.output().size();
    if (written >= next_sum_) {
      others_ = bytes_in(folder_) - written;
      next_sum_ = written + kBetweenSums;
    }
    if (others_ + written + used_ > cache_.max_unpacked_bytes)
      throw Error(Fault::resource,
                  concat("the copies in ", folder_, " would take more than the ", cache_.max_unpacked_bytes,
                         " bytes they may: remove some, or raise the limit"));
    to_.write(piece_.get(), used_);
    used_ = 0;
  }

  const InputFile& packed_;
  GzipReader stream_;
  AtomicFile& to_;
  const std::string folder_;
  const CacheOptions& cache_;
  std::unique_ptr<std::byte[]> piece_ = std::make_unique_for_overwrite<std::byte[]>(kPiece);
  size_t used_ = 0;
  uint64_t others_ = 0, next_sum_ = 0;  // bytes of other files in the folder; own bytes at the next check
};

// Updates the access time, for file systems that do not.
void mark_as_read(const std::string& copy) {
  const std::array<timespec, 2> times{{{0, UTIME_NOW}, {0, UTIME_OMIT}}};
  ::utimensat(AT_FDCWD, copy.c_str(), times.data(), 0);
}

bool is_forgotten(const std::string& copy) {
  struct stat info;
  return ::stat(copy.c_str(), &info) == 0 && ::time(nullptr) - info.st_atim.tv_sec > kSecondsKept;
}

// Removes long-unused copies with their indices, and leftovers of killed processes.
void clean(const std::string& folder) {
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string path = entry.path(), name = entry.path().filename();
    const bool temporary = is_temporary_name(name);
    const std::string copy = temporary ? name.substr(0, name.rfind(".tmp-")) : name;
    if (!copy.ends_with(kCopy) || !(temporary || is_forgotten(path))) continue;
    const std::string lock = folder + "/" + copy.substr(0, copy.size() - kCopy.size()) + ".lock";
    try {
      const FileLock alone(lock);
      fs::remove(path, gone);
      fs::remove(lock, gone);
      if (!temporary) fs::remove(folder + "/." + copy + ".dtidx", gone);
    } catch (const Error&) {  // in use by another process
    }
  }
}

std::string copy_of(const InputFile& packed, const CacheOptions& cache) {
  const std::string folder = cache.directory + "/unpacked";
  make_directories(system_files(), folder);
  const std::string stem = folder + "/" + remembered_digest(packed, folder, cache), copy = stem + std::string(kCopy);
  if (!fs::exists(copy)) {
    clean(folder);
    const FileLock lock(stem + ".lock", FileLock::IfHeld::wait, cache.stop);
    if (!fs::exists(copy)) {  // not made by another process meanwhile
      AtomicFile file(copy);
      Unpacker(packed, file, cache).run();
      file.commit();
    }
  }
  mark_as_read(copy);
  return copy;
}

}  // namespace

std::string plain_record_file(const std::string& path, const CacheOptions& cache) {
  RecordReader reader(path);
  if (reader.compression() == Compression::none) return path;
  try {
    reader.next();
  } catch (const RecordError& error) {
    if (error.rest_lost()) throw;  // its checksum is wrong, which its reader reports
  }
  const auto refuse = [&](const std::string& reason) -> std::string {
    throw Error(Fault::resource, concat(path, ": is gzip-compressed, and ", reason, "; unpack it: zcat '", path,
                                        "' > FILE, and train from a directory of unpacked files"));
  };
  if (cache.directory.empty()) return refuse("there is no cache directory for a plain copy");
  try {
    return copy_of(InputFile(path), cache);
  } catch (const Error& error) {
    if (error.fault() == Fault::data) throw;
    return refuse(concat("a plain copy cannot be kept (", error.what(), ")"));
  }
}

}  // namespace dtrain::data
