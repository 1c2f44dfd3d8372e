// All-reduce and broadcast of host memory over a lane of the communication thread.
#include <algorithm>
#include <chrono>
#include <utility>

#include "dtrain/core/error.h"
#include "libdtrain/distributed/collective_thread.h"
#include "libdtrain/distributed/transports.h"

namespace dtrain {
namespace host {
namespace {

using Clock = std::chrono::steady_clock;

// Message size in bytes up to which recursive doubling (latency-bound) is used; above, ring or direct.
constexpr int64_t kShort = 64 << 10;

class HostCommunicator : public Communicator {
 public:
  HostCommunicator(AllReduceGroup& group, const CommunicatorOptions& options)
      : Communicator(group, options),
        thread_(group.thread()),
        lane_(thread_.open_lane(options.stream == Stream::compute ? "statistics" : "gradients")) {
    for (const Place& place : group.places()) nodes_.push_back(place.node);
    for (int rank = 0; rank < size(); ++rank) order_.push_back(rank);
    std::ranges::stable_sort(order_, {}, [&](int rank) { return nodes_[static_cast<size_t>(rank)]; });
    place_ = static_cast<int>(std::ranges::find(order_, this->rank()) - order_.begin());
    const std::string& name = options.algorithm;
    DT_CHECK(name == "auto" || name == "ring" || name == "direct" || name == "hierarchical" || name == "doubling",
             "all-reduce algorithm '", name, "': on CPUs there are auto, ring, direct, hierarchical and doubling");
    DT_CHECK(name != "hierarchical" || suits_hierarchy(nodes_),
             "all-reduce algorithm 'hierarchical': it needs several hosts with equally many ranks, several on each");
    const bool one_host = std::ranges::all_of(nodes_, [&](int node) { return node == nodes_[0]; });
    long_ = name != "auto" ? name : suits_hierarchy(nodes_) ? "hierarchical" : one_host ? "direct" : "ring";
    if (one_host && long_ == "direct" && size() > 1)
      shared_ = SharedMemory::open(group, options.stream == Stream::communication);
  }

  void all_reduce(std::span<const Tensor> ranges, const std::string& what, bool exact) override {
    int64_t count = 0;
    for (const Tensor& range : ranges) {
      DT_CHECK(range.dtype() == DType::f32, "all-reduce '", what, "': tensors of ", range.dtype(), ", expected f32");
      count += range.count();
    }
    if (count == 0) return;
    bytes_ += static_cast<double>(count) * sizeof(float);
    const bool doubling = doubles(count);
    Collective collective{.what = what,
                          .bytes = static_cast<uint64_t>(count) * sizeof(float),
                          .elements = {.memory = nullptr,
                                       .size = sizeof(float),
                                       // doubling stays in f32: ranks would round differently, and messages are short
                                       .wire = doubling || exact ? DType::f32 : wire()},
                          .schedule = [this, count] { return schedule(count); },
                          .segment = options_.segment,
                          .shared = doubling ? nullptr : shared_};
    if (ranges.size() == 1)
      collective.elements.memory = static_cast<std::byte*>(ranges[0].raw());
    else
      pack(collective, ranges, count);
    if (hear_) observe(collective);
    last_ = thread_.submit(lane_, std::move(collective));
  }

  void broadcast(const Tensor& x, int root, const std::string& what) override {
    const auto bytes = static_cast<int64_t>(x.bytes());
    last_ = thread_.submit(lane_, {.what = what,
                                   .bytes = static_cast<uint64_t>(bytes),
                                   .elements = {.memory = static_cast<std::byte*>(x.raw())},
                                   .schedule =
                                       [this, root, bytes] {
                                         return tree_broadcast(rank(), size(), root, {0, bytes});
                                       },
                                   .segment = 1 << 20});
  }

  void join() override {
    const Clock::time_point begun = Clock::now();
    thread_.wait(lane_, last_);
    exposed_ += std::chrono::duration<double>(Clock::now() - begun).count();
  }

  std::string describe() const override {
    return concat(options_.algorithm == "auto" ? "doubling to 64 KiB, then " : "", long_, " over ", thread_.name(),
                  ", ", wire(), " on the wire");
  }

  CommunicatorTimes take_times() override {
    return {.busy = thread_.take_busy_seconds(lane_),
            .exposed = std::exchange(exposed_, 0),
            .bytes = std::exchange(bytes_, 0)};
  }

  void on_all_reduce(std::function<void(const AllReduceReport&)> hear) override { hear_ = std::move(hear); }

 private:
  bool doubles(int64_t count) const {
    return long_ == "doubling" ||
           (options_.algorithm == "auto" && count * static_cast<int64_t>(sizeof(float)) <= kShort);
  }

  Transfers schedule(int64_t count) const {
    if (doubles(count)) return doubling_all_reduce(rank(), size(), {0, count});
    if (long_ == "hierarchical") return hierarchical_all_reduce(nodes_, rank(), {0, count});
    if (long_ == "direct") return direct_all_reduce(order_, place_, {0, count});
    return ring_all_reduce(order_, place_, {0, count});
  }

  // The report is made on the communication thread.
  void observe(Collective& collective) const {
    const auto report = std::make_shared<AllReduceReport>();
    report->what = collective.what;
    report->bytes = static_cast<double>(collective.bytes);
    report->queued = Clock::now();
    collective.before = [report, before = std::move(collective.before)] {
      report->begun = Clock::now();
      if (before) before();
    };
    collective.after = [report, after = std::move(collective.after), hear = hear_] {
      if (after) after();
      report->ended = Clock::now();
      hear(*report);
    };
  }

  // Packs several ranges into one message.
  static void pack(Collective& collective, std::span<const Tensor> ranges, int64_t count) {
    const auto packed = std::make_shared<std::vector<float>>(static_cast<size_t>(count));
    collective.elements.memory = reinterpret_cast<std::byte*>(packed->data());
    const std::vector<Tensor> tensors(ranges.begin(), ranges.end());
    collective.before = [packed, tensors] {
      float* at = packed->data();
      for (const Tensor& range : tensors) at = std::copy_n(range.data<float>(), range.count(), at);
    };
    collective.after = [packed, tensors] {
      const float* at = packed->data();
      for (const Tensor& range : tensors) {
        std::copy_n(at, range.count(), range.data<float>());
        at += range.count();
      }
    };
  }

  CollectiveThread& thread_;
  int lane_;
  std::vector<int> nodes_;
  std::vector<int> order_;  // ring order: hosts are contiguous, so that each inter-host link is crossed once
  int place_ = 0;           // position of this rank in order_
  std::string long_;        // algorithm of long messages
  std::shared_ptr<SharedMemory> shared_;  // for direct all-reduce, if available
  uint64_t last_ = 0;
  double exposed_ = 0, bytes_ = 0;
  std::function<void(const AllReduceReport&)> hear_;
};

}  // namespace
}  // namespace host

std::unique_ptr<Communicator> make_host_communicator(Group& group, const CommunicatorOptions& options) {
  auto* ranks = dynamic_cast<host::AllReduceGroup*>(&group);
  DT_CHECK(ranks != nullptr, "all-reduce on CPUs: this kind of group exchanges texts only");
  return std::make_unique<host::HostCommunicator>(*ranks, options);
}

}  // namespace dtrain
