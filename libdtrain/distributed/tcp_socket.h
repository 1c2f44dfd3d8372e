// Socket: group messages over a TCP connection. Every call has a deadline; received data is untrusted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libdtrain/distributed/awake.h"
#include "libdtrain/distributed/tcp_seal.h"

namespace dtrain::tcp {

// Timeout that restarts if the process was suspended.
struct Deadline {
  SteadyTime begun;
  double seconds = 0;
  double left() const { return seconds - waited_since(begun); }
  bool is_past() const { return left() <= 0; }
};
Deadline in(double seconds);

// Message kinds. Both directions: proof (authentication, first) and failure (last). To rank 0: hello, and give
// (contribution to a collective). From rank 0: welcome, once all ranks are there; refuse; result; late, while it waits
// for others.
enum class Kind : uint64_t { proof = 1, hello, welcome, refuse, give, result, late, failure };
struct Message {
  Kind kind{};
  uint64_t sequence = 0;
  std::string text;
};

// Connection, closed on destruction. Each side sends a nonce first; later messages are sealed.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int file) : file_(file) {}
  ~Socket();
  Socket(Socket&& other) noexcept { swap(other); }
  Socket& operator=(Socket&& other) noexcept;

  int file() const { return file_; }
  explicit operator bool() const { return file_ >= 0; }

  // Call first, with the job's key. False if the peer is gone.
  bool greet(const Bytes32& job, bool is_rank_zero, std::string& why);
  // Waits for the peer's greeting. Only the side that speaks first needs it; otherwise receive() reads it.
  bool await_greeting(Deadline deadline, std::string& why);
  // False, with the reason in `why`, if the peer is gone or the deadline is past.
  bool send(const Message& message, Deadline deadline, std::string& why);
  // Reads available data: yes if it completes a message of at most `most` bytes; gone if the connection is closed.
  enum class Arrived { no, yes, gone };
  Arrived receive(Message& message, size_t most, std::string& why);
  // As take, but waits for a message.
  bool receive(Message& message, size_t most, Deadline deadline, std::string& why);
  // Seals of both directions, to continue with another reader and writer.
  Seals take_seals() const { return {sends_.value(), receives_.value()}; }
  // Whether the peer sent a message that this job's key did not authenticate.
  bool has_failed_proof() const { return failed_proof_; }
  // Whether the peer closed or reset the connection, regardless of unread data.
  bool is_gone() const;

 private:
  struct Opening {  // until the peer's greeting
    Bytes32 job{}, nonce{};
    bool is_rank_zero = false;
  };
  void swap(Socket& other) noexcept;
  bool send_bytes(const std::string& bytes, Deadline deadline, std::string& why);
  Arrived take(size_t wanted, std::string& why);
  Arrived take_greeting(std::string& why);

  int file_ = -1;
  bool failed_proof_ = false;
  std::string begun_;  // received part of the current message
  Opening opening_{};
  std::optional<Seal> sends_, receives_;
};

// Throws Error(Fault::communication), naming `who`, if listening fails. Empty address: all interfaces; port 0: any free
// port.
Socket listen_on(const std::string& address, int port, const std::string& who);
// Local port, and local address in numeric form.
int port_of(const Socket& socket);
std::string address_of(const Socket& socket);
// Whether both ends are loopback addresses.
bool is_on_this_machine(const Socket& socket);
// Numeric address of a loopback name: `localhost` is 127.0.0.1. Other addresses are unchanged.
std::string number_of(const std::string& address);
// Whether the address is `localhost` or a loopback address such as 127.0.0.1.
bool is_loopback(const std::string& address);
// Next pending connection and the caller's numeric address; none if there is none, or if accept fails with `error` (0:
// none pending).
Socket accept_from(const Socket& listener, std::string& caller, int& error);
// One attempt; none on failure.
Socket connect_to(const std::string& address, int port, Deadline deadline, std::string& why);

// Polls the sockets for up to `seconds`; returns which are readable.
std::vector<bool> wait_for_any(const std::vector<const Socket*>& sockets, double seconds);

// Serialises texts, and parses them again; false if `bytes` is malformed.
std::string join(const std::vector<std::string>& texts);
bool split(const std::string& bytes, std::vector<std::string>& texts);

// Sanitises a peer's text for messages: one line, no control characters, at most `most` bytes.
std::string printable(const std::string& text, size_t most = 2000);

}  // namespace dtrain::tcp
