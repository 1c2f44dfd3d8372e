// Rank 0 listens, authenticates each visitor by the secret and reads its hello; the others retry until it listens, and
// authenticate rank 0.
#include "libdtrain/distributed/tcp_rendezvous.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include <unistd.h>

#include "dtrain/core/error.h"

namespace dtrain::tcp {
namespace {

constexpr size_t kHelloBytes = 1 << 16, kWelcomeBytesPerRank = 2048;
constexpr double kHandshakeTimeout = 5;       // seconds for a visitor to authenticate
constexpr double kReportAfter = 10;           // seconds before waiting is reported
constexpr size_t kMostUnauthenticated = 256;  // concurrent unauthenticated connections
constexpr uint64_t kMostReports = 8;          // reported strangers
constexpr char kSecretAdvice[] = "all ranks need one DTRAIN_JOB_SECRET (or DTRAIN_JOB_SECRET_FILE), or none";

using Warn = std::function<void(const std::string&)>;

struct Hello {
  std::string job, host, members;
  int rank = -1, size = 0, pid = 0;
};

std::string host_name() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return host;
}

bool read_number(const std::string& text, int& number) {
  const char* end = text.data() + text.size();
  return std::from_chars(text.data(), end, number) == std::from_chars_result{end, std::errc{}};
}

std::string write(const Hello& hello) {
  return join({hello.job, hello.host, std::to_string(hello.rank), std::to_string(hello.size), std::to_string(hello.pid),
               hello.members});
}

bool read(const std::string& bytes, Hello& hello) {
  std::vector<std::string> texts;
  if (!split(bytes, texts) || texts.size() != 6) return false;
  hello.job = texts[0];
  hello.host = printable(texts[1]);
  hello.members = texts[5];
  return read_number(texts[2], hello.rank) && read_number(texts[3], hello.size) && read_number(texts[4], hello.pid);
}

// Ranks with equal host names share a host.
void number(std::vector<Place>& places) {
  std::map<std::string, int> nodes, ranks;
  for (Place& place : places) {
    place.node = nodes.emplace(place.host, static_cast<int>(nodes.size())).first->second;
    place.local_rank = ranks[place.host]++;
  }
  for (Place& place : places) place.local_size = ranks[place.host];
}

// Address that rank 0 listens on: loopback unless another is named.
std::string listening_address(const TcpOptions& tcp) {
  return tcp.bind_address.empty() && is_loopback(tcp.address) ? number_of(tcp.address) : tcp.bind_address;
}

Socket listener_of(const TcpOptions& tcp) {
  return tcp.listener >= 0 ? Socket(tcp.listener) : listen_on(listening_address(tcp), tcp.port, "rank 0");
}

std::string list_of(const std::vector<int>& ranks) {
  std::string text = "rank";
  for (const int rank : ranks) text += concat(" ", rank);
  return text;
}

class RendezvousServer {
 public:
  RendezvousServer(const TcpOptions& tcp, const Bytes32& key, const Warn& warn)
      : tcp_(tcp), key_(key), warn_(warn), listener_(listener_of(tcp)) {
    rendezvous_.peers.resize(static_cast<size_t>(tcp.size));
    rendezvous_.places.resize(static_cast<size_t>(tcp.size));
    rendezvous_.places[0] = {.host = host_name(), .pid = getpid()};
  }

  Rendezvous wait(double limit) {
    const Deadline deadline = in(limit);
    while (!missing().empty()) {
      look(deadline);
      if (!missing().empty() && deadline.is_past()) give_up(limit);
      report_waiting(deadline);
    }
    number(rendezvous_.places);
    std::vector<std::string> texts;
    for (const Place& place : rendezvous_.places) {
      texts.push_back(place.host);
      texts.push_back(std::to_string(place.pid));
    }
    // A rank that is gone by now is detected in the first collective.
    send_to_all({Kind::welcome, 0, join(texts)});
    return std::move(rendezvous_);
  }

 private:
  struct Visitor {
    Deadline deadline;
    Socket socket{};
    std::string caller{};
    bool proven = false;  // knows the secret
  };

  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (int rank = 1; rank < tcp_.size; ++rank)
      if (!rendezvous_.peers[static_cast<size_t>(rank)]) ranks.push_back(rank);
    return ranks;
  }

  void look(Deadline deadline) {
    std::vector<const Socket*> sockets{&listener_};
    for (const Visitor& visitor : visitors_) sockets.push_back(&visitor.socket);
    wait_for_any(sockets, std::min(deadline.left(), 0.5));
    // Ranks send nothing before the welcome, but may disconnect and return.
    for (Socket& peer : rendezvous_.peers)
      if (peer && peer.is_gone()) peer = Socket();
    accept_visitors();
    std::erase_if(visitors_, [this](Visitor& visitor) { return !may_stay(visitor); });
  }

  // A silent visitor makes room for new ones: ranks authenticate at once.
  void accept_visitors() {
    const size_t most = rendezvous_.peers.size() + kMostUnauthenticated;
    for (size_t turn = 0; turn < most; ++turn) {
      Visitor visitor{.deadline = in(kHandshakeTimeout)};
      int error = 0;
      visitor.socket = accept_from(listener_, visitor.caller, error);
      if (!visitor.socket && error == 0) return;
      if (!visitor.socket || visitors_.size() >= most) {
        const auto silent = std::ranges::find(visitors_, false, &Visitor::proven);
        if (silent == visitors_.end() && error != 0)
          throw Error(Fault::resource, concat("rank 0 cannot take the connection of another rank: ", strerror(error),
                                              "; raise the limit of open files (ulimit -n)"));
        if (silent == visitors_.end()) continue;
        visitors_.erase(silent);
      }
      std::string why;
      if (visitor.socket && visitor.socket.greet(key_, /*is_rank_zero=*/true, why))
        visitors_.push_back(std::move(visitor));
    }
  }

  // False once it became a peer or must be closed.
  bool may_stay(Visitor& visitor) {
    Message message;
    std::string why = "it sent no greeting";
    const Socket::Arrived arrived = visitor.socket.receive(message, visitor.proven ? kHelloBytes : 0, why);
    if (arrived == Socket::Arrived::no && !visitor.deadline.is_past()) return true;
    if (arrived != Socket::Arrived::yes) {
      if (visitor.socket.has_failed_proof()) unproven_ = visitor.caller;
      report_stranger(visitor.caller, why);
    } else if (!visitor.proven) {
      visitor.proven = message.kind == Kind::proof && visitor.socket.send({Kind::proof, 0, {}}, in(0), why);
      return visitor.proven;
    } else if (Hello hello; message.kind != Kind::hello || !read(message.text, hello)) {
      report_stranger(visitor.caller, "it does not follow the protocol of ranks");
    } else if (hello.job == tcp_.job && hello.members != tcp_.members) {
      fail_all(
          concat("the ranks were given different lists of processes: rank 0 on ", rendezvous_.places[0].host, " has ",
                 printable(tcp_.members), "; rank ", hello.rank, " on ", hello.host, " has ", printable(hello.members)),
          &visitor.socket);
    } else if (const std::string reason = objection(hello); !reason.empty()) {
      static_cast<void>(visitor.socket.send({Kind::refuse, 0, reason}, in(1), why));
      tell_user(concat("rejected a rank from ", hello.host, " pid ", hello.pid, ": ", reason));
    } else {
      const auto rank = static_cast<size_t>(hello.rank);
      rendezvous_.peers[rank] = std::move(visitor.socket);
      rendezvous_.places[rank] = {.host = hello.host, .pid = hello.pid};
    }
    return false;
  }

  std::string objection(const Hello& hello) const {
    if (hello.job != tcp_.job)
      return concat("it belongs to job '", printable(hello.job), "', rank 0 to job '", tcp_.job, "'");
    if (hello.size != tcp_.size)
      return concat("it was started as one of ", hello.size, " ranks, rank 0 as one of ", tcp_.size);
    if (hello.rank < 1 || hello.rank >= tcp_.size)
      return concat("it is rank ", hello.rank, ", expected 1 to ", tcp_.size - 1);
    const Place& place = rendezvous_.places[static_cast<size_t>(hello.rank)];
    if (rendezvous_.peers[static_cast<size_t>(hello.rank)])
      return concat("rank ", hello.rank, " is here already, from ", place.host, " pid ", place.pid);
    return "";
  }

  [[noreturn]] void give_up(double limit) {
    fail_all(concat(
        "set-up: no connection within ", limit, " s from ", list_of(missing()), " (rank 0 on ",
        rendezvous_.places[0].host, " listens on port ", tcp_.port, ")",
        unproven_.empty() ? "" : concat("; a caller from ", unproven_, " failed to authenticate: ", kSecretAdvice)));
  }
  // `visitor`: also notified.
  [[noreturn]] void fail_all(const std::string& text, Socket* visitor = nullptr) {
    const Message message{Kind::failure, 0, text};
    std::string why;
    if (visitor != nullptr) static_cast<void>(visitor->send(message, in(1), why));
    send_to_all(message);
    throw Error(Fault::communication, text);
  }
  // Reported once: ranks may be started by hand.
  void report_waiting(Deadline deadline) {
    if (reported_waiting_ || missing().empty() || waited_since(deadline.begun) < kReportAfter) return;
    reported_waiting_ = true;
    tell_user(concat("waiting for ", list_of(missing()), " on port ", tcp_.port, ", limit ", deadline.seconds, " s"));
  }

  void send_to_all(const Message& message) {
    std::string why;
    for (Socket& peer : rendezvous_.peers)
      if (peer) static_cast<void>(peer.send(message, in(1), why));
  }
  void tell_user(const std::string& text) const {
    if (warn_) warn_(text);
  }
  // Strangers may connect repeatedly; reports are limited.
  void report_stranger(const std::string& caller, const std::string& why) {
    if (++strangers_ <= kMostReports) tell_user(concat("rejected a connection from ", caller, ": ", why));
    if (strangers_ == kMostReports) tell_user("further rejected connections are not reported");
  }

  const TcpOptions& tcp_;
  const Bytes32 key_;
  const Warn& warn_;
  Socket listener_;
  std::vector<Visitor> visitors_;  // in order of arrival
  uint64_t strangers_ = 0;
  std::string unproven_;  // address of the last caller that failed to authenticate
  bool reported_waiting_ = false;
  Rendezvous rendezvous_;
};

std::vector<Place> places_in(const std::string& welcome, int size) {
  std::vector<std::string> texts;
  std::vector<Place> places(static_cast<size_t>(size));
  bool sound = split(welcome, texts) && texts.size() == 2 * places.size();
  for (size_t i = 0; sound && i < places.size(); ++i) {
    places[i].host = printable(texts[2 * i]);
    sound = read_number(texts[2 * i + 1], places[i].pid);
  }
  if (!sound) throw Error(Fault::communication, "rank 0 sent a malformed list of ranks");
  number(places);
  return places;
}

// Authenticated connection to rank 0; none, with the reason in `why`, on failure. `unproven`: why the last listener
// failed to authenticate.
Socket call_rank_zero(const TcpOptions& tcp, const Bytes32& key, double patience, std::string& why,
                      std::string& unproven, const Warn& warn) {
  const Deadline deadline = in(patience);
  Socket socket = connect_to(number_of(tcp.address), tcp.port, deadline, why);
  if (!socket) return Socket();
  why.clear();
  Message answer;
  const bool greeted = socket.greet(key, /*is_rank_zero=*/false, why) && socket.await_greeting(deadline, why);
  const bool met = greeted && socket.send({Kind::proof, 0, {}}, deadline, why) &&
                   socket.receive(answer, 0, deadline, why) && answer.kind == Kind::proof;
  if (met) return socket;
  // Rank 0 closes connections with wrong proofs, but also surplus ones.
  const bool refused = greeted && (socket.has_failed_proof() || socket.is_gone());
  why = concat("the listener failed to authenticate as rank 0 of this job (this rank was given ",
               tcp.secret.empty() ? "no secret" : "a secret", ")", why.empty() ? "" : ": ", why,
               refused ? concat("; it probably has another job secret: ", kSecretAdvice) : "");
  unproven = why;
  warn(concat(tcp.address, " port ", tcp.port, ": ", why));
  return Socket();
}

// Retries: rank 0 may start later than this rank, or restart.
Rendezvous visit(const TcpOptions& tcp, const Bytes32& key, double limit, const Warn& warn) {
  // Rank 0, which knows the missing ranks, times out first.
  const Deadline deadline = in(limit + std::min(kHandshakeTimeout, limit / 2));
  const Hello hello{
      .job = tcp.job, .host = host_name(), .members = tcp.members, .rank = tcp.rank, .size = tcp.size, .pid = getpid()};
  const size_t most = kHelloBytes + kWelcomeBytesPerRank * static_cast<size_t>(tcp.size);
  std::string why, unproven;
  bool warned = false;
  const Warn warn_once = [&](const std::string& line) {
    if (warn && !std::exchange(warned, true)) warn(line);
  };
  for (double pause = 0.05; !deadline.is_past(); pause = std::min(1.0, 1.5 * pause)) {
    if (waited_since(deadline.begun) > kReportAfter)
      warn_once(concat("waiting for rank 0 at ", tcp.address, " port ", tcp.port, ", limit ", limit, " s: ", why));
    Socket socket = call_rank_zero(tcp, key, std::min(deadline.left(), kHandshakeTimeout), why, unproven, warn_once);
    Message answer;
    if (socket && socket.send({Kind::hello, 0, write(hello)}, deadline, why) &&
        socket.receive(answer, most, deadline, why)) {
      if (answer.kind == Kind::refuse)
        throw Error(concat("rank ", tcp.rank, " was rejected by rank 0 at ", tcp.address, " port ", tcp.port, ": ",
                           printable(answer.text)));
      if (answer.kind == Kind::failure)
        throw Error(Fault::communication, concat("rank 0 gave up: ", printable(answer.text)));
      if (answer.kind == Kind::welcome) {
        Rendezvous met;
        met.places = places_in(answer.text, tcp.size);
        met.peers.push_back(std::move(socket));
        return met;
      }
      why = "it does not follow the protocol of rank 0";
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
  }
  // A rank 0 with another secret times out first; the last reason is then that nobody listens.
  throw Error(Fault::communication,
              concat("rank ", tcp.rank, " on ", hello.host, " did not reach rank 0 at ", tcp.address, " port ",
                     tcp.port, " within ", limit, " s: ", why,
                     unproven.empty() || unproven == why ? "" : concat("; before that, ", unproven)));
}

// Without authentication anybody who reaches the port could join, and anybody who listens could pose as rank 0.
void refuse_strangers(const TcpOptions& tcp) {
  const bool only_here = is_loopback(tcp.address) && (tcp.bind_address.empty() || is_loopback(tcp.bind_address));
  DT_CHECK(
      !tcp.secret.empty() || tcp.trust_network || only_here, "rank 0 at ", tcp.address,
      ": ranks that meet over a network need a secret. Give each the same DTRAIN_JOB_SECRET, such as `openssl rand "
      "-hex 32` prints, or DTRAIN_JOB_SECRET_FILE; or DTRAIN_TRUST_NETWORK=1 where no stranger reaches them. On "
      "one machine DTRAIN_MASTER_ADDR=localhost needs none");
}

}  // namespace

Rendezvous rendezvous(const TcpOptions& tcp, double limit, const std::function<void(const std::string&)>& warn) {
  refuse_strangers(tcp);
  const Bytes32 key = key_of(tcp.secret);
  return tcp.rank == 0 ? RendezvousServer(tcp, key, warn).wait(limit) : visit(tcp, key, limit, warn);
}

}  // namespace dtrain::tcp
