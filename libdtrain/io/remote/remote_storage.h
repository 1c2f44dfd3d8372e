// RemoteStorage: the process's clients for object storage and HTTP, made at the first remote address.
#pragma once

#include <memory>

#include "libdtrain/io/remote/disk_cache.h"
#include "libdtrain/io/remote/http_client.h"
#include "libdtrain/io/remote/prefetch_queue.h"
#include "libdtrain/io/remote/read_window.h"
#include "libdtrain/io/remote/s3_client.h"

namespace dtrain::remote {

class RemoteStorage {
 public:
  explicit RemoteStorage(const Variables& variables);

  HttpClient http;
  S3Client s3;
  const RetryPolicy policy;
  ReadWindows windows;
  PrefetchQueue prefetched;
};

// With the variables of set_remote_variables() (dtrain/io/remote_path.h). Files keep the one that they were opened
// with.
std::shared_ptr<RemoteStorage> remote_storage();
// The cache of set_remote_cache() (dtrain/io/remote_cache.h); null: none.
std::shared_ptr<DiskCache> remote_disk_cache();

}  // namespace dtrain::remote
