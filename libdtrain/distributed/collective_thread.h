// CollectiveThread: the one thread of a process that calls its transport. It never waits inside it once it has started,
// so that it can pass on messages of several lanes at a time, see to it that none takes too long, and leave the
// processor to others.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "libdtrain/distributed/communicator.h"
#include "libdtrain/distributed/exchange.h"
#include "libdtrain/distributed/shared_memory.h"
#include "libdtrain/distributed/watchdog.h"

namespace dtrain::host {

// What a rank does together with the others in a lane.
struct Collective {
  std::string what;
  uint64_t bytes = 0;
  Elements elements;
  std::function<Transfers()> schedule;
  int64_t segment = 1 << 17;
  std::shared_ptr<SharedMemory> shared{};   // for a sum through it, of `bytes` of f32: then there is no schedule
  std::function<void()> before{}, after{};  // on the thread: packing and unpacking
};

class CollectiveThread {
 public:
  using Start = std::function<std::unique_ptr<Transport>()>;
  // Starts the transport, on the thread; `name`: what it is for people. Throws what `start` does.
  CollectiveThread(const GroupOptions& options, const char* name, Start start);
  // Without finish() the transport is left as it is.
  ~CollectiveThread();

  int rank() const { return rank_; }
  const std::vector<Place>& places() const { return places_; }
  const char* name() const { return name_; }  // of the transport

  // A lane of its own for collectives that wait for nobody else's; collective.
  int open_lane(const std::string& name);
  // Queues; returns the ticket to wait for.
  uint64_t submit(int lane, Collective collective);
  void wait(int lane, uint64_t ticket);
  void enter(Section section, uint64_t step);
  // What a lane has done since the last call: seconds in which something was under way.
  double take_busy_seconds(int lane);
  // As Group has it.
  std::string ask_peers();
  // Ends the transport, with all other ranks. What is asked of it from then on throws Error.
  void finish();

 private:
  struct Lane;
  struct StateMessage {
    std::string text;
    Transport::Request request = 0;
  };
  using Task = std::function<void()>;
  struct Turn {
    bool active = false;   // a collective is under way
    bool awaited = false;  // and a caller waits
    bool moved = false;    // a message left or arrived, or a caller asked for something
  };

  void run();
  void start(const Start& start_transport);
  void wake();                  // under the mutex
  void call(const Task& task);  // on the thread; the caller waits and gets what it throws
  bool advance(Lane& lane);
  void begin(Lane& lane);
  void check_header(Lane& lane);
  [[noreturn]] void report_broken(Lane& lane, const Error& error);
  void watch();
  void answer();
  void ask_all();
  void send_state(int rank, bool question);
  void pause(const Turn& turn);
  // Under the mutex, while a caller waits for the lane. The transport's calls wait for nobody: the limit is a step's.
  void require_turns(const Lane& lane) const;
  [[noreturn]] void fail(const std::string& report) const;
  void require_running(const std::string& what) const;  // under the mutex

  GroupOptions options_;
  const char* name_;
  std::unique_ptr<Transport> transport_;
  int rank_ = 0, size_ = 1;
  std::vector<Place> places_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  bool stopping_ = false;
  bool asked_ = false;  // something changed for the thread
  int waiting_ = 0;     // callers, for a collective
  std::optional<Task> task_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<Watchdog> watchdog_;
  Section section_ = Section::setup;
  uint64_t step_ = 0;
  int states_ = 0;  // the channel that carries what the watchdogs say
  std::list<StateMessage> states_under_way_;
  // When the thread last came from the transport; later than all limits while it runs a task.
  SteadyTime turned_ = SteadyTime::max();
  SteadyTime looked_{}, moved_{};  // when the watchdog was asked, and when a message moved
  int sleeps_ = 0;                 // since then
};

// A group whose ranks sum host memory among themselves.
class SummingGroup : public Group {
 public:
  // The first call may be the one that connects them: collective.
  virtual CollectiveThread& thread() = 0;

 protected:
  using Group::Group;
};

}  // namespace dtrain::host
