// Copies of whole files to and from object storage.
#pragma once

#include <cstdint>
#include <string>

#include "libdtrain/io/remote/remote_storage.h"

namespace dtrain::remote {

struct FileSum {
  uint64_t bytes = 0;
  std::string sha256{};  // hexadecimal
};

// Of a local file. Throws Error(Fault::resource).
FileSum sum_of_file(const std::string& path);

// Uploads the bytes that the file has now, in parts by several requests at once; returns their checksum. Throws
// Error(Fault::resource).
FileSum upload_file(RemoteStorage& storage, const std::string& path, const S3Address& to);

// Downloads into the new file `path`, and syncs it. Throws Error(Fault::checkpoint) if the content has another size or
// checksum, Error(Fault::resource) if it cannot be transferred.
void download_file(const S3Address& from, const std::string& path, const FileSum& expected);
// The same for an object whose checksum is unknown.
void download_file(const S3Address& from, const std::string& path);

}  // namespace dtrain::remote
