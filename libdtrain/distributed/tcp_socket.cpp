// Non-blocking sockets with poll.
#include "libdtrain/distributed/tcp_socket.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dtrain/core/error.h"

namespace dtrain::tcp {
namespace {

// First data of each side. All supported machines are little-endian.
struct Greeting {
  uint64_t magic = kMagic;
  Bytes32 nonce{};
  static constexpr uint64_t kMagic = 0x3270637464;  // "dtcp2"
};
static_assert(sizeof(Greeting) == 40);

// Precedes each message.
struct Header {
  uint64_t kind = 0, sequence = 0, bytes = 0;
  Bytes32 tag{};
  std::string_view sealed() const { return {reinterpret_cast<const char*>(this), offsetof(Header, tag)}; }
};
static_assert(sizeof(Header) == 56);

constexpr char kForeign[] = "it does not follow the protocol of ranks", kSilent[] = "it sent no greeting";
constexpr size_t kStep = 1 << 20;  // memory grows with received, not announced, bytes

std::string reason(int error) { return std::strerror(error); }

int milliseconds(double seconds) { return static_cast<int>(std::ceil(1e3 * std::clamp(seconds, 0.0, 1.0))); }

// False once the deadline is past.
bool wait_for(int file, short events, Deadline deadline) {
  for (;;) {
    pollfd one{file, events, 0};
    if (::poll(&one, 1, milliseconds(deadline.left())) > 0) return true;
    if (deadline.is_past()) return false;
  }
}

void set(int file, int level, int option, int value) {
  static_cast<void>(setsockopt(file, level, option, &value, sizeof value));  // optional: the defaults work
}

// TCP keep-alive: a dead host is detected within half a minute.
Socket prepared(int file) {
  set(file, IPPROTO_TCP, TCP_NODELAY, 1);
  set(file, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(file, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(file, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(file, IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(file, IPPROTO_TCP, TCP_USER_TIMEOUT, 30000);
  return Socket(file);
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;
Addresses addresses_of(const std::string& name, int port, int flags, std::string& why) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  const int error = getaddrinfo(name.empty() ? nullptr : name.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) why = concat(name, ": ", gai_strerror(error));
  return Addresses(error == 0 ? found : nullptr, freeaddrinfo);
}

struct Numbers {
  std::string address = "somewhere", port = "0";
};
Numbers numbers_of(const sockaddr_storage& address, socklen_t size) {
  char name[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
  const int error = getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, name, sizeof name, port, sizeof port,
                                NI_NUMERICHOST | NI_NUMERICSERV);
  return error == 0 ? Numbers{name, port} : Numbers{};
}

// `end`: getsockname or getpeername.
Numbers numbers_of_end(const Socket& socket, int (*end)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (end(socket.file(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return numbers_of(address, size);
}

// Detects a TCP self-connect: the kernel assigned the destination port as the source port. Such a connection would
// block the port for its listener.
bool met_itself(const Socket& socket) {
  const Numbers mine = numbers_of_end(socket, getsockname), other = numbers_of_end(socket, getpeername);
  return mine.address == other.address && mine.port == other.port;
}

int open_for(const addrinfo& address) {
  return socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol);
}

}  // namespace

Deadline in(double seconds) { return {std::chrono::steady_clock::now(), seconds}; }

Socket::~Socket() {
  if (file_ >= 0) close(file_);
}

Socket& Socket::operator=(Socket&& other) noexcept {
  swap(other);
  return *this;
}

void Socket::swap(Socket& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(failed_proof_, other.failed_proof_);
  std::swap(begun_, other.begun_);
  std::swap(opening_, other.opening_);
  std::swap(sends_, other.sends_);
  std::swap(receives_, other.receives_);
}

bool Socket::greet(const Bytes32& job, bool is_rank_zero, std::string& why) {
  opening_ = {.job = job, .nonce = draw_nonce(), .is_rank_zero = is_rank_zero};
  const Greeting greeting{.nonce = opening_.nonce};
  // A new connection's send buffer holds this.
  return send_bytes({reinterpret_cast<const char*>(&greeting), sizeof greeting}, in(0), why);
}

Socket::Arrived Socket::take_greeting(std::string& why) {
  if (receives_) return Arrived::yes;
  if (const Arrived arrived = take(sizeof(Greeting), why); arrived != Arrived::yes) return arrived;
  Greeting greeting;
  std::memcpy(&greeting, begun_.data(), sizeof greeting);
  begun_.clear();
  if (greeting.magic != Greeting::kMagic) {
    why = kForeign;
    return Arrived::gone;
  }
  const auto& [job, mine, is_rank_zero] = opening_;
  const Bytes32 &zero = is_rank_zero ? mine : greeting.nonce, &other = is_rank_zero ? greeting.nonce : mine;
  sends_.emplace(job, is_rank_zero, zero, other);
  receives_.emplace(job, !is_rank_zero, zero, other);
  return Arrived::yes;
}

bool Socket::await_greeting(Deadline deadline, std::string& why) {
  for (;;) {
    const Arrived arrived = take_greeting(why);
    if (arrived != Arrived::no) return arrived == Arrived::yes;
    if (!wait_for(file_, POLLIN, deadline)) {
      why = kSilent;
      return false;
    }
  }
}

bool Socket::send_bytes(const std::string& bytes, Deadline deadline, std::string& why) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t sent = ::send(file_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (sent >= 0) {
      done += static_cast<size_t>(sent);
    } else if (errno != EAGAIN && errno != EINTR) {
      why = reason(errno);
      return false;
    } else if (!wait_for(file_, POLLOUT, deadline)) {
      why = "it receives nothing";
      return false;
    }
  }
  return true;
}

bool Socket::send(const Message& message, Deadline deadline, std::string& why) {
  Header header{
      .kind = static_cast<uint64_t>(message.kind), .sequence = message.sequence, .bytes = message.text.size()};
  header.tag = sends_.value().next(header.sealed(), message.text);
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += message.text;
  return send_bytes(bytes, deadline, why);
}

// Reads until `begun_` has `wanted` bytes.
Socket::Arrived Socket::take(size_t wanted, std::string& why) {
  while (begun_.size() < wanted) {
    const size_t before = begun_.size();
    begun_.resize(std::min(wanted, before + kStep));
    const ssize_t taken = ::recv(file_, begun_.data() + before, begun_.size() - before, 0);
    const int error = errno;
    begun_.resize(before + static_cast<size_t>(std::max<ssize_t>(taken, 0)));
    if (taken > 0) continue;
    if (taken < 0 && (error == EAGAIN || error == EINTR)) return Arrived::no;
    why = taken == 0 ? "the connection was closed" : reason(error);
    return Arrived::gone;
  }
  return Arrived::yes;
}

Socket::Arrived Socket::receive(Message& message, size_t most, std::string& why) {
  if (const Arrived arrived = take_greeting(why); arrived != Arrived::yes) return arrived;
  Header header;
  if (const Arrived arrived = take(sizeof header, why); arrived != Arrived::yes) return arrived;
  std::memcpy(&header, begun_.data(), sizeof header);
  if (header.bytes > most) {
    why = kForeign;
    return Arrived::gone;
  }
  if (const Arrived arrived = take(sizeof header + header.bytes, why); arrived != Arrived::yes) return arrived;
  std::string text = begun_.substr(sizeof header);
  begun_.clear();
  if (!same(header.tag, receives_.value().next(header.sealed(), text))) {
    failed_proof_ = true;
    why = "it failed to authenticate with this job's secret";
    return Arrived::gone;
  }
  message = {static_cast<Kind>(header.kind), header.sequence, std::move(text)};
  return Arrived::yes;
}

bool Socket::receive(Message& message, size_t most, Deadline deadline, std::string& why) {
  for (;;) {
    const Arrived arrived = receive(message, most, why);
    if (arrived != Arrived::no) return arrived == Arrived::yes;
    if (!wait_for(file_, POLLIN, deadline)) {
      why = kSilent;
      return false;
    }
  }
}

bool Socket::is_gone() const {
  pollfd one{file_, POLLRDHUP, 0};
  return ::poll(&one, 1, 0) > 0;
}

Socket listen_on(const std::string& address, int port, const std::string& who) {
  std::string why;
  const Addresses found = addresses_of(address, port, AI_PASSIVE, why);
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    Socket socket(open_for(*one));
    if (!socket) continue;
    set(socket.file(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (bind(socket.file(), one->ai_addr, one->ai_addrlen) == 0 && listen(socket.file(), SOMAXCONN) == 0) return socket;
    why = reason(errno);
  }
  throw Error(Fault::communication, concat(who, " cannot listen on ", address.empty() ? "port" : address + " port", " ",
                                           port, ": ", why, "; choose another with DTRAIN_MASTER_PORT"));
}

int port_of(const Socket& socket) { return std::stoi(numbers_of_end(socket, getsockname).port); }
std::string address_of(const Socket& socket) { return numbers_of_end(socket, getsockname).address; }
bool is_on_this_machine(const Socket& socket) {
  return is_loopback(numbers_of_end(socket, getsockname).address) &&
         is_loopback(numbers_of_end(socket, getpeername).address);
}

std::string number_of(const std::string& address) { return address == "localhost" ? "127.0.0.1" : address; }

bool is_loopback(const std::string& address) {
  if (address == "localhost") return true;
  std::string why;
  const Addresses found = addresses_of(address, 0, AI_NUMERICHOST, why);
  if (address.empty() || !found) return false;
  if (found->ai_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(found->ai_addr)->sin6_addr);
  return ntohl(reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

Socket accept_from(const Socket& listener, std::string& caller, int& error) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  int file = -1;
  do {  // skips connections that closed while pending
    file = accept4(listener.file(), reinterpret_cast<sockaddr*>(&address), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  } while (file < 0 && (errno == ECONNABORTED || errno == EINTR));
  const bool lacks_room = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
  error = file < 0 && lacks_room ? errno : 0;
  if (file < 0) return Socket();
  caller = numbers_of(address, size).address;
  return prepared(file);
}

Socket connect_to(const std::string& address, int port, Deadline deadline, std::string& why) {
  const Addresses found = addresses_of(address, port, 0, why);
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    const int file = open_for(*one);
    if (file < 0) {
      why = reason(errno);
      continue;
    }
    Socket socket = prepared(file);
    int error = connect(socket.file(), one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      socklen_t size = sizeof error;
      if (!wait_for(socket.file(), POLLOUT, deadline))
        error = ETIMEDOUT;
      else if (getsockopt(socket.file(), SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    }
    if (error == 0 && met_itself(socket)) error = ECONNREFUSED;
    if (error == 0) return socket;
    why = concat(address, " port ", port, ": ", reason(error));
  }
  return Socket();
}

std::vector<bool> wait_for_any(const std::vector<const Socket*>& sockets, double seconds) {
  std::vector<pollfd> files;
  for (const Socket* socket : sockets) files.push_back({socket->file(), POLLIN, 0});
  static_cast<void>(::poll(files.data(), files.size(), milliseconds(seconds)));
  std::vector<bool> speaking;
  for (const pollfd& file : files) speaking.push_back(file.revents != 0);
  return speaking;
}

std::string join(const std::vector<std::string>& texts) {
  std::string bytes;
  for (const std::string& text : texts) {
    const uint64_t size = text.size();
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
    bytes += text;
  }
  return bytes;
}

bool split(const std::string& bytes, std::vector<std::string>& texts) {
  texts.clear();
  for (size_t at = 0; at < bytes.size();) {
    uint64_t size = 0;
    if (bytes.size() - at < sizeof size) return false;
    std::memcpy(&size, bytes.data() + at, sizeof size);
    at += sizeof size;
    if (size > bytes.size() - at) return false;
    texts.push_back(bytes.substr(at, size));
    at += size;
  }
  return true;
}

std::string printable(const std::string& text, size_t most) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (result.size() >= most) return result + "...";
    if (byte >= ' ' && byte < 0x7f)
      result += c;
    else
      result += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return result;
}

}  // namespace dtrain::tcp
