// A connection of a client whom nobody trusts: what it sends is counted, and there is a time by which it has to be
// done.
#pragma once

#include <array>
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
  explicit BoundedStream(socket_t socket) : socket_(socket) {}

  // Waits for the first byte of a request, at most `idle` and as long as `stopping` is false.
  bool wait_for_request(std::chrono::milliseconds idle, const std::atomic<bool>& stopping);
  // From now on at most `bytes` are read, and nothing is read or written after `deadline`.
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
  bool ready(short events) const;
  ssize_t fill();

  const socket_t socket_;
  std::array<char, 16384> buffer_{};
  size_t begin_ = 0, end_ = 0;  // of what has been received and not read
  size_t bytes_left_ = 0;
  Clock::time_point deadline_{};
};

}  // namespace dtrain::serve
