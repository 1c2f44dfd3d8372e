// The connections of an HttpClient: libcurl's handles, each of which keeps its connection open for later requests.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "dtrain/core/error.h"
#include "libdtrain/io/remote/curl_library.h"
#include "libdtrain/io/remote/http_client.h"

namespace dtrain::remote {

inline constexpr size_t kMostIdle = 64, kMostInFlight = 256, kLeastInFlight = 8;

struct EasyHandle {
  CurlHandle* curl_handle = curl().init();
  EasyHandle() {
    if (curl_handle == nullptr) throw Error(Fault::resource, "libcurl: out of memory");
  }
  ~EasyHandle() { curl().cleanup(curl_handle); }
  EasyHandle(const EasyHandle&) = delete;
  EasyHandle& operator=(const EasyHandle&) = delete;
};

// Requests in flight take sockets, whose number the process's limit of descriptors bounds.
struct HttpClient::Connections {
  std::mutex mutex;
  std::condition_variable finished;
  std::vector<std::unique_ptr<EasyHandle>> idle;
  size_t in_flight = 0, most_in_flight = kMostInFlight;

  Connections() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      most_in_flight = std::clamp(static_cast<size_t>(limit.rlim_cur) / 4, kLeastInFlight, kMostInFlight);
  }

  // The handle that was used last: its connection is the least likely to have been closed.
  std::unique_ptr<EasyHandle> take() {
    {
      std::unique_lock lock(mutex);
      finished.wait(lock, [&] { return in_flight < most_in_flight; });
      ++in_flight;
      if (!idle.empty()) {
        std::unique_ptr<EasyHandle> handle = std::move(idle.back());
        idle.pop_back();
        return handle;
      }
    }
    try {
      return std::make_unique<EasyHandle>();
    } catch (...) {
      give(nullptr);
      throw;
    }
  }
  // Closes the connection if enough others are open; null: it cannot be used again.
  void give(std::unique_ptr<EasyHandle> handle) {
    {
      const std::lock_guard lock(mutex);
      --in_flight;
      if (handle && idle.size() < kMostIdle) idle.push_back(std::move(handle));
    }
    finished.notify_one();
  }
};

// A handle that is in use.
class HttpClient::Lease {
 public:
  explicit Lease(Connections& connections) : connections_(connections), handle_(connections.take()) {}
  ~Lease() { connections_.give(std::move(handle_)); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  CurlHandle* get() const { return handle_->curl_handle; }

 private:
  Connections& connections_;
  std::unique_ptr<EasyHandle> handle_;
};

}  // namespace dtrain::remote
