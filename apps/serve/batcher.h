// Images of concurrent requests become batches, within a bound on how long the first of them waits.
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
  size_t max_waiting = 256;                // images that wait; more are refused
  std::chrono::microseconds max_delay{0};  // how long an image waits for others while a thread is idle
  int threads = 1;                         // batches that are computed at once
  std::function<void(size_t images, double seconds)> computed{};  // called by the threads after each batch
};

class Batcher {
 public:
  explicit Batcher(BatcherOptions options);
  // What waits is computed first.
  ~Batcher();
  Batcher(const Batcher&) = delete;

  using Clock = std::chrono::steady_clock;
  // The results of `images`, which `session` has made, in their order; none where they would be more than may wait.
  // An image that no batch has taken up at `deadline` is dropped, and its future throws Error(Fault::resource); that of
  // a batch that fails throws its Error.
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
  size_t batch_limit() const;  // of the next batch; there is an item
  // The next images of one session; none once all is done and no more will come.
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
