#include "apps/serve/batcher.h"

#include <algorithm>

#include "dtrain/core/error.h"

namespace dtrain::serve {

Batcher::Batcher(BatcherOptions options) : options_(std::move(options)) {
  for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { work(); });
}

Batcher::~Batcher() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::vector<std::future<Prediction>> Batcher::submit(const std::shared_ptr<const Session>& session,
                                                     std::vector<Pixels> images, Clock::time_point deadline) {
  std::vector<std::future<Prediction>> results;
  const std::lock_guard lock(mutex_);
  if (items_.size() + images.size() > options_.max_waiting) return results;
  const Clock::time_point now = Clock::now();
  for (Pixels& pixels : images) {
    items_.push_back({session, std::move(pixels), now, deadline, {}});
    results.push_back(items_.back().result.get_future());
  }
  changed_.notify_all();
  return results;
}

size_t Batcher::waiting() const {
  const std::lock_guard lock(mutex_);
  return items_.size();
}

size_t Batcher::batch_limit() const { return std::min(options_.max_batch, items_.front().session->max_batch()); }

std::vector<Batcher::Item> Batcher::take() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || !items_.empty(); });
    if (items_.empty()) return {};
    const auto full = [&] { return ending_ || items_.empty() || items_.size() >= batch_limit(); };
    changed_.wait_until(lock, items_.front().arrived + options_.max_delay, full);
    if (!items_.empty()) break;  // another thread may have taken them meanwhile
  }
  std::vector<Item> batch;
  const std::shared_ptr<const Session> session = items_.front().session;
  const size_t limit = batch_limit();
  while (!items_.empty() && batch.size() < limit && items_.front().session == session) {
    batch.push_back(std::move(items_.front()));
    items_.pop_front();
  }
  return batch;
}

void Batcher::compute(std::vector<Item>& batch) const {
  const Clock::time_point start = Clock::now();
  std::erase_if(batch, [&](Item& item) {
    if (item.deadline > start) return false;
    item.result.set_exception(
        std::make_exception_ptr(Error(Fault::resource, "the request timed out before this image was computed")));
    return true;
  });
  if (batch.empty()) return;
  std::vector<const Pixels*> images;
  for (const Item& item : batch) images.push_back(&item.pixels);
  std::vector<Prediction> results;
  try {
    results = batch.front().session->predict(images);
  } catch (...) {
    for (Item& item : batch) item.result.set_exception(std::current_exception());
    return;
  }
  if (options_.computed) options_.computed(batch.size(), std::chrono::duration<double>(Clock::now() - start).count());
  for (size_t i = 0; i < batch.size(); ++i) {
    results[i].damage = std::move(batch[i].pixels.damage);
    batch[i].result.set_value(std::move(results[i]));
  }
}

void Batcher::work() {
  for (std::vector<Item> batch = take(); !batch.empty(); batch = take()) {
    compute(batch);
    batch.clear();  // their queue space is needed while this waits for more
  }
}

}  // namespace dtrain::serve
