#include "libdtrain/io/remote/remote_storage.h"

#include <mutex>
#include <utility>

#include "dtrain/core/error.h"
#include "dtrain/io/remote_cache.h"
#include "dtrain/io/remote_path.h"

namespace dtrain {
namespace remote {
namespace {

constexpr size_t kMostWindowBytes = size_t{128} << 20, kMostPrefetchedBytes = size_t{128} << 20;

struct Process {
  std::mutex mutex;
  Variables variables;
  std::shared_ptr<RemoteStorage> storage;
  std::shared_ptr<DiskCache> cache;
};

// Never destroyed: threads may read until the process ends.
Process& process() {
  static auto& one = *new Process;
  return one;
}

}  // namespace

RemoteStorage::RemoteStorage(const Variables& variables)
    : http(variables),
      s3(http, variables),
      policy(RetryPolicy::from(variables)),
      windows(kMostWindowBytes),
      prefetched(kMostPrefetchedBytes) {}

std::shared_ptr<RemoteStorage> remote_storage() {
  Process& one = process();
  const std::lock_guard lock(one.mutex);
  if (!one.storage) one.storage = std::make_shared<RemoteStorage>(one.variables);
  return one.storage;
}

std::shared_ptr<DiskCache> remote_disk_cache() {
  Process& one = process();
  const std::lock_guard lock(one.mutex);
  return one.cache;
}

}  // namespace remote

void set_remote_cache(RemoteCacheOptions options) {
  std::shared_ptr<remote::DiskCache> cache;
  if (options.max_bytes > 0) try {
      cache = std::make_shared<remote::DiskCache>(options);
    } catch (const Error& error) {
      if (error.fault() == Fault::config) throw;
      if (options.notice) options.notice(concat("remote data is read without a disk cache: ", error.what()));
    }
  remote::Process& one = remote::process();
  const std::lock_guard lock(one.mutex);
  one.cache = std::move(cache);
}

RemoteCacheStats remote_cache_stats() {
  const auto cache = remote::remote_disk_cache();
  return cache ? cache->stats() : RemoteCacheStats();
}

void set_remote_variables(std::function<const char*(const char*)> variables) {
  remote::Process& one = remote::process();
  const std::lock_guard lock(one.mutex);
  one.variables = std::move(variables);
  one.storage.reset();
}

}  // namespace dtrain
