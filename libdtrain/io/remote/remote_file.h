// RemoteFile: random-access reads of an object in S3 or of a file on an HTTP server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dtrain/core/error.h"
#include "libdtrain/io/remote/cached_file.h"
#include "libdtrain/io/remote/http_client.h"
#include "libdtrain/io/remote/s3_client.h"

namespace dtrain::remote {

class RemoteStorage;

// Parsed from s3://BUCKET/KEY; the key is not encoded. Throws Error(fault) for a name that is no bucket's, or without a
// key unless `is_folder`, which ends a key with '/'.
S3Address parse_s3(const std::string& text, Fault fault, bool is_folder = false);

// Throws Error(fault) unless it is https://HOST/PATH or http://HOST/PATH without a user.
void require_web_address(const std::string& address, Fault fault);

// Text of an address for messages: without the query and the user of a URL, which may contain a signature and a
// password.
std::string shown(const std::string& address);

// "bytes 0-99/1234" of Content-Range; total is absent for '*'.
struct ByteRange {
  uint64_t first = 0, last = 0;
  std::optional<uint64_t> total{};
};
std::optional<ByteRange> parse_content_range(const std::string& text);

// Bytes of a file, and where they go.
struct ReadPart {
  uint64_t offset = 0;
  std::span<char> into{};
};

// Thread-safe. Opening reads the first bytes. All later answers must have the ETag and size of the first: an object
// that is replaced meanwhile is an error. Sequential reads fetch ahead in growing windows; large reads use several
// connections. With a disk cache (dtrain/io/remote_cache.h), contents with a strong ETag are read through it.
class RemoteFile {
 public:
  RemoteFile(const std::string& address, Fault fault);
  ~RemoteFile();
  RemoteFile(const RemoteFile&) = delete;
  RemoteFile& operator=(const RemoteFile&) = delete;

  uint64_t size() const { return size_; }
  // Differs for contents of another ETag, time of modification or size.
  int64_t revision() const;
  // As InputFile::read_some.
  size_t read_some(uint64_t offset, void* to, size_t size) const;
  // As InputFile::prefetch.
  void prefetch(uint64_t offset, size_t size) const;

 private:
  HttpAnswer get(uint64_t first, std::span<char> into, const AnswerCheck& check, bool once = false) const;
  void open();
  uint64_t bytes_to_fetch(uint64_t offset, uint64_t wanted) const;
  void use_cache();
  // `once`: without retries.
  void fetch(uint64_t offset, std::span<char> into, bool once) const;
  void fetch_parts(const std::vector<ReadPart>& parts, bool once) const;
  void fetch_part(uint64_t offset, std::span<char> into, bool once) const;
  [[noreturn]] void fail(const HttpAnswer& answer) const;

  const std::shared_ptr<RemoteStorage> storage_;
  const std::string address_, shown_;
  const Fault fault_;
  const std::optional<S3Address> s3_;
  const uint64_t id_;  // of its window
  uint64_t size_ = 0;
  std::string etag_, modified_;
  mutable std::mutex mutex_;
  mutable uint64_t end_ = 0, ahead_ = 0;      // of the last fetch, and its size
  std::unique_ptr<const CachedFile> cached_;  // null: without the disk cache
};

}  // namespace dtrain::remote
