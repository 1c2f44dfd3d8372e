// Socket: messages of a group over one TCP connection, each call with a deadline, none of which trusts what arrives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libdtrain/distributed/awake.h"
#include "libdtrain/distributed/tcp_seal.h"

namespace dtrain::tcp {

// Some seconds from a moment on, which begin anew where this process has slept.
struct Deadline {
  SteadyTime begun;
  double seconds = 0;
  double left() const { return seconds - waited_since(begun); }
  bool is_past() const { return left() <= 0; }
};
Deadline in(double seconds);

// Kinds of messages. Either way: proof, the first one, which knows the job's secret, and failure, the last words. To
// rank 0: hello, and give, a share in a collective. From rank 0: welcome, once all have come; refuse; result; late, as
// rank 0 still waits for others.
enum class Kind : uint64_t { proof = 1, hello, welcome, refuse, give, result, late, failure };
struct Message {
  Kind kind{};
  uint64_t sequence = 0;
  std::string text;
};

// A connection, closed at the end. Each side greets with a nonce; all messages after that are sealed.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int file) : file_(file) {}
  ~Socket();
  Socket(Socket&& other) noexcept { swap(other); }
  Socket& operator=(Socket&& other) noexcept;

  int file() const { return file_; }
  explicit operator bool() const { return file_ >= 0; }

  // To be called first, with the job's key. False where the peer has gone.
  bool greet(const Bytes32& job, bool is_rank_zero, std::string& why);
  // Waits for the peer's greeting. Whoever speaks first does; else receive() takes it.
  bool await_greeting(Deadline deadline, std::string& why);
  // False where the peer has gone or the deadline is past; `why` says so.
  bool send(const Message& message, Deadline deadline, std::string& why);
  // Takes what has arrived: yes once that completes a message of at most `most` bytes; gone where no more will come.
  enum class Arrived { no, yes, gone };
  Arrived receive(Message& message, size_t most, std::string& why);
  // Waits for a message as well.
  bool receive(Message& message, size_t most, Deadline deadline, std::string& why);
  // What seals the two directions from here on, for whoever sends and receives in another way.
  Seals take_seals() const { return {sends_.value(), receives_.value()}; }
  // True once the peer has sent a message that was not sealed with this job's key.
  bool has_failed_proof() const { return failed_proof_; }
  // True where the peer has ended or reset the connection, whatever it sent before.
  bool is_gone() const;

 private:
  struct Opening {  // until the peer has greeted
    Bytes32 job{}, nonce{};
    bool is_rank_zero = false;
  };
  void swap(Socket& other) noexcept;
  bool send_bytes(const std::string& bytes, Deadline deadline, std::string& why);
  Arrived take(size_t wanted, std::string& why);
  Arrived take_greeting(std::string& why);

  int file_ = -1;
  bool failed_proof_ = false;
  std::string begun_;  // what has come of the message that is arriving
  Opening opening_{};
  std::optional<Seal> sends_, receives_;
};

// Throws Error(Fault::communication), which names `who`, where the address cannot be listened on. An empty address: all
// of this machine's; port 0: any that is free.
Socket listen_on(const std::string& address, int port, const std::string& who);
// The port of this end, and its address as a number.
int port_of(const Socket& socket);
std::string address_of(const Socket& socket);
// True where both ends have addresses of this machine alone.
bool is_on_this_machine(const Socket& socket);
// A name of this machine alone may have several numbers: `localhost` is 127.0.0.1. All else stays.
std::string number_of(const std::string& address);
// True for `localhost` and for the numbers of this machine alone, such as 127.0.0.1.
bool is_loopback(const std::string& address);
// The next connection that waits, and the number of who calls; none where there is none, or where `error` says why it
// cannot be taken (0: there is none).
Socket accept_from(const Socket& listener, std::string& caller, int& error);
// One attempt; none where it fails.
Socket connect_to(const std::string& address, int port, Deadline deadline, std::string& why);

// Waits until one of the sockets has something to say, up to so many seconds; those that have.
std::vector<bool> wait_for_any(const std::vector<const Socket*>& sockets, double seconds);

// Texts one after the other, and taken apart again; false where `bytes` is no such thing.
std::string join(const std::vector<std::string>& texts);
bool split(const std::string& bytes, std::vector<std::string>& texts);

// A peer's text as part of a message for people: on one line, without control characters, at most `most` bytes.
std::string printable(const std::string& text, size_t most = 2000);

}  // namespace dtrain::tcp
