// Non-blocking sockets under poll.
#include "libdtrain/distributed/tcp_socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libdtrain/core/error.h"

namespace dtrain::tcp {
namespace {

// In front of each message. All machines of a job are little-endian, as all that this engine runs on.
struct Header {
  uint32_t magic = kMagic;
  uint32_t kind = 0;
  uint64_t sequence = 0, bytes = 0;
  static constexpr uint32_t kMagic = 0x31747464;  // "dtt1"
};
static_assert(sizeof(Header) == 24);

constexpr size_t kStep = 1 << 20;  // memory grows with what has arrived, not with what was announced

std::string reason(int error) { return std::strerror(error); }

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1000));
}

// False once the deadline is past.
bool wait_for(int file, short events, Deadline deadline) {
  for (;;) {
    pollfd one{file, events, 0};
    if (::poll(&one, 1, milliseconds_until(deadline)) > 0) return true;
    if (Clock::now() >= deadline) return false;
  }
}

void set(int file, int level, int option, int value) {
  static_cast<void>(setsockopt(file, level, option, &value, sizeof value));  // the defaults would do
}

// A peer whose machine has gone is noticed within half a minute.
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

int open_for(const addrinfo& address) {
  return socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol);
}

}  // namespace

Deadline in(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

Socket::~Socket() {
  if (file_ >= 0) close(file_);
}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(begun_, other.begun_);
  return *this;
}

bool Socket::send(const Message& message, Deadline deadline, std::string& why) {
  const Header header{
      .kind = static_cast<uint32_t>(message.kind), .sequence = message.sequence, .bytes = message.text.size()};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += message.text;
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t sent = ::send(file_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (sent >= 0) {
      done += static_cast<size_t>(sent);
    } else if (errno != EAGAIN && errno != EINTR) {
      why = reason(errno);
      return false;
    } else if (!wait_for(file_, POLLOUT, deadline)) {
      why = "it takes nothing";
      return false;
    }
  }
  return true;
}

Socket::Arrived Socket::receive(Message& message, size_t most, std::string& why) {
  for (;;) {
    Header header;
    size_t wanted = sizeof header;
    if (begun_.size() >= sizeof header) {
      std::memcpy(&header, begun_.data(), sizeof header);
      if (header.magic != Header::kMagic || header.bytes > most) {
        why = "it does not speak as a rank does";
        return Arrived::gone;
      }
      wanted += header.bytes;
      if (begun_.size() == wanted) {
        message = {static_cast<Kind>(header.kind), header.sequence, begun_.substr(sizeof header)};
        begun_.clear();
        return Arrived::yes;
      }
    }
    const size_t before = begun_.size();
    begun_.resize(std::min(wanted, before + kStep));
    const ssize_t taken = ::recv(file_, begun_.data() + before, begun_.size() - before, 0);
    const int error = errno;
    begun_.resize(before + static_cast<size_t>(std::max<ssize_t>(taken, 0)));
    if (taken > 0) continue;
    if (taken < 0 && (error == EAGAIN || error == EINTR)) return Arrived::no;
    why = taken == 0 ? "its connection ended" : reason(error);
    return Arrived::gone;
  }
}

bool Socket::receive(Message& message, size_t most, Deadline deadline, std::string& why) {
  for (;;) {
    const Arrived arrived = receive(message, most, why);
    if (arrived != Arrived::no) return arrived == Arrived::yes;
    if (!wait_for(file_, POLLIN, deadline)) {
      why = "it says nothing";
      return false;
    }
  }
}

bool Socket::is_gone() const {
  pollfd one{file_, POLLRDHUP, 0};
  return ::poll(&one, 1, 0) > 0;
}

Socket listen_on(const std::string& address, int port) {
  std::string why;
  const Addresses found = addresses_of(address, port, AI_PASSIVE, why);
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    Socket socket(open_for(*one));
    if (!socket) continue;
    set(socket.file(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (bind(socket.file(), one->ai_addr, one->ai_addrlen) == 0 && listen(socket.file(), SOMAXCONN) == 0) return socket;
    why = reason(errno);
  }
  throw Error(Fault::communication, concat("rank 0 cannot listen on ", address.empty() ? "port" : address + " port",
                                           " ", port, ": ", why, "; choose another with DTRAIN_MASTER_PORT"));
}

Socket accept_from(const Socket& listener) {
  const int file = accept4(listener.file(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  return file < 0 ? Socket() : prepared(file);
}

Socket connect_to(const std::string& address, int port, Deadline deadline, std::string& why) {
  const Addresses found = addresses_of(address, port, 0, why);
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    Socket socket = prepared(open_for(*one));
    if (!socket) continue;
    int error = connect(socket.file(), one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      socklen_t size = sizeof error;
      if (!wait_for(socket.file(), POLLOUT, deadline))
        error = ETIMEDOUT;
      else if (getsockopt(socket.file(), SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    }
    if (error == 0) return socket;
    why = concat(address, " port ", port, ": ", reason(error));
  }
  return Socket();
}

std::vector<bool> wait_for_any(const std::vector<const Socket*>& sockets, Deadline deadline) {
  std::vector<pollfd> files;
  for (const Socket* socket : sockets) files.push_back({socket->file(), POLLIN, 0});
  static_cast<void>(::poll(files.data(), files.size(), milliseconds_until(deadline)));
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

}  // namespace dtrain::tcp
