// Rank 0 listens and takes the first message of each visitor; the others try until it does.
#include "libdtrain/distributed/tcp_meeting.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <thread>

#include <unistd.h>

#include "libdtrain/core/error.h"

namespace dtrain::tcp {
namespace {

constexpr size_t kHelloBytes = 4096, kWelcomeBytesPerRank = 512;
constexpr double kPatience = 5;  // seconds that a visitor may take to say who it is

struct Hello {
  std::string job, host;
  int rank = -1, size = 0, pid = 0;
};

std::string host_name() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return host;
}

bool number_in(const std::string& text, int& number) {
  const char* end = text.data() + text.size();
  return std::from_chars(text.data(), end, number) == std::from_chars_result{end, std::errc{}};
}

std::string write(const Hello& hello) {
  return join(
      {hello.job, hello.host, std::to_string(hello.rank), std::to_string(hello.size), std::to_string(hello.pid)});
}

bool read(const std::string& bytes, Hello& hello) {
  std::vector<std::string> texts;
  if (!split(bytes, texts) || texts.size() != 5) return false;
  hello.job = texts[0];
  hello.host = texts[1];
  return number_in(texts[2], hello.rank) && number_in(texts[3], hello.size) && number_in(texts[4], hello.pid);
}

// Ranks are on one host where their hosts have one name.
void number(std::vector<Place>& places) {
  std::map<std::string, int> nodes, ranks;
  for (Place& place : places) {
    place.node = nodes.emplace(place.host, static_cast<int>(nodes.size())).first->second;
    place.local_rank = ranks[place.host]++;
  }
  for (Place& place : places) place.local_size = ranks[place.host];
}

class Reception {
 public:
  Reception(const TcpOptions& tcp, const std::function<void(const std::string&)>& warn)
      : tcp_(tcp), warn_(warn), listener_(listen_on(tcp.bind_address, tcp.port)) {
    meeting_.peers.resize(static_cast<size_t>(tcp.size));
    meeting_.places.resize(static_cast<size_t>(tcp.size));
    meeting_.places[0] = {.host = host_name(), .pid = getpid()};
  }

  Meeting wait(double limit) {
    const Deadline deadline = in(limit);
    while (!missing().empty()) {
      look(deadline);
      if (Clock::now() > deadline) give_up(limit);
    }
    number(meeting_.places);
    std::vector<std::string> texts;
    for (const Place& place : meeting_.places) {
      texts.push_back(place.host);
      texts.push_back(std::to_string(place.pid));
    }
    // One that has gone by now is missed in the first collective.
    tell_all({Kind::welcome, 0, join(texts)});
    return std::move(meeting_);
  }

 private:
  struct Visitor {
    Socket socket;
    Deadline until;
  };

  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (int rank = 1; rank < tcp_.size; ++rank)
      if (!meeting_.peers[static_cast<size_t>(rank)]) ranks.push_back(rank);
    return ranks;
  }

  void look(Deadline deadline) {
    std::vector<const Socket*> sockets{&listener_};
    for (const Visitor& visitor : visitors_) sockets.push_back(&visitor.socket);
    for (const Socket& peer : meeting_.peers)
      if (peer) sockets.push_back(&peer);
    wait_for_any(sockets, std::min(deadline, in(0.5)));
    // Whoever is here has nothing to say before the welcome, but may go, and come again.
    for (Socket& peer : meeting_.peers)
      if (peer && peer.is_gone()) peer = Socket();
    while (Socket visitor = accept_from(listener_)) {
      if (visitors_.size() < meeting_.peers.size() + 64) visitors_.push_back({std::move(visitor), in(kPatience)});
    }
    std::erase_if(visitors_, [this](Visitor& visitor) { return !may_stay(visitor); });
  }

  // False once it has become a peer or is to go.
  bool may_stay(Visitor& visitor) {
    Message message;
    std::string why = "it says nothing";
    const Socket::Arrived arrived = visitor.socket.receive(message, kHelloBytes, why);
    if (arrived == Socket::Arrived::no && Clock::now() < visitor.until) return true;
    Hello hello;
    if (arrived != Socket::Arrived::yes) {
      tell_user(concat("somebody who is no rank has called: ", why));
    } else if (message.kind != Kind::hello || !read(message.text, hello)) {
      tell_user("somebody who is no rank has called: it does not speak as a rank does");
    } else if (const std::string reason = objection(hello); !reason.empty()) {
      static_cast<void>(visitor.socket.send({Kind::refuse, 0, reason}, in(1), why));
      tell_user(concat("sent away, from ", hello.host, " pid ", hello.pid, ": ", reason));
    } else {
      const auto rank = static_cast<size_t>(hello.rank);
      meeting_.peers[rank] = std::move(visitor.socket);
      meeting_.places[rank] = {.host = hello.host, .pid = hello.pid};
    }
    return false;
  }

  std::string objection(const Hello& hello) const {
    if (hello.job != tcp_.job) return concat("it belongs to job '", hello.job, "', rank 0 to job '", tcp_.job, "'");
    if (hello.size != tcp_.size)
      return concat("it was started as one of ", hello.size, " ranks, rank 0 as one of ", tcp_.size);
    if (hello.rank < 1 || hello.rank >= tcp_.size)
      return concat("it is rank ", hello.rank, ", expected 1 to ", tcp_.size - 1);
    const Place& place = meeting_.places[static_cast<size_t>(hello.rank)];
    if (meeting_.peers[static_cast<size_t>(hello.rank)])
      return concat("rank ", hello.rank, " is here already, from ", place.host, " pid ", place.pid);
    return "";
  }

  [[noreturn]] void give_up(double limit) {
    std::string text = "set-up: no word within " + concat(limit, " s from rank");
    for (const int rank : missing()) text += concat(" ", rank);
    text += concat(" (rank 0 on ", meeting_.places[0].host, " listens on port ", tcp_.port, ")");
    tell_all({Kind::failure, 0, text});
    throw Error(Fault::communication, text);
  }

  void tell_all(const Message& message) {
    std::string why;
    for (Socket& peer : meeting_.peers)
      if (peer) static_cast<void>(peer.send(message, in(1), why));
  }
  void tell_user(const std::string& text) const {
    if (warn_) warn_(text);
  }

  const TcpOptions& tcp_;
  const std::function<void(const std::string&)>& warn_;
  Socket listener_;
  std::vector<Visitor> visitors_;
  Meeting meeting_;
};

std::vector<Place> places_in(const std::string& welcome, int size) {
  std::vector<std::string> texts;
  std::vector<Place> places(static_cast<size_t>(size));
  bool sound = split(welcome, texts) && texts.size() == 2 * places.size();
  for (size_t i = 0; sound && i < places.size(); ++i) {
    places[i].host = texts[2 * i];
    sound = number_in(texts[2 * i + 1], places[i].pid);
  }
  if (!sound) throw Error(Fault::communication, "rank 0 sent a list of ranks that is none");
  number(places);
  return places;
}

// Rank 0 may start later than this one, or again.
Meeting visit(const TcpOptions& tcp, double limit) {
  // Rank 0 is the first to give up: it knows who is missing.
  const Deadline deadline = in(limit + std::min(kPatience, limit / 2));
  const Hello hello{.job = tcp.job, .host = host_name(), .rank = tcp.rank, .size = tcp.size, .pid = getpid()};
  const size_t most = kHelloBytes + kWelcomeBytesPerRank * static_cast<size_t>(tcp.size);
  std::string why;
  for (double pause = 0.05; Clock::now() < deadline; pause = std::min(1.0, 1.5 * pause)) {
    Socket socket = connect_to(tcp.address, tcp.port, std::min(deadline, in(kPatience)), why);
    Message answer;
    if (socket && socket.send({Kind::hello, 0, write(hello)}, deadline, why) &&
        socket.receive(answer, most, deadline, why)) {
      if (answer.kind == Kind::refuse)
        throw Error(concat("rank ", tcp.rank, " was sent away by rank 0 at ", tcp.address, " port ", tcp.port, ": ",
                           answer.text));
      if (answer.kind == Kind::failure) throw Error(Fault::communication, concat("rank 0 gave up: ", answer.text));
      if (answer.kind == Kind::welcome) {
        Meeting meeting;
        meeting.places = places_in(answer.text, tcp.size);
        meeting.peers.push_back(std::move(socket));
        return meeting;
      }
      why = "it does not speak as rank 0 does";
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
  }
  throw Error(Fault::communication, concat("rank ", tcp.rank, " on ", hello.host, " did not reach rank 0 at ",
                                           tcp.address, " port ", tcp.port, " within ", limit, " s: ", why));
}

}  // namespace

Meeting meet(const TcpOptions& tcp, double limit, const std::function<void(const std::string&)>& warn) {
  return tcp.rank == 0 ? Reception(tcp, warn).wait(limit) : visit(tcp, limit);
}

}  // namespace dtrain::tcp
