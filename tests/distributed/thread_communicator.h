// Ranks as threads of one process, each with its own context, for tests of collectives.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "dtrain/distributed/communicator.h"

namespace dtrain {

// Barrier at which threads exchange pointers.
class MeetingPlace {
 public:
  explicit MeetingPlace(int size) : shown_(static_cast<size_t>(size)) {}

  // Pointers from all ranks; valid until all have called again.
  std::vector<const void*> exchange(int rank, const void* mine) {
    std::unique_lock lock(mutex_);
    shown_[static_cast<size_t>(rank)] = mine;
    const uint64_t round = round_;
    if (++arrived_ == shown_.size()) {
      arrived_ = 0;
      ++round_;
      seen_ = shown_;
      all_here_.notify_all();
    }
    all_here_.wait(lock, [&] { return round_ != round || abandoned_; });
    if (round_ == round) throw Error(Fault::communication, "another rank has given up");
    return seen_;
  }
  // A rank will not return: the others stop waiting.
  void abandon() {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
    all_here_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  std::vector<const void*> shown_, seen_;
  size_t arrived_ = 0;
  uint64_t round_ = 0;
  bool abandoned_ = false;
};

class ThreadGroup : public Group {
 public:
  ThreadGroup(MeetingPlace& place, int rank, int size) : place_(place) {
    rank_ = rank;
    places_.clear();
    for (int i = 0; i < size; ++i) places_.push_back({.host = "here", .local_rank = i, .local_size = size});
  }
  void spread() {  // places each rank on its own host
    for (int i = 0; i < size(); ++i) places_[static_cast<size_t>(i)] = {.host = "host-" + std::to_string(i), .node = i};
  }

  // Copies of the others' values, T.
  template <class T>
  std::vector<T> exchange(const T& mine) {
    std::vector<T> all;
    for (const void* shown : place_.exchange(rank(), &mine)) all.push_back(*static_cast<const T*>(shown));
    place_.exchange(rank(), nullptr);  // all have read
    return all;
  }
  std::vector<std::string> all_gather(const std::string& mine, const char*) override { return exchange(mine); }
  void enter(Section, uint64_t) override {}
  std::string transport() const override { return "threads"; }
  void finish() override {}

 private:
  MeetingPlace& place_;
};

// Sums in rank order. Like an asynchronous all-reduce, results appear at join(); before, the memory is NaN.
class ThreadCommunicator : public Communicator {
 public:
  ThreadCommunicator(ThreadGroup& group, Context& context) : Communicator(group), threads_(group), context_(context) {}

  void all_reduce(std::span<const Tensor> ranges, const std::string& what, bool) override {
    ++calls_;
    for (const Tensor& range : ranges) {
      Message mine{what, std::vector<float>(static_cast<size_t>(range.count()))};
      context_.download(range, mine.values.data(), "all_reduce");
      const auto all = threads_.exchange(mine);
      std::vector<float> sums(mine.values.size());
      for (const Message& one : all) {
        DT_CHECK(one.what == what && one.values.size() == sums.size(), "a rank sums ", one.values.size(), " numbers, '",
                 one.what, "', while another one sums ", sums.size(), ", '", what, "'");
        for (size_t i = 0; i < sums.size(); ++i) sums[i] += one.values[i];
      }
      context_.upload(std::vector<float>(sums.size(), std::numeric_limits<float>::quiet_NaN()).data(), range);
      arriving_.push_back({range, std::move(sums)});
    }
  }
  void broadcast(const Tensor& x, int root, const std::string&) override {
    std::vector<uint8_t> bytes(x.bytes());
    context_.download(x, bytes.data(), "broadcast");
    context_.upload(threads_.exchange(bytes)[static_cast<size_t>(root)].data(), x);
  }
  void join() override {
    for (const auto& [range, sums] : arriving_) context_.upload(sums.data(), range);
    arriving_.clear();
  }
  std::string describe() const override { return "in the order of the ranks, over threads, f32"; }
  CommunicatorTimes take_times() override { return {}; }
  int calls() const { return calls_; }  // all-reduces so far

 private:
  struct Message {
    std::string what;
    std::vector<float> values;
  };
  ThreadGroup& threads_;
  Context& context_;
  std::vector<std::pair<Tensor, std::vector<float>>> arriving_;
  int calls_ = 0;
};

// Runs body on `size` threads, each with a context of `make_context`; rethrows the first exception.
inline void on_ranks(int size, const std::function<std::unique_ptr<Context>()>& make_context,
                     const std::function<void(Context&, ThreadCommunicator&)>& body) {
  MeetingPlace place(size);
  std::exception_ptr failure;
  std::once_flag failed;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        const auto context = make_context();
        ThreadGroup group(place, rank, size);
        ThreadCommunicator communicator(group, *context);
        body(*context, communicator);
      } catch (...) {
        std::call_once(failed, [&] { failure = std::current_exception(); });
        place.abandon();
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace dtrain
