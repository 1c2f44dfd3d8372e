// S3Upload: writes an object of any size in parts. It appears when finish() returns, whole, or never.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "libdtrain/io/remote/remote_storage.h"

namespace dtrain::remote {

// S3 accepts up to 10,000 parts, all but the last of at least 5 MiB.
inline constexpr size_t kUploadPartBytes = size_t{16} << 20, kMostUploadParts = 10'000;

// Bytes come by append(), in order, or part by part from several threads by put_part(). An object of at most one
// appended part is written by one request. Throws Error(Fault::resource). A process that is killed, or whose request
// for a new upload loses its answer, leaves an unfinished upload, which the bucket's lifecycle rule
// AbortIncompleteMultipartUpload removes.
class S3Upload {
 public:
  S3Upload(RemoteStorage& storage, S3Address address, size_t part_bytes = kUploadPartBytes);
  // Without finish(): aborts, so that the service keeps no parts.
  ~S3Upload();
  S3Upload(const S3Upload&) = delete;
  S3Upload& operator=(const S3Upload&) = delete;

  void append(std::string_view bytes);
  // Part `number`, from 1. All but the last have the same size. Thread-safe.
  void put_part(size_t number, std::string_view bytes);
  // Returns the object's ETag.
  std::string finish();

 private:
  void begin();
  void send_pending();
  std::string complete();
  // ETag of the object if this upload made it, although the request that did so has got no answer; else empty.
  std::string etag_if_completed() const;

  RemoteStorage& storage_;
  const S3Address address_;
  const size_t part_bytes_;
  const std::string mark_;  // metadata of the object, which tells it from those of other uploads
  std::string pending_;
  std::mutex mutex_;
  std::string id_;                       // of the upload; empty: not begun, or ended
  std::map<size_t, std::string> etags_;  // of the parts that were sent, by number
};

}  // namespace dtrain::remote
