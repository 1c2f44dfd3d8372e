// What a server has done, for Prometheus.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace dtrain::serve {

// Any thread may call any of these.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  void answered(int status, double seconds);
  void computed(size_t images, double seconds);
  void took_up(uint64_t version);
  void failed_to_take_up();
  // The text format, with `waiting` images in the queue.
  std::string text(size_t waiting);

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace dtrain::serve
