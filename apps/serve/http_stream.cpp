#include "apps/serve/http_stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace dtrain::serve {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLook{100};  // polling interval of idle connections for a server stop
constexpr milliseconds kSending{2000};
constexpr milliseconds kLinger{1000};  // how long to read on after the response

bool wait_on(socket_t socket, short events, milliseconds time) {
  pollfd one{socket, events, 0};
  return poll(&one, 1, static_cast<int>(std::max(milliseconds{0}, time).count())) > 0;
}

}  // namespace

bool BoundedStream::wait_for_request(milliseconds idle, const std::atomic<bool>& stopping) {
  const auto end = Clock::now() + idle;
  while (begin_ == end_) {
    if (wait_on(socket_, POLLIN, kLook)) return true;
    if (stopping || Clock::now() > end) return false;
  }
  return true;
}

void BoundedStream::begin(size_t bytes, Clock::time_point deadline) {
  bytes_left_ = bytes;
  deadline_ = deadline;
}

void BoundedStream::linger() {
  shutdown(socket_, SHUT_WR);
  deadline_ = Clock::now() + kLinger;
  do begin_ = end_ = 0;
  while (fill() > 0);
}

bool BoundedStream::ready(short events, milliseconds more) const {
  while (true) {
    const auto left = std::min(deadline_, last_.load()) - Clock::now() + more;
    if (left.count() <= 0) return false;
    if (wait_on(socket_, events, std::min(kLook, std::chrono::ceil<milliseconds>(left)))) return true;
  }
}

bool BoundedStream::is_readable() const { return begin_ < end_ || ready(POLLIN); }
bool BoundedStream::is_writable() const { return ready(POLLOUT, kSending); }

ssize_t BoundedStream::fill() {
  if (!ready(POLLIN)) return -1;
  const ssize_t count = recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  begin_ = 0;
  end_ = count > 0 ? static_cast<size_t>(count) : 0;
  return count;
}

ssize_t BoundedStream::read(char* to, size_t size) {
  if (bytes_left_ == 0) return -1;
  if (begin_ == end_) {
    const ssize_t count = fill();
    if (count <= 0) return count;
  }
  size = std::min({size, end_ - begin_, bytes_left_});
  std::memcpy(to, buffer_.data() + begin_, size);
  begin_ += size;
  bytes_left_ -= size;
  return static_cast<ssize_t>(size);
}

ssize_t BoundedStream::write(const char* from, size_t size) {
  if (!ready(POLLOUT, kSending)) return -1;
  const ssize_t count = send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  return count < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : count;
}

// Client addresses are not used; a proxy would hide them anyway.
void BoundedStream::get_remote_ip_and_port(std::string&, int&) const {}
void BoundedStream::get_local_ip_and_port(std::string&, int&) const {}

}  // namespace dtrain::serve
