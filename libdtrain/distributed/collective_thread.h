// CollectiveThread: communication thread, the only one that calls the transport. It never blocks inside the transport
// after start-up, so it can interleave the messages of several lanes, enforce timeouts and yield the CPU.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "dtrain/distributed/communicator.h"
#include "libdtrain/distributed/exchange.h"
#include "libdtrain/distributed/shared_memory.h"
#include "libdtrain/distributed/watchdog.h"

namespace dtrain::host {

// Collective operation of a lane, as executed by one rank.
struct Collective {
  std::string what;
  uint64_t bytes = 0;
  Elements elements;
  std::function<Transfers()> schedule;
  int64_t segment = 1 << 17;
  std::shared_ptr<SharedMemory> shared{};   // all-reduce through it, `bytes` of f32, without schedule
  std::function<void()> before{}, after{};  // on the thread: packing and unpacking
};

class CollectiveThread {
 public:
  using Start = std::function<std::unique_ptr<Transport>()>;
  // Starts the transport on the thread; `name`: for messages. Throws what `start` throws.
  CollectiveThread(const GroupOptions& options, const char* name, Start start);
  // Without finish() the transport is abandoned.
  ~CollectiveThread();

  int rank() const { return rank_; }
  const std::vector<Place>& places() const { return places_; }
  const char* name() const { return name_; }  // of the transport

  // Opens a lane: an independent sequence of collectives. Collective.
  int open_lane(const std::string& name);
  // Enqueues a collective; returns the ticket to wait for.
  uint64_t submit(int lane, Collective collective);
  void wait(int lane, uint64_t ticket);
  void enter(Section section, uint64_t step);
  // Seconds with a collective in progress in a lane, since the last call.
  double take_busy_seconds(int lane);
  // See Group::ask_peers().
  std::string ask_peers();
  // Shuts the transport down, together with all other ranks. Later calls throw Error.
  void finish();

 private:
  struct Lane;
  struct StateMessage {
    std::string text;
    Transport::Request request = 0;
  };
  using Task = std::function<void()>;
  struct Turn {
    bool active = false;   // a collective is in progress
    bool awaited = false;  // and a caller waits for it
    bool moved = false;    // a message was sent or received, or a request came
  };

  void run();
  void start(const Start& start_transport);
  void wake();                  // requires the mutex
  void call(const Task& task);  // runs a task on the thread; the caller waits, exceptions are rethrown
  bool advance(Lane& lane);
  void begin(Lane& lane);
  void check_header(Lane& lane);
  [[noreturn]] void report_broken(Lane& lane, const Error& error);
  void watch();
  void answer();
  void ask_all();
  void send_state(int rank, bool question);
  void pause(const Turn& turn);
  // Requires the mutex, while a caller waits for the lane. Throws if the thread hangs in the transport for longer than
  // a step's timeout.
  void require_turns(const Lane& lane) const;
  [[noreturn]] void fail(const std::string& report) const;
  void require_running(const std::string& what) const;  // requires the mutex

  GroupOptions options_;
  const char* name_;
  std::unique_ptr<Transport> transport_;
  int rank_ = 0, size_ = 1;
  std::vector<Place> places_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  bool stopping_ = false;
  bool asked_ = false;  // new work for the thread
  int waiting_ = 0;     // callers waiting for a collective
  std::optional<Task> task_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<Watchdog> watchdog_;
  Section section_ = Section::setup;
  uint64_t step_ = 0;
  int states_ = 0;  // channel of the watchdog's messages
  std::list<StateMessage> states_under_way_;
  // When the thread last returned from the transport; max() while it runs a task.
  SteadyTime turned_ = SteadyTime::max();
  SteadyTime looked_{}, moved_{};  // last poll of the watchdog; last message
  int sleeps_ = 0;                 // idle sleeps since then
};

// Group whose ranks all-reduce host memory.
class AllReduceGroup : public Group {
 public:
  // Collective: the first call may connect the ranks.
  virtual CollectiveThread& thread() = 0;

 protected:
  using Group::Group;
};

}  // namespace dtrain::host
