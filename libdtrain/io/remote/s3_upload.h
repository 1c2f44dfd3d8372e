// S3Upload: writes an object of any size in parts. It appears when finish() returns, whole, or never.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "libdtrain/io/remote/remote_storage.h"

namespace dtrain::remote {

// S3 accepts up to 10,000 parts, all but the last of at least 5 MiB.
inline constexpr size_t kUploadPartBytes = size_t{16} << 20, kMostUploadParts = 10'000;

// An object of at most one part is written by one request. Throws Error(Fault::resource).
class S3Upload {
 public:
  S3Upload(RemoteStorage& storage, S3Address address, size_t part_bytes = kUploadPartBytes);
  // Without finish(): aborts, so that the service keeps no parts.
  ~S3Upload();
  S3Upload(const S3Upload&) = delete;
  S3Upload& operator=(const S3Upload&) = delete;

  void append(std::string_view bytes);
  // Returns the object's ETag.
  std::string finish();

 private:
  void begin();
  void send_part();
  std::string complete();

  RemoteStorage& storage_;
  const S3Address address_;
  const size_t part_bytes_;
  std::string pending_;
  std::string id_;                  // of the upload; empty: not begun, or ended
  std::vector<std::string> etags_;  // of the parts that were sent
};

}  // namespace dtrain::remote
