// Server metrics for Prometheus.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace dtrain::serve {

// Thread-safe.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  void answered(int status, double seconds);
  void computed(size_t images, double seconds);
  void reloaded(uint64_t version);
  void failed_to_reload();
  // Prometheus text format, with `waiting` queued images.
  std::string text(size_t waiting);

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace dtrain::serve
