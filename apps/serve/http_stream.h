// Connection of an untrusted client, with byte limits and deadlines.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>

#include <httplib.h>

namespace dtrain::serve {

// cpp-httplib's own stream limits only the pause between bytes: a client could hold a thread forever by sending a byte
// now and then (slowloris).
class BoundedStream final : public httplib::Stream {
 public:
  using Clock = std::chrono::steady_clock;
  // `last`: deadline of all connections, which may be set at any time.
  BoundedStream(socket_t socket, const std::atomic<Clock::time_point>& last) : socket_(socket), last_(last) {}

  // Waits for the first byte of a request, at most `idle`, and while `stopping` is false.
  bool wait_for_request(std::chrono::milliseconds idle, const std::atomic<bool>& stopping);
  // Limits reads to `bytes` and `deadline`; writes may continue for 2 s after it, for a response finished at the last
  // moment.
  void begin(size_t bytes, Clock::time_point deadline);
  // Resets the byte limit, for the body.
  void allow(size_t bytes) { bytes_left_ = bytes; }
  // Shuts down writing, and reads on for a moment, so that a client that is still sending receives the response.
  void linger();

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  // False once the deadline has passed.
  bool ready(short events, std::chrono::milliseconds more = {}) const;
  ssize_t fill();

  const socket_t socket_;
  const std::atomic<Clock::time_point>& last_;
  std::array<char, 16384> buffer_{};
  size_t begin_ = 0, end_ = 0;  // received, unread bytes
  size_t bytes_left_ = 0;
  Clock::time_point deadline_{};
};

}  // namespace dtrain::serve
