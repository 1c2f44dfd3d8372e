// A connection of a client whom nobody trusts: what it sends is counted, and there is a time by which it has to be
// done.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>

#include <httplib.h>

namespace dtrain::serve {

// cpp-httplib's own stream bounds the pause between two bytes, and not their number or the time of a whole request: a
// client could hold a thread for ever by sending a byte now and then.
class BoundedStream final : public httplib::Stream {
 public:
  using Clock = std::chrono::steady_clock;
  // `last`: the deadline of all connections, which may come at any time.
  BoundedStream(socket_t socket, const std::atomic<Clock::time_point>& last) : socket_(socket), last_(last) {}

  // Waits for the first byte of a request, at most `idle` and as long as `stopping` is false.
  bool wait_for_request(std::chrono::milliseconds idle, const std::atomic<bool>& stopping);
  // From now on at most `bytes` are read, and nothing is read after `deadline`, nor written 2 s after it: a response
  // may have been made in the last moment.
  void begin(size_t bytes, Clock::time_point deadline);
  // The same for what remains, so that a body has a limit of its own.
  void allow(size_t bytes) { bytes_left_ = bytes; }
  // Says that no more will be written, and reads on for a moment, so that a client who still sends sees the response.
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
  size_t begin_ = 0, end_ = 0;  // of what has been received and not read
  size_t bytes_left_ = 0;
  Clock::time_point deadline_{};
};

}  // namespace dtrain::serve
