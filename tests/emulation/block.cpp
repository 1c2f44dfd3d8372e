#include "tests/emulation/block.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>

namespace emulation {
namespace {

// Block of the running thread; null outside of kernels.
Block* current = nullptr;

// Fiber pool, last used on top.
class Fibers {
 public:
  Fiber* take() {
    if (free_.empty()) {
      all_.push_back(std::make_unique<Fiber>());
      return all_.back().get();
    }
    Fiber* fiber = free_.back();
    free_.pop_back();
    return fiber;
  }
  void give(Fiber* fiber) { free_.push_back(fiber); }

 private:
  std::vector<std::unique_ptr<Fiber>> all_;
  std::vector<Fiber*> free_;
};

Fibers& fibers() {
  static Fibers pool;
  return pool;
}

const char* name_of(Meeting kind) {
  constexpr const char* kNames[] = {"__syncthreads",    "__syncthreads_or", "__syncthreads_and", "__syncthreads_count",
                                    "a grid barrier",   "__syncwarp",       "__shfl_sync",       "__shfl_up_sync",
                                    "__shfl_down_sync", "__shfl_xor_sync",  "__ballot_sync",     "__any_sync",
                                    "__all_sync"};
  return kNames[static_cast<int>(kind)];
}

constexpr int kLanes = static_cast<int>(kWarpLanes);

bool of_a_warp(Meeting kind) { return kind >= Meeting::warp_barrier; }

bool same_meeting(const Wait& a, const Wait& b) {
  if (a.kind != b.kind || a.mask != b.mask || a.place.line() != b.place.line() || a.place.column() != b.place.column())
    return false;
  const char *of_a = a.place.file_name(), *of_b = b.place.file_name();
  return of_a == of_b || std::strcmp(of_a, of_b) == 0;
}

// Source lane of a shuffle.
int source_lane(const Wait& wait, int lane) {
  const int begin = lane & ~(wait.width - 1), end = begin + wait.width;
  int source = lane;
  switch (wait.kind) {
    case Meeting::shuffle:
      return begin + (wait.argument & (wait.width - 1));
    case Meeting::shuffle_up:
      source = lane - wait.argument;
      return source < begin ? lane : source;
    case Meeting::shuffle_down:
      source = lane + wait.argument;
      return source >= end ? lane : source;
    default:
      source = lane ^ wait.argument;
      return source >= end ? lane : source;
  }
}

}  // namespace

void fail(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::fputs("emulation: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputs("\n", stderr);
  va_end(arguments);
  std::abort();
}

uint64_t meet(Meeting kind, unsigned mask, uint64_t value, int argument, int width, std::source_location place) {
  if (current == nullptr) fail("%s outside of a kernel", name_of(kind));
  return current->meet({kind, mask, value, argument, width, place});
}

unsigned active_lanes() {
  if (current == nullptr) fail("__activemask outside of a kernel");
  return current->running_lane_mask();
}

Block::Block(const Kernel& kernel) : kernel_(&kernel), threads_(count_of(kernel.block)) {}

void Block::begin(uint3 index) {
  index_ = index;
  for (Thread& thread : threads_) thread.state = State::fresh;
  live_ = threads_.size();
}

bool Block::step(size_t index) {
  Thread& thread = threads_[index];
  if (thread.state == State::fresh) {
    thread.fiber = fibers().take();
    thread.fiber->begin(kernel_->thread);
    thread.state = State::ready;
  }
  if (thread.state != State::ready) return false;
  const size_t row = index / kernel_->block.x;
  threadIdx = {static_cast<unsigned>(index % kernel_->block.x), static_cast<unsigned>(row % kernel_->block.y),
               static_cast<unsigned>(row / kernel_->block.y)};
  current = this;
  running_ = index;
  thread.fiber->resume();
  current = nullptr;
  if (thread.fiber->done()) {
    fibers().give(thread.fiber);
    thread.state = State::done;
    --live_;
  }
  return true;
}

uint64_t Block::meet(const Wait& wait) {
  Thread& thread = threads_[running_];
  if (of_a_warp(wait.kind) && (wait.mask & running_lane_mask()) == 0)
    fail("%s:%u: lane %zu is not in the mask %08x of its own %s", wait.place.file_name(), wait.place.line(),
         running_ % kWarpLanes, wait.mask, name_of(wait.kind));
  thread.wait = wait;
  thread.state = State::waiting;
  if (!of_a_warp(wait.kind) || !complete_warp(running_)) {
    thread.fiber->pause();
  } else {
    thread.state = State::ready;
  }
  return thread.wait.result;
}

bool Block::takes_part(size_t warp, int lane, unsigned mask) const {
  const size_t index = warp + static_cast<size_t>(lane);
  return (mask >> lane & 1) != 0 && index < threads_.size() && threads_[index].state != State::done;
}

bool Block::complete_warp(size_t thread) {
  const Wait wait = threads_[thread].wait;
  const size_t warp = warp_begin(thread);
  uint64_t ballot = 0, present = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (!takes_part(warp, lane, wait.mask)) continue;
    const Thread& other = threads_[warp + static_cast<size_t>(lane)];
    if (other.state != State::waiting || !same_meeting(other.wait, wait)) return false;
    present |= uint64_t{1} << lane;
    ballot |= (other.wait.value & 1) << lane;
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((present >> lane & 1) == 0) continue;
    Thread& other = threads_[warp + static_cast<size_t>(lane)];
    other.state = State::ready;
    switch (wait.kind) {
      case Meeting::warp_barrier:
        break;
      case Meeting::ballot:
        other.wait.result = ballot;
        break;
      case Meeting::any:
        other.wait.result = ballot != 0;
        break;
      case Meeting::all:
        other.wait.result = ballot == present;
        break;
      default: {
        // An inactive lane's value is undefined: all bits set.
        const int source = source_lane(other.wait, lane);
        if ((present >> source & 1) != 0) other.wait.result = threads_[warp + static_cast<size_t>(source)].wait.value;
      }
    }
  }
  return true;
}

bool Block::complete_barrier() {
  const Wait* wait = nullptr;
  size_t count = 0;
  for (const Thread& thread : threads_) {
    if (thread.state == State::done) continue;
    if (wait == nullptr) wait = &thread.wait;
    if (thread.wait.kind > Meeting::barrier_count || !same_meeting(thread.wait, *wait)) return false;
    count += thread.wait.value;
  }
  uint64_t result = 0;
  if (wait->kind == Meeting::barrier_or) result = count != 0;
  if (wait->kind == Meeting::barrier_and) result = count == live_;
  if (wait->kind == Meeting::barrier_count) result = count;
  for (Thread& thread : threads_) {
    if (thread.state == State::done) continue;
    thread.wait.result = result;
    thread.state = State::ready;
  }
  return true;
}

bool Block::complete_meetings() {
  if (complete_barrier()) return true;
  // The last lane of a mask may have exited instead of arriving.
  bool completed = false;
  for (size_t i = 0; i < threads_.size(); ++i)
    if (threads_[i].state == State::waiting && of_a_warp(threads_[i].wait.kind)) completed |= complete_warp(i);
  return completed;
}

bool Block::at_grid_barrier() const {
  if (live_ != threads_.size()) return false;  // then its arrival concerns the whole block
  for (const Thread& thread : threads_)
    if (thread.wait.kind != Meeting::grid_barrier || !same_meeting(thread.wait, threads_[0].wait)) return false;
  return true;
}

void Block::leave_grid_barrier() {
  for (Thread& thread : threads_)
    if (thread.state == State::waiting) thread.state = State::ready;
}

void Block::report_stuck() const {
  std::map<std::string, std::pair<size_t, size_t>> places;  // -> count and first of the threads
  for (size_t i = 0; i < threads_.size(); ++i) {
    std::string place = "ended";
    if (threads_[i].state != State::done) {
      const Wait& wait = threads_[i].wait;
      char mask[32] = "";
      if (of_a_warp(wait.kind)) std::snprintf(mask, sizeof mask, " of mask %08x", wait.mask);
      place = std::string("wait at ") + name_of(wait.kind) + mask + " in " + wait.place.file_name() + ":" +
              std::to_string(wait.place.line());
    }
    ++places.try_emplace(place, 0, i).first->second.first;
  }
  std::string text;
  for (const auto& [place, threads] : places)
    text += "\n  " + std::to_string(threads.first) + " threads " + place + ", the first is " +
            std::to_string(threads.second);
  fail("threads of block (%u, %u, %u) wait for each other at different places:%s", index_.x, index_.y, index_.z,
       text.c_str());
}

}  // namespace emulation
