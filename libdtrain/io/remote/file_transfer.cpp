#include "libdtrain/io/remote/file_transfer.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "dtrain/io/atomic_file.h"
#include "dtrain/io/input_file.h"
#include "libdtrain/io/digest.h"
#include "libdtrain/io/remote/s3_upload.h"

namespace dtrain::remote {
namespace {

constexpr size_t kUploadThreads = 4;  // requests at once, of one part each

std::string sha256_of(const InputFile& file, uint64_t bytes) {
  Sha256 hash;
  std::string block(std::min<uint64_t>(bytes, size_t{1} << 20), '\0');
  for (uint64_t at = 0; at < bytes; at += block.size()) {
    block.resize(std::min<uint64_t>(block.size(), bytes - at));
    file.read(at, block.data(), block.size());
    hash.add(block.data(), block.size());
  }
  return hash.hex();
}

std::string read_part(const InputFile& file, uint64_t at, uint64_t bytes) {
  std::string part(std::min<uint64_t>(kUploadPartBytes, bytes - at), '\0');
  file.read(at, part.data(), part.size());
  return part;
}

// On threads of their own; the first failure ends them all.
void upload_parts(S3Upload& upload, const InputFile& file, uint64_t bytes) {
  const size_t parts = (bytes + kUploadPartBytes - 1) / kUploadPartBytes;
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      for (size_t part; (part = next.fetch_add(1)) < parts;)
        upload.put_part(part + 1, read_part(file, part * kUploadPartBytes, bytes));
    } catch (...) {
      next = parts;
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < std::min(kUploadThreads, parts); ++i) threads.emplace_back(work);
  }
  if (failure) std::rethrow_exception(failure);
}

void download(const InputFile& from, const std::string& path, const FileSum* expected) {
  Sha256 hash;
  OutputFile to(system_files(), path);
  std::string block(size_t{8} << 20, '\0');
  uint64_t at = 0;
  while (const size_t got = from.read_some(at, block.data(), block.size())) {
    hash.add(block.data(), got);
    to.write(block.data(), got);
    at += got;
  }
  to.sync();
  if (expected != nullptr && (at != expected->bytes || hash.hex() != expected->sha256))
    throw Error(Fault::checkpoint, concat(from.path(), ": damaged: ", at, " bytes, the manifest says ", expected->bytes,
                                          at == expected->bytes ? " with another SHA-256" : ""));
}

}  // namespace

FileSum sum_of_file(const std::string& path) {
  const InputFile file(path, Fault::resource);
  const uint64_t bytes = file.size();
  return {bytes, sha256_of(file, bytes)};
}

FileSum upload_file(RemoteStorage& storage, const std::string& path, const S3Address& to) {
  const InputFile file(path, Fault::resource);
  const uint64_t bytes = file.size();
  FileSum sum{bytes, sha256_of(file, bytes)};
  if (bytes <= kUploadPartBytes) {
    storage.s3.put(to, read_part(file, 0, bytes));
    return sum;
  }
  S3Upload upload(storage, to);
  upload_parts(upload, file, bytes);
  upload.finish();
  return sum;
}

void download_file(const S3Address& from, const std::string& path, const FileSum& expected) {
  download(InputFile(from.text(), Fault::resource), path, &expected);
}

void download_file(const S3Address& from, const std::string& path) {
  download(InputFile(from.text(), Fault::resource), path, nullptr);
}

}  // namespace dtrain::remote
