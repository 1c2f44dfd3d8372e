// Socket: messages of a group over one TCP connection, each call with a deadline, none of which trusts what arrives.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dtrain::tcp {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;
Deadline in(double seconds);

// Kinds of messages. To rank 0: hello, the first one, and give, a share in a collective. From rank 0: welcome, once all
// have come; refuse; result; late, as rank 0 still waits for others. Either way: failure, the last words.
enum class Kind : uint32_t { hello = 1, welcome, refuse, give, result, late, failure };
struct Message {
  Kind kind{};
  uint64_t sequence = 0;
  std::string text;
};

// A file descriptor, closed at the end.
class Socket {
 public:
  explicit Socket(int file = -1) : file_(file) {}
  ~Socket();
  Socket(Socket&& other) noexcept : file_(std::exchange(other.file_, -1)), begun_(std::move(other.begun_)) {}
  Socket& operator=(Socket&& other) noexcept;

  int file() const { return file_; }
  explicit operator bool() const { return file_ >= 0; }

  // False where the peer has gone or the deadline is past; `why` says so.
  bool send(const Message& message, Deadline deadline, std::string& why);
  // Takes what has arrived: yes once that completes a message of at most `most` bytes; gone where no more will come.
  enum class Arrived { no, yes, gone };
  Arrived receive(Message& message, size_t most, std::string& why);
  // Waits for a message as well.
  bool receive(Message& message, size_t most, Deadline deadline, std::string& why);
  // True where the peer has ended or reset the connection, whatever it sent before.
  bool is_gone() const;

 private:
  int file_ = -1;
  std::string begun_;  // what has come of the message that is arriving
};

// Throws Error(Fault::communication) where the address cannot be listened on.
Socket listen_on(const std::string& address, int port);
// The next connection that waits; none where there is none.
Socket accept_from(const Socket& listener);
// One attempt; none where it fails.
Socket connect_to(const std::string& address, int port, Deadline deadline, std::string& why);

// Waits until one of the sockets has something to say, or until the deadline; those that have.
std::vector<bool> wait_for_any(const std::vector<const Socket*>& sockets, Deadline deadline);

// Texts one after the other, and taken apart again; false where `bytes` is no such thing.
std::string join(const std::vector<std::string>& texts);
bool split(const std::string& bytes, std::vector<std::string>& texts);

}  // namespace dtrain::tcp
