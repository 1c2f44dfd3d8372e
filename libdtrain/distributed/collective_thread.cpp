// Loop of the communication thread, its lanes and its watchdog messages.
#include "libdtrain/distributed/collective_thread.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "dtrain/core/error.h"
#include "libdtrain/distributed/blocked_signals.h"
#include "libdtrain/distributed/collective_header.h"

namespace dtrain::host {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kWatchEvery = std::chrono::milliseconds(10), kWaitFor = std::chrono::milliseconds(200);
// Seconds. Starting the transport only waits for processes that already run.
constexpr double kStartLimit = 120;
constexpr size_t kMostStates = 10'000;  // in flight to peers

double seconds(SteadyTime from, SteadyTime to) { return std::chrono::duration<double>(to - from).count(); }

}  // namespace

struct CollectiveThread::Lane {
  std::string name;
  int data = 0, headers = 0;  // channels
  ExchangeBuffers buffers{};
  std::deque<Collective> queue{};
  Collective* collective = nullptr;    // head of the queue, once started
  std::optional<Exchange> exchange{};  // one of the two, once started
  std::optional<SharedSum> sum{};
  bool has_begun() const { return exchange || sum; }
  CollectiveId id{};
  CollectiveHeader sent{}, received{};
  Transport::Request header_sent = 0, header_received = 0;
  bool header_left = false, header_came = false;
  bool header_checked() const { return header_left && header_came; }
  SteadyTime begun{};
  double busy = 0;
  uint64_t submitted = 0, finished = 0;
};

CollectiveThread::CollectiveThread(const GroupOptions& options, const char* name, Start start_transport)
    : options_(options), name_(name) {
  // Starts the awake thread first, while the constructor may still throw: destroying a running thread_ would call
  // std::terminate().
  awake_since();
  std::exception_ptr error;
  bool started = false;
  const auto body = [&, this] {
    std::exception_ptr thrown;
    try {
      start(start_transport);
    } catch (...) {
      thrown = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      error = thrown;
      started = true;  // from here on the constructor may have returned
      done_.notify_all();
    }
    if (!thrown) run();
  };
  {
    const BlockedSignals blocked;  // inherited by threads that the transport starts
    thread_ = std::thread(body);
  }
  std::unique_lock lock(mutex_);
  const auto starts_within = [&](double limit) { return wait_awake(done_, lock, limit, [&] { return started; }); };
  const double limit = std::min(options.setup_limit, kStartLimit), patience = std::min(limit / 4, 10.0);
  const char* const question = ": are all hosts of the hostfile up, and do they reach one another?";
  if (!starts_within(patience)) {
    options.tell(concat(name_, " has not started within ", patience, " s (limit ", limit, " s)", question));
    if (!starts_within(limit - patience)) fail(concat(name_, " did not start within ", limit, " s", question));
  }
  lock.unlock();
  if (!error) return;
  thread_.join();
  std::rethrow_exception(error);
}

CollectiveThread::~CollectiveThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake();
  }
  if (thread_.joinable()) thread_.join();
}

void CollectiveThread::start(const Start& start_transport) {
  prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);  // nanoseconds; the default slack would double a sleep of 50 microseconds
  transport_ = start_transport();
  states_ = transport_->open_channel();
  rank_ = transport_->rank();
  places_ = transport_->places();
  size_ = static_cast<int>(places_.size());
  std::vector<std::string> names;
  for (int rank = 0; rank < size_; ++rank)
    names.push_back(concat("rank ", rank, " on ", places_[static_cast<size_t>(rank)].host));
  watchdog_ = std::make_unique<Watchdog>(rank_, names, options_);
}

void CollectiveThread::call(const Task& task) {
  std::exception_ptr error;
  bool done = false;
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return !task_; });  // task of another caller
  require_running(name_);
  task_ = [&] {
    try {
      task();
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard after(mutex_);
    done = true;
  };
  wake();
  if (!wait_awake(done_, lock, options_.setup_limit, [&] { return done; }))
    fail(concat("rank ", rank_, ": ", name_, " did not answer within ", options_.setup_limit, " s"));
  if (error) std::rethrow_exception(error);
}

int CollectiveThread::open_lane(const std::string& name) {
  auto lane = std::make_unique<Lane>();
  lane->name = lane->id.lane = name;
  int index = 0;
  call([&] {
    lane->data = transport_->open_channel();
    lane->headers = transport_->open_channel();
    const std::lock_guard lock(mutex_);
    lanes_.push_back(std::move(lane));
    index = static_cast<int>(lanes_.size()) - 1;
  });
  return index;
}

uint64_t CollectiveThread::submit(int lane, Collective collective) {
  const std::lock_guard lock(mutex_);
  require_running(collective.what);
  Lane& one = *lanes_[static_cast<size_t>(lane)];
  one.queue.push_back(std::move(collective));
  wake();
  return ++one.submitted;
}

void CollectiveThread::wait(int lane, uint64_t ticket) {
  std::unique_lock lock(mutex_);
  Lane& one = *lanes_[static_cast<size_t>(lane)];
  if (one.finished >= ticket) return;
  require_running(one.name);
  ++waiting_;
  wake();
  while (!done_.wait_for(lock, kWaitFor, [&] { return one.finished >= ticket; })) require_turns(one);
  --waiting_;
}

// No watchdog runs while the transport holds its thread, e.g. Open MPI after a connection reset.
void CollectiveThread::require_turns(const Lane& lane) const {
  const double waited = waited_since(turned_);
  if (waited < options_.step_limit) return;
  const Collective& collective = lane.queue.front();
  const CollectiveId id{lane.name, lane.finished + 1, collective.what, collective.bytes, section_, step_};
  fail(fmt::format("rank {} on {} has waited {:.0f} s for {}: a call of {} does not return", rank_,
                   places_[static_cast<size_t>(rank_)].host, waited, id.to_string(), name_));
}

void CollectiveThread::wake() {
  asked_ = true;
  wake_.notify_all();
}

void CollectiveThread::enter(Section section, uint64_t step) {
  const std::lock_guard lock(mutex_);
  section_ = section;
  step_ = step;
}

double CollectiveThread::take_busy_seconds(int lane) {
  const std::lock_guard lock(mutex_);
  return std::exchange(lanes_[static_cast<size_t>(lane)]->busy, 0);
}

std::string CollectiveThread::ask_peers() {
  constexpr auto kAnswerTimeout = std::chrono::seconds(1);
  call([&] {
    watchdog_->forget();
    ask_all();
  });
  std::this_thread::sleep_for(kAnswerTimeout);
  std::string text;
  call([&] { text = watchdog_->answers(); });
  return text;
}

void CollectiveThread::ask_all() {
  for (int rank = 0; rank < size_; ++rank)
    if (rank != rank_) send_state(rank, true);
}

void CollectiveThread::finish() {
  call([&] {
    transport_->finish();
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  });
}

// Calls the transport without the mutex, so that no caller blocks on it.
void CollectiveThread::run() {
  while (true) {
    Turn turn;
    {
      std::unique_lock lock(mutex_);
      turned_ = Clock::now();
      turn.moved = std::exchange(asked_, false);
      turn.awaited = waiting_ > 0;
      if (task_) {
        const Task task = *std::exchange(task_, std::nullopt);
        turned_ = SteadyTime::max();  // tasks may block and have their own timeout
        lock.unlock();                // callers wait at most until their timeout, even if MPI hangs
        task();
        lock.lock();
        turned_ = Clock::now();
        done_.notify_all();
      }
      if (stopping_) return;
      watchdog_->enter(section_, step_);
      for (const auto& lane : lanes_) {
        if (!lane->collective && !lane->queue.empty()) lane->collective = &lane->queue.front();
        turn.active = turn.active || lane->collective;
        if (lane->has_begun()) continue;
        lane->id.section = section_;
        lane->id.step = step_;
      }
    }
    if (turn.active) transport_->progress();
    for (const auto& lane : lanes_) {
      if (!lane->collective) continue;
      try {
        if (!lane->has_begun()) begin(*lane);
        turn.moved = advance(*lane) || turn.moved;
      } catch (const Error& error) {
        report_broken(*lane, error);
      }
    }
    watch();
    pause(turn);
  }
}

void CollectiveThread::begin(Lane& lane) {
  const Collective& collective = *lane.collective;
  lane.begun = Clock::now();
  ++lane.id.sequence;
  lane.id.what = collective.what.substr(0, sizeof CollectiveHeader::what - 1);
  lane.id.bytes = collective.bytes;
  watchdog_->begin(lane.id, lane.begun);
  lane.header_left = lane.header_came = false;
  if (collective.before) collective.before();
  if (collective.shared)
    lane.sum.emplace(*collective.shared, collective.elements,
                     static_cast<int64_t>(collective.bytes / collective.elements.size));
  else
    lane.exchange.emplace(*transport_, lane.data, plan_messages(collective.schedule(), collective.segment),
                          collective.elements, lane.buffers);
  lane.sent = CollectiveHeader(lane.id);
  lane.header_received = transport_->receive(lane.headers, (rank_ + size_ - 1) % size_,
                                             reinterpret_cast<std::byte*>(&lane.received), sizeof(CollectiveHeader));
  lane.header_sent = transport_->send(lane.headers, (rank_ + 1) % size_, reinterpret_cast<std::byte*>(&lane.sent),
                                      sizeof(CollectiveHeader));
}

bool CollectiveThread::advance(Lane& lane) {
  if (!lane.header_checked()) check_header(lane);
  const bool moved = lane.sum ? lane.sum->advance() : lane.exchange->advance();
  if (!(lane.sum ? lane.sum->done() : lane.exchange->done()) || !lane.header_checked()) return moved;
  const SteadyTime now = Clock::now();
  watchdog_->end(lane.name, now);
  lane.exchange.reset();
  lane.sum.reset();
  if (lane.collective->after) lane.collective->after();
  lane.collective = nullptr;
  const std::lock_guard lock(mutex_);
  lane.queue.pop_front();
  lane.busy += seconds(lane.begun, now);
  ++lane.finished;
  done_.notify_all();
  return true;
}

void CollectiveThread::check_header(Lane& lane) {
  size_t bytes = 0;
  lane.header_left = lane.header_left || transport_->done(lane.header_sent, bytes);
  if (lane.header_came || !transport_->done(lane.header_received, bytes)) return;
  lane.header_came = true;
  const CollectiveId theirs = lane.received.id(lane.name);
  if (theirs != lane.id) fail(watchdog_->mismatch(lane.id, (rank_ + size_ - 1) % size_, theirs));
}

// If ranks execute different collectives, data of another size may arrive before the header that tells.
void CollectiveThread::report_broken(Lane& lane, const Error& error) {
  constexpr auto kAnswerTimeout = std::chrono::seconds(1);
  try {
    const SteadyTime until = Clock::now() + kAnswerTimeout;
    while (lane.has_begun() && !lane.header_checked() && Clock::now() < until) {
      transport_->progress();
      check_header(lane);
    }
  } catch (const Error&) {  // the first error is more specific
  }
  fail(watchdog_->broken(lane.name, error.what()));
}

void CollectiveThread::watch() {
  const SteadyTime now = Clock::now();
  if (now - looked_ < kWatchEvery) return;
  looked_ = now;
  try {
    transport_->progress();
    answer();
    watchdog_->wake(awake_since());
    const Watchdog::Verdict verdict = watchdog_->look(now);
    if (!verdict.failure.empty()) fail(verdict.failure);
    if (!verdict.warning.empty()) options_.tell(verdict.warning);
    if (verdict.ask) ask_all();
  } catch (const Error& error) {
    fail(watchdog_->broken("", error.what()));
  }
}

// States are short enough to be sent eagerly.
void CollectiveThread::send_state(int rank, bool question) {
  states_under_way_.remove_if([this](const StateMessage& message) {
    size_t bytes = 0;
    return transport_->done(message.request, bytes);
  });
  StateMessage& message = states_under_way_.emplace_back();
  message.text = (question ? "?" : "!") + watchdog_->state();
  message.request =
      transport_->send(states_, rank, reinterpret_cast<const std::byte*>(message.text.data()), message.text.size());
}

void CollectiveThread::answer() {
  int rank = 0;
  std::string text;
  while (transport_->take(states_, rank, text)) {
    watchdog_->hear(rank, text.empty() ? text : text.substr(1));
    // flow control: a peer that only asks must wait
    if (text.starts_with('?') && states_under_way_.size() < kMostStates) send_state(rank, false);
  }
}

// Idle policy: sleeps while this process computes or peers are late. While a caller waits, it polls for a while, since
// a sleep is longer than a typical message, and yields the core each time to other ranks.
void CollectiveThread::pause(const Turn& turn) {
  constexpr std::chrono::microseconds kMoment{400}, kShortest{50}, kLongest{1000};
  const SteadyTime now = Clock::now();
  if (turn.moved) {
    moved_ = now;
    sleeps_ = 0;
  } else if (turn.awaited && now - moved_ < kMoment) {
    sched_yield();
  } else {
    const auto length = turn.active ? std::min(kShortest * (1 << std::min(sleeps_++, 5)), kLongest) : kLongest;
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, length, [&] { return asked_; });
  }
}

void CollectiveThread::fail(const std::string& report) const { options_.end(report); }

void CollectiveThread::require_running(const std::string& what) const {
  DT_CHECK(!stopping_, what, ": called after Group::finish()");
}

}  // namespace dtrain::host
