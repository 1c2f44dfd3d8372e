// Group over TCP: texts through rank 0, and a thread that detects closed connections between collectives.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "dtrain/core/error.h"
#include "libdtrain/distributed/collective_thread.h"
#include "libdtrain/distributed/read_texts.h"
#include "libdtrain/distributed/tcp_rendezvous.h"
#include "libdtrain/distributed/tcp_transport.h"

namespace dtrain {
namespace tcp {
namespace {

class TcpGroup : public host::AllReduceGroup {
 public:
  TcpGroup(const GroupOptions& options, const TcpOptions& tcp) : AllReduceGroup(options), tcp_(tcp) {
    DT_CHECK(0 <= tcp.rank && tcp.rank < tcp.size, "rank ", tcp.rank, " of ", tcp.size);
    rank_ = tcp.rank;
    Rendezvous met = rendezvous(tcp, options.start_limit.value_or(options.setup_limit), options.warn);
    places_ = std::move(met.places);
    peers_ = std::move(met.peers);
    watch_ = std::thread([this] { watch(); });
  }
  ~TcpGroup() override {
    stopping_ = true;
    watch_.join();
  }

  std::vector<std::string> all_gather(const std::string& mine, const char* what) override;
  void enter(Section section, uint64_t step) override {
    const std::lock_guard lock(mutex_);
    Group::enter(section, step);
    if (thread_) thread_->enter(section, step);
  }
  std::string transport() const override { return "TCP"; }
  std::string ask_peers() override { return thread_ ? thread_->ask_peers() : ""; }
  host::CollectiveThread& thread() override;
  void finish() override {
    finishing_ = true;
    barrier("the end");
    if (thread_) thread_->finish();
    finished_ = true;
  }

 private:
  // Collective of this rank in progress.
  struct Gathering {
    std::string what, mine;
    Deadline deadline;
    std::vector<std::string> texts{};
    std::vector<bool> have{};
    bool late = false;  // rank 0 has notified the waiting ranks
  };

  void gather(Gathering& gathering);
  void receive_contribution(Gathering& gathering, size_t rank);
  void check_deadline(Gathering& gathering);
  void send_contribution(Gathering& gathering);
  void tell_peers(const std::string& report) override;
  [[noreturn]] void end_by_report(const std::string& report);
  void watch();
  void check_connections();
  [[noreturn]] void lost(size_t rank, const std::string& why, const std::string& place);
  int rank_of(size_t peer) const { return rank_ == 0 ? static_cast<int>(peer) : 0; }
  std::string collective(const std::string& what) const {
    return concat("'", what, "', collective ", sequence_, ", in ", where());
  }
  // Timeout. Rank 0, which knows the missing ranks, has the shortest.
  double timeout() const { return limit() + std::min(5.0, limit() / 2); }

  // Protects the sockets; recursive, since fail() may be called while they are in use.
  std::recursive_mutex mutex_;
  std::vector<Socket> peers_;  // as in Rendezvous
  bool busy_ = false;          // a collective is in progress and watches its peers itself
  uint64_t sequence_ = 0;
  std::atomic<bool> finishing_ = false, stopping_ = false;
  std::thread watch_;
  const TcpOptions tcp_;
  std::unique_ptr<host::CollectiveThread> thread_;  // created by the first all-reduce
};

host::CollectiveThread& TcpGroup::thread() {
  require_unfinished("sums of host memory");
  if (thread_) return *thread_;
  const std::string reached = size() == 1 ? "127.0.0.1" : tcp::address_of(peers_[rank_ == 0 ? 1 : 0]);
  std::vector<PeerConnection> links = open_mesh(*this, tcp_, reached);
  GroupOptions options = options_;
  options.fail = [this](const std::string& report, Fault) { end_by_report(report); };
  thread_ = std::make_unique<host::CollectiveThread>(options, "TCP",
                                                     [&] { return make_transport(rank_, places_, std::move(links)); });
  thread_->enter(section_, step_);
  return *thread_;
}

std::vector<std::string> TcpGroup::all_gather(const std::string& mine, const char* what) {
  require_unfinished(what);
  DT_CHECK(mine.size() <= kMostTextBytes, what, ": ", mine.size(), " bytes of one rank, at most ", kMostTextBytes);
  {
    const std::lock_guard lock(mutex_);
    busy_ = true;
    ++sequence_;
  }
  Gathering gathering{what, mine, in(rank_ == 0 ? limit() : timeout())};
  if (rank_ == 0)
    gather(gathering);
  else
    send_contribution(gathering);
  const std::lock_guard lock(mutex_);
  busy_ = false;
  return std::move(gathering.texts);
}

// On rank 0.
void TcpGroup::gather(Gathering& gathering) {
  gathering.texts.resize(peers_.size());
  gathering.texts[0] = gathering.mine;
  gathering.have.resize(peers_.size());
  gathering.have[0] = true;
  std::vector<const Socket*> sockets;
  for (size_t rank = 1; rank < peers_.size(); ++rank) sockets.push_back(&peers_[rank]);
  while (std::ranges::find(gathering.have, false) != gathering.have.end()) {
    const std::vector<bool> speaking = wait_for_any(sockets, std::min(gathering.deadline.left(), 0.1));
    const std::lock_guard lock(mutex_);
    for (size_t rank = 1; rank < peers_.size(); ++rank)
      if (speaking[rank - 1]) receive_contribution(gathering, rank);
    check_deadline(gathering);
  }
  const std::lock_guard lock(mutex_);
  const Message result{Kind::result, sequence_, join(gathering.texts)};
  std::string why;
  for (size_t rank = 1; rank < peers_.size(); ++rank)
    if (!peers_[rank].send(result, in(limit()), why)) lost(rank, why, collective(gathering.what));
  if (gathering.late) options_.tell(concat("all ranks have reached ", collective(gathering.what)));
}

void TcpGroup::receive_contribution(Gathering& gathering, size_t rank) {
  Message message;
  std::string why;
  const Socket::Arrived arrived = peers_[rank].receive(message, kMostTextBytes + (1 << 12), why);
  if (arrived == Socket::Arrived::no) return;
  if (arrived == Socket::Arrived::gone) lost(rank, why, collective(gathering.what));
  if (message.kind == Kind::failure) fail(printable(message.text));
  std::vector<std::string> texts;
  if (message.kind != Kind::give || gathering.have[rank] || !split(message.text, texts) || texts.size() != 3)
    lost(rank, "it does not follow the protocol of ranks", collective(gathering.what));
  const std::string theirs =
      concat("'", printable(texts[0]), "', collective ", message.sequence, ", in ", printable(texts[1]));
  if (theirs != collective(gathering.what))
    fail(concat("ranks are out of step: ", name(0), " does ", collective(gathering.what), ", ", name(rank_of(rank)),
                " does ", theirs));
  gathering.texts[rank] = std::move(texts[2]);
  gathering.have[rank] = true;
  if (gathering.late) static_cast<void>(peers_[rank].send({Kind::late, sequence_, {}}, in(1), why));
}

void TcpGroup::check_deadline(Gathering& gathering) {
  const double waited = waited_since(gathering.deadline.begun);
  const bool over = waited >= gathering.deadline.seconds;
  if (!over && (gathering.late || waited < std::min(limit() / 4, 10.0))) return;
  std::string missing;
  for (size_t rank = 1; rank < peers_.size(); ++rank)
    if (!gathering.have[rank]) missing += (missing.empty() ? "" : ", ") + name(rank_of(rank));
  if (missing.empty()) return;
  if (over)
    fail(concat(missing, " did not reach ", collective(gathering.what), " within ", limit(),
                " s: stopped, cut off, or busy with something else"));
  gathering.late = true;
  options_.tell(concat("waiting for ", missing, " in ", collective(gathering.what), ", limit ", limit(), " s"));
  std::string why;
  for (size_t rank = 1; rank < peers_.size(); ++rank)
    if (gathering.have[rank]) static_cast<void>(peers_[rank].send({Kind::late, sequence_, {}}, in(1), why));
}

// On the other ranks.
void TcpGroup::send_contribution(Gathering& gathering) {
  Socket& first = peers_[0];
  const auto ranks = static_cast<size_t>(size());
  std::string why;
  {
    const std::lock_guard lock(mutex_);
    const Message mine{Kind::give, sequence_, join({gathering.what, where(), gathering.mine})};
    if (!first.send(mine, gathering.deadline, why)) lost(0, why, collective(gathering.what));
  }
  for (;;) {
    wait_for_any({&first}, gathering.deadline.left());
    const std::lock_guard lock(mutex_);
    Message message;
    const Socket::Arrived arrived = first.receive(message, ranks * (kMostTextBytes + 8), why);
    if (arrived == Socket::Arrived::gone) lost(0, why, collective(gathering.what));
    if (arrived == Socket::Arrived::no) {
      if (!gathering.deadline.is_past()) continue;
      fail(concat(name(0), " did not reach ", collective(gathering.what), " within ", limit(),
                  " s: stopped, cut off, or busy with something else"));
    }
    if (message.kind == Kind::failure) fail(printable(message.text));
    if (message.kind == Kind::late && message.sequence == sequence_ && !gathering.late) {
      gathering.late = true;  // rank 0 is alive and waits for others; bounded
      gathering.deadline = in(timeout());
      continue;
    }
    if (message.kind != Kind::result || message.sequence != sequence_ || !split(message.text, gathering.texts) ||
        gathering.texts.size() != ranks)
      lost(0, "it does not follow the protocol of rank 0", collective(gathering.what));
    return;
  }
}

void TcpGroup::lost(size_t rank, const std::string& why, const std::string& place) {
  // Its last message, if any, is more specific.
  Message message;
  std::string end;
  while (peers_[rank].receive(message, kMostTextBytes, end) == Socket::Arrived::yes)
    if (message.kind == Kind::failure) fail(printable(message.text));
  fail(concat("lost ", name(rank_of(rank)), " in ", place, ": ", why));
}

// A lost connection does not tell why a rank ended: waits for the report of the rank that knows, through rank 0.
void TcpGroup::end_by_report(const std::string& report) {
  for (const Deadline deadline = in(1); !deadline.is_past();
       std::this_thread::sleep_for(std::chrono::milliseconds(10))) {
    const std::lock_guard lock(mutex_);
    std::string why;
    Message message;
    for (Socket& peer : peers_)
      while (peer && peer.receive(message, kMostTextBytes, why) == Socket::Arrived::yes)
        if (message.kind == Kind::failure) fail(printable(message.text));
  }
  fail(report);
}

void TcpGroup::tell_peers(const std::string& report) {
  mutex_.lock();  // never unlocked: one thread ends the process
  const Deadline deadline = in(2);
  std::string why;
  for (Socket& peer : peers_)
    if (peer) static_cast<void>(peer.send({Kind::failure, sequence_, report}, deadline, why));
}

// Detects a rank's end by its closed connection, before a timeout.
void TcpGroup::watch() {
  for (; !stopping_ && !finishing_; std::this_thread::sleep_for(std::chrono::milliseconds(100))) check_connections();
}

void TcpGroup::check_connections() {
  const std::lock_guard lock(mutex_);
  if (busy_ || finishing_) return;
  for (size_t peer = 0; peer < peers_.size(); ++peer)
    if (peers_[peer] && peers_[peer].is_gone()) lost(peer, "the connection was closed", where());
}

}  // namespace
}  // namespace tcp

std::unique_ptr<Group> make_tcp_group(const GroupOptions& options, const TcpOptions& tcp) {
  return std::make_unique<tcp::TcpGroup>(options, tcp);
}

}  // namespace dtrain
