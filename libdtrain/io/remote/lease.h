// Lease: an object that names the job which may write below a prefix, so that two jobs never do.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "libdtrain/io/remote/remote_storage.h"

namespace dtrain::remote {

// Content of a lease, in JSON.
struct LeaseHolder {
  std::string writer;           // unique to a working folder: its next process takes the lease over at once
  std::string run, host, time;  // for messages; time: when it was refreshed, by the holder's clock
  int64_t pid = 0;
  int64_t seconds = 0;  // after which a lease that is not refreshed expires
};
std::string lease_text(const LeaseHolder& holder);
// Throws Error(Fault::config), prefixed by `where`, for other texts.
LeaseHolder lease_from(const std::string& text, const std::string& where);

struct LeaseOptions {
  std::function<void(const std::string&)> note{};  // receives why it waits
  std::function<bool()> stop{};                    // polled while waiting: true ends the wait with an Error
};

// Taken by a PUT with If-None-Match or If-Match, and read again for services that ignore these headers; refreshed by a
// thread four times in its lifetime; ages are measured by the service's clock.
class Lease {
 public:
  // Takes the lease. If another writer holds it, waits until it expires. Throws Error(Fault::config), naming the
  // holder and the lease's age, as soon as that writer refreshes it; Error(Fault::resource) if the service fails.
  Lease(std::shared_ptr<RemoteStorage> storage, S3Address object, LeaseHolder own, const LeaseOptions& options = {});
  // Deletes it if it is still held and the service answers at the first attempt. Else it expires.
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  // For messages of others, from the next time on that it is refreshed.
  void set_run(const std::string& run);
  // Throws Error(Fault::config) if another writer has taken it over.
  void require_held();

 private:
  struct Seen {
    LeaseHolder holder;
    std::string etag;
    std::chrono::seconds age{};
  };
  std::optional<Seen> read(bool once = false) const;
  // Whether this writer holds it now. `etag` empty: there is none yet.
  bool write(const std::string& etag);
  void acquire(const LeaseOptions& options);
  void refresh();
  void refresh_regularly();
  std::string describe(const Seen& seen) const;

  const std::shared_ptr<RemoteStorage> storage_;
  const S3Address object_;
  LeaseHolder own_;
  std::mutex mutex_;  // of the requests after acquire(), of own_ and ending_
  std::condition_variable wake_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace dtrain::remote
