// The loop of the communication thread, its lanes, and the words of its watchdog.
#include "libdtrain/distributed/mpi_thread.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "libdtrain/distributed/mpi_memory.h"
#include "libdtrain/distributed/mpi_places.h"

namespace dtrain::mpi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kHeaderTag = 1;  // beside the data's
constexpr auto kWatchEvery = std::chrono::milliseconds(10);
// Seconds. To start, MPI waits for processes that the launcher has started already, and for no work of theirs.
constexpr double kStartLimit = 120;

// Goes ahead of a collective's data to the next rank, which compares it with its own.
struct Header {
  uint64_t sequence = 0, bytes = 0, step = 0, section = 0;
  char what[64] = "";

  explicit Header(const CollectiveId& id = {})
      : sequence(id.sequence), bytes(id.bytes), step(id.step), section(static_cast<uint64_t>(id.section)) {
    std::strncpy(what, id.what.c_str(), sizeof what - 1);
  }
  CollectiveId id(const std::string& lane) const {
    return {lane, sequence, std::string(what, strnlen(what, sizeof what)), bytes, static_cast<Section>(section), step};
  }
};

double seconds(SteadyTime from, SteadyTime to) { return std::chrono::duration<double>(to - from).count(); }

}  // namespace

struct MpiThread::Lane {
  std::string name;
  MPI_Comm comm = MPI_COMM_NULL;
  ExchangeBuffers buffers{};
  std::deque<Collective> queue{};
  Collective* collective = nullptr;  // the first of the queue, once its turn has come
  std::optional<Exchange> exchange{};
  CollectiveId id{};
  Header sent{}, received{};
  MPI_Request header_sent = MPI_REQUEST_NULL, header_received = MPI_REQUEST_NULL;
  bool header_checked = false;
  SteadyTime begun{};
  double busy = 0;
  uint64_t submitted = 0, finished = 0;
};

MpiThread::MpiThread(const GroupOptions& options) : options_(options) {
  int started_before = 0;
  check(MPI_Initialized(&started_before), "MPI_Initialized");
  DT_CHECK(!started_before, "a group of MPI's ranks: MPI has been started in this process before; it starts once only");
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the program's, as are those of threads that MPI starts
  std::exception_ptr error;
  bool started = false;
  thread_ = std::thread([&, this] {
    std::exception_ptr thrown;
    try {
      start();
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
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  std::unique_lock lock(mutex_);
  const auto starts_within = [&](double limit) { return wait_awake(done_, lock, limit, [&] { return started; }); };
  const double limit = std::min(options.setup_limit, kStartLimit), patience = std::min(limit / 4, 10.0);
  const char* const question = ": are all hosts of the hostfile up, and do they reach one another?";
  if (!starts_within(patience)) {
    options.tell(concat("MPI has not started within ", patience, " s (limit ", limit, " s)", question));
    if (!starts_within(limit - patience)) fail(concat("MPI did not start within ", limit, " s", question));
  }
  lock.unlock();
  if (!error) return;
  thread_.join();
  std::rethrow_exception(error);
}

MpiThread::~MpiThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake();
  }
  if (thread_.joinable()) thread_.join();
}

void MpiThread::start() {
  prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);  // a sleep of 50 microseconds shall not take 100
  int provided = 0;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_FUNNELED)
    throw Error(Fault::communication, "this MPI does not allow threads beside its own");
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
  check(MPI_Comm_dup(MPI_COMM_WORLD, &states_), "MPI_Comm_dup");
  places_ = gather_places();
  memory_ = unlink_memory(places_[static_cast<size_t>(rank_)].local_rank);  // all others have it by now
  std::vector<std::string> names;
  for (int rank = 0; rank < size_; ++rank)
    names.push_back(concat("rank ", rank, " on ", places_[static_cast<size_t>(rank)].host));
  watchdog_ = std::make_unique<Watchdog>(rank_, names, options_);
}

void MpiThread::call(const Task& task) {
  std::exception_ptr error;
  bool done = false;
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return !task_; });  // another thread's
  require_running("MPI");
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
    fail(concat("rank ", rank_, ": MPI did not answer within ", options_.setup_limit, " s"));
  if (error) std::rethrow_exception(error);
}

int MpiThread::open_lane(const std::string& name) {
  auto lane = std::make_unique<Lane>();
  lane->name = lane->id.lane = name;
  int index = 0;
  call([&] {
    check(MPI_Comm_dup(MPI_COMM_WORLD, &lane->comm), "MPI_Comm_dup");
    const std::lock_guard lock(mutex_);
    lanes_.push_back(std::move(lane));
    index = static_cast<int>(lanes_.size()) - 1;
  });
  return index;
}

uint64_t MpiThread::submit(int lane, Collective collective) {
  const std::lock_guard lock(mutex_);
  require_running(collective.what);
  Lane& one = *lanes_[static_cast<size_t>(lane)];
  one.queue.push_back(std::move(collective));
  wake();
  return ++one.submitted;
}

void MpiThread::wait(int lane, uint64_t ticket) {
  std::unique_lock lock(mutex_);
  Lane& one = *lanes_[static_cast<size_t>(lane)];
  if (one.finished >= ticket) return;
  require_running(one.name);
  ++waiting_;
  wake();
  done_.wait(lock, [&] { return one.finished >= ticket; });
  --waiting_;
}

void MpiThread::wake() {
  asked_ = true;
  wake_.notify_all();
}

void MpiThread::enter(Section section, uint64_t step) {
  const std::lock_guard lock(mutex_);
  section_ = section;
  step_ = step;
}

double MpiThread::take_busy_seconds(int lane) {
  const std::lock_guard lock(mutex_);
  return std::exchange(lanes_[static_cast<size_t>(lane)]->busy, 0);
}

std::string MpiThread::ask_peers() {
  constexpr auto kPatience = std::chrono::seconds(1);
  call([&] {
    watchdog_->forget();
    ask_all();
  });
  std::this_thread::sleep_for(kPatience);
  std::string text;
  call([&] { text = watchdog_->answers(); });
  return text;
}

void MpiThread::ask_all() {
  for (int rank = 0; rank < size_; ++rank)
    if (rank != rank_) send_state(rank, true);
}

void MpiThread::finish() {
  call([&] {
    name_again(memory_);
    check(MPI_Finalize(), "MPI_Finalize");
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  });
}

// MPI is called without the mutex, so that nobody waits for it.
void MpiThread::run() {
  while (true) {
    Turn turn;
    {
      std::unique_lock lock(mutex_);
      turn.moved = std::exchange(asked_, false);
      turn.awaited = waiting_ > 0;
      if (task_) {
        const Task task = *std::exchange(task_, std::nullopt);
        lock.unlock();  // whoever asked for it waits for its limit only, even where MPI does not return
        task();
        lock.lock();
        done_.notify_all();
      }
      if (stopping_) return;
      watchdog_->enter(section_, step_);
      for (const auto& lane : lanes_) {
        if (!lane->collective && !lane->queue.empty()) lane->collective = &lane->queue.front();
        turn.active = turn.active || lane->collective;
        if (lane->exchange) continue;
        lane->id.section = section_;
        lane->id.step = step_;
      }
    }
    for (const auto& lane : lanes_) {
      if (!lane->collective) continue;
      try {
        if (!lane->exchange) begin(*lane);
        turn.moved = advance(*lane) || turn.moved;
      } catch (const Error& error) {
        report_broken(*lane, error);
      }
    }
    watch();
    pause(turn);
  }
}

void MpiThread::begin(Lane& lane) {
  const Collective& collective = *lane.collective;
  lane.begun = Clock::now();
  ++lane.id.sequence;
  lane.id.what = collective.what.substr(0, sizeof Header::what - 1);
  lane.id.bytes = collective.bytes;
  watchdog_->begin(lane.id, lane.begun);
  lane.header_checked = false;
  if (collective.before) collective.before();
  lane.exchange.emplace(lane.comm, plan_messages(collective.schedule(), collective.segment), collective.elements,
                        lane.buffers);
  lane.sent = Header(lane.id);
  check(MPI_Irecv(&lane.received, sizeof(Header), MPI_BYTE, (rank_ + size_ - 1) % size_, kHeaderTag, lane.comm,
                  &lane.header_received),
        "MPI_Irecv");
  check(MPI_Isend(&lane.sent, sizeof(Header), MPI_BYTE, (rank_ + 1) % size_, kHeaderTag, lane.comm, &lane.header_sent),
        "MPI_Isend");
}

bool MpiThread::advance(Lane& lane) {
  if (!lane.header_checked) check_header(lane);
  const bool moved = lane.exchange->advance();
  if (!lane.exchange->done() || !lane.header_checked) return moved;
  const SteadyTime now = Clock::now();
  watchdog_->end(lane.name, now);
  lane.exchange.reset();
  if (lane.collective->after) lane.collective->after();
  lane.collective = nullptr;
  const std::lock_guard lock(mutex_);
  lane.queue.pop_front();
  lane.busy += seconds(lane.begun, now);
  ++lane.finished;
  done_.notify_all();
  return true;
}

void MpiThread::check_header(Lane& lane) {
  std::array<MPI_Request, 2> requests{lane.header_sent, lane.header_received};
  int done = 0;
  check(MPI_Testall(2, requests.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
  lane.header_sent = requests[0];
  lane.header_received = requests[1];
  if (!done) return;
  const CollectiveId theirs = lane.received.id(lane.name);
  if (theirs != lane.id) fail(watchdog_->mismatch(lane.id, (rank_ + size_ - 1) % size_, theirs));
  lane.header_checked = true;
}

// Where ranks do different things, data of another size may come before the header that tells.
void MpiThread::report_broken(Lane& lane, const Error& error) {
  constexpr auto kPatience = std::chrono::seconds(1);
  try {
    const SteadyTime until = Clock::now() + kPatience;
    while (lane.exchange && !lane.header_checked && Clock::now() < until) check_header(lane);
  } catch (const Error&) {  // the first one says more
  }
  fail(watchdog_->broken(lane.name, error.what()));
}

void MpiThread::watch() {
  const SteadyTime now = Clock::now();
  if (now - looked_ < kWatchEvery) return;
  looked_ = now;
  try {
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

// A state is short enough for MPI to take it at once.
void MpiThread::send_state(int rank, bool question) {
  states_under_way_.remove_if([](StateMessage& message) {
    int done = 0;
    check(MPI_Test(&message.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
  });
  StateMessage& message = states_under_way_.emplace_back();
  message.text = (question ? "?" : "!") + watchdog_->state();
  check(MPI_Isend(message.text.data(), static_cast<int>(message.text.size()), MPI_BYTE, rank, 0, states_,
                  &message.request),
        "MPI_Isend");
}

void MpiThread::answer() {
  while (true) {
    int there = 0;
    MPI_Message message;
    MPI_Status status;
    check(MPI_Improbe(MPI_ANY_SOURCE, 0, states_, &there, &message, &status), "MPI_Improbe");
    if (!there) return;
    int bytes = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    std::string text(static_cast<size_t>(bytes), '\0');
    check(MPI_Mrecv(text.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
    watchdog_->hear(status.MPI_SOURCE, text.substr(1));
    if (text.starts_with('?')) send_state(status.MPI_SOURCE, false);
  }
}

// While this process computes or others are late, this thread shall take none of the processor's time. Only while a
// caller waits, so that nothing is computed beside it, does it ask on for a moment: a sleep lasts longer than the next
// message usually takes. Even then it offers its core each time: where another rank computes there, that takes the
// moment up.
void MpiThread::pause(const Turn& turn) {
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

void MpiThread::fail(const std::string& report) { options_.end(report); }

void MpiThread::require_running(const std::string& what) const {
  DT_CHECK(!stopping_, what, ": asked for after Group::finish()");
}

}  // namespace dtrain::mpi
