// Listening, connecting and accepting.
#include "libdtrain/distributed/tcp_mesh.h"

#include <algorithm>
#include <thread>

#include "dtrain/core/error.h"
#include "libdtrain/distributed/read_texts.h"

namespace dtrain::tcp {
namespace {

constexpr double kLimit = 120;                // seconds; all ranks are running
constexpr double kHandshakeTimeout = 5;       // seconds for a caller to authenticate
constexpr size_t kMostBytes = 256;            // of its hello
constexpr size_t kMostUnauthenticated = 256;  // concurrent unauthenticated connections

// Address of a rank, and the interface it listens on.
struct Address {
  std::string name;
  int port = 0;
  std::string listens{};
};

Address address_of_this(const Group& group, const TcpOptions& tcp, const std::string& reached) {
  if (!tcp.own_address.empty())
    return {tcp.own_address, tcp.own_port, is_loopback(tcp.own_address) ? number_of(tcp.own_address) : ""};
  const bool here = is_loopback(tcp.address);
  if (group.rank() == 0) return {number_of(tcp.address), here ? 0 : tcp.port, here ? reached : tcp.bind_address};
  // Rank 0 is on this machine, which others reach at another address.
  if (!here && is_loopback(reached)) return {tcp.address, 0, ""};
  return {reached, 0, reached};
}

// Hello of an authenticated caller: source, destination, and whether messages are sealed. The reply repeats the last.
std::string hello(int from, int to, bool seals) {
  return join({std::to_string(from), std::to_string(to), seals ? "1" : "0"});
}

class Mesh {
 public:
  Mesh(Group& group, const TcpOptions& tcp, const std::string& reached)
      : group_(group), secret_(!tcp.secret.empty()), key_(key_of(tcp.secret)), limit_(std::min(group.limit(), kLimit)) {
    Address own = address_of_this(group, tcp, reached);
    listener_ = listen_on(own.listens, own.port, concat("rank ", group.rank()));
    own.port = port_of(listener_);
    read_texts(group, join({own.name, std::to_string(own.port)}), "addresses", [this](int, const std::string& text) {
      std::vector<std::string> parts;
      DT_CHECK(split(text, parts) && parts.size() == 2 && parts[0].size() <= kMostBytes, "no address");
      const auto port = number_in<uint16_t>(parts[1]);
      DT_CHECK(port > 0, "port 0");
      addresses_.push_back({parts[0], port});
    });
    links_.resize(addresses_.size());
  }

  std::vector<PeerConnection> open() {
    for (int rank = 0; rank < group_.rank(); ++rank) call(rank);
    const Deadline deadline = in(limit_);
    for (int missing = first_missing(); missing >= 0; missing = first_missing()) {
      look();
      if (deadline.is_past())
        throw Error(Fault::communication,
                    concat(group_.name(missing), " did not connect to ", group_.name(group_.rank()), " at ",
                           place(group_.rank()), " within ", limit_, " s"));
    }
    return std::move(links_);
  }

 private:
  struct Caller {
    Deadline deadline;
    Socket socket{};
    bool proven = false;
  };

  std::string place(int rank) const {
    const Address& address = addresses_[static_cast<size_t>(rank)];
    return concat(printable(address.name), " port ", address.port);
  }
  PeerConnection& link(int rank) { return links_[static_cast<size_t>(rank)]; }
  int first_missing() {
    for (int rank = group_.rank() + 1; rank < group_.size(); ++rank)
      if (!link(rank).socket) return rank;
    return -1;
  }
  void keep(int rank, Socket socket, bool seals) {
    if (seals) link(rank).seals = socket.take_seals();
    link(rank).socket = std::move(socket);
  }

  void call(int rank) {
    std::string why;
    const Deadline deadline = in(limit_);
    for (double pause = 0.05; !deadline.is_past(); pause = std::min(1.0, 1.5 * pause)) {
      if (try_call(rank, why)) return;
      std::this_thread::sleep_for(std::chrono::duration<double>(pause));
    }
    throw Error(Fault::communication, concat(group_.name(group_.rank()), " does not reach ", group_.name(rank), " at ",
                                             place(rank), " within ", limit_, " s: ", why));
  }

  bool try_call(int rank, std::string& why) {
    const Deadline deadline = in(kHandshakeTimeout);
    const Address& address = addresses_[static_cast<size_t>(rank)];
    Socket socket = connect_to(address.name, address.port, deadline, why);
    if (!socket) return false;
    const bool far = secret_ && !is_on_this_machine(socket);
    Message answer;
    if (!socket.greet(key_, /*is_rank_zero=*/false, why) || !socket.await_greeting(deadline, why) ||
        !socket.send({Kind::proof, 0, {}}, deadline, why) || !socket.receive(answer, 0, deadline, why) ||
        !socket.send({Kind::hello, 0, hello(group_.rank(), rank, far)}, deadline, why) ||
        !socket.receive(answer, kMostBytes, deadline, why))
      return false;
    const bool seals = answer.text == hello(group_.rank(), rank, true);
    if (answer.kind != Kind::welcome || (!seals && (far || answer.text != hello(group_.rank(), rank, false)))) {
      why = "it does not follow the protocol of ranks";
      return false;
    }
    keep(rank, std::move(socket), seals);
    return true;
  }

  // Accepts callers and reads their hellos.
  void look() {
    std::vector<const Socket*> sockets{&listener_};
    for (const Caller& caller : callers_) sockets.push_back(&caller.socket);
    wait_for_any(sockets, 0.5);
    for (size_t turn = 0; turn < kMostUnauthenticated; ++turn) {
      Caller caller{.deadline = in(kHandshakeTimeout)};
      std::string name, why;
      int error = 0;
      caller.socket = accept_from(listener_, name, error);
      if (error != 0)
        throw Error(Fault::resource, "the limit of open files (ulimit -n) is too low for a connection to each rank");
      if (!caller.socket) break;
      if (callers_.size() >= kMostUnauthenticated) callers_.erase(callers_.begin());  // a silent caller makes room
      if (caller.socket.greet(key_, /*is_rank_zero=*/true, why)) callers_.push_back(std::move(caller));
    }
    std::erase_if(callers_, [this](Caller& caller) { return !may_stay(caller); });
  }

  // False once it became a link or must be closed.
  bool may_stay(Caller& caller) {
    Message message;
    std::string why;
    const Socket::Arrived arrived = caller.socket.receive(message, caller.proven ? kMostBytes : 0, why);
    if (arrived == Socket::Arrived::no) return !caller.deadline.is_past();
    if (arrived == Socket::Arrived::gone) return false;
    if (!caller.proven) {
      caller.proven = message.kind == Kind::proof && caller.socket.send({Kind::proof, 0, {}}, in(0), why);
      return caller.proven;
    }
    for (int rank = group_.rank() + 1; message.kind == Kind::hello && rank < group_.size(); ++rank)
      for (const bool asked : {false, true}) {
        if (message.text != hello(rank, group_.rank(), asked)) continue;
        const bool seals = asked || (secret_ && !is_on_this_machine(caller.socket));
        // A caller that retries did not receive the reply.
        if (caller.socket.send({Kind::welcome, 0, hello(rank, group_.rank(), seals)}, in(1), why))
          keep(rank, std::move(caller.socket), seals);
      }
    return false;
  }

  Group& group_;
  bool secret_;
  const Bytes32 key_;
  double limit_;
  Socket listener_;
  std::vector<Address> addresses_;  // by rank
  std::vector<PeerConnection> links_;
  std::vector<Caller> callers_;
};

}  // namespace

std::vector<PeerConnection> open_mesh(Group& group, const TcpOptions& tcp, const std::string& reached) {
  return Mesh(group, tcp, reached).open();
}

}  // namespace dtrain::tcp
