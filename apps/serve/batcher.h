// Dynamic batching: collects images of concurrent requests into batches, with a bounded delay.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "apps/serve/session.h"

namespace dtrain::serve {

struct BatcherOptions {
  size_t max_batch = 8;
  size_t max_waiting = 256;                                       // queue limit; more images are refused
  std::chrono::microseconds max_delay{0};                         // maximum delay of an image while a thread is idle
  int threads = 1;                                                // concurrent batches
  std::function<void(size_t images, double seconds)> computed{};  // called by worker threads after each batch
};

class Batcher {
 public:
  explicit Batcher(BatcherOptions options);
  // Completes the queued images first.
  ~Batcher();
  Batcher(const Batcher&) = delete;

  using Clock = std::chrono::steady_clock;
  // Queues `images`, decoded by `session`, and returns their futures in order; none if the queue limit would be
  // exceeded. An image that is not in a batch by `deadline` is dropped: its future throws Error(Fault::resource).
  // Futures of a failed batch throw its Error.
  std::vector<std::future<Prediction>> submit(const std::shared_ptr<const Session>& session, std::vector<Pixels> images,
                                              Clock::time_point deadline);
  size_t waiting() const;

 private:
  struct Item {
    std::shared_ptr<const Session> session;
    Pixels pixels;
    Clock::time_point arrived, deadline;
    std::promise<Prediction> result;
  };
  void work();
  size_t batch_limit() const;  // of the next batch; the queue is not empty
  // The next images of one session; empty at shutdown, once the queue is empty.
  std::vector<Item> take();
  void compute(std::vector<Item>& batch) const;

  const BatcherOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace dtrain::serve
