// MessageStream: zero-copy messages of several channels over one connection; never blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "libdtrain/distributed/tcp_mesh.h"

namespace dtrain::tcp {

// Completion of a message; `count`: its bytes, once done.
struct Delivery {
  bool done = false;
  size_t count = 0;
};

class MessageStream {
 public:
  // `most_kept`: limit of buffered bytes of messages that arrived before they were requested; without any request, a
  // quarter of it, so that a peer that runs ahead blocks (flow control).
  explicit MessageStream(PeerConnection link, size_t most_kept = size_t{1} << 30)
      : link_(std::move(link)), most_kept_(most_kept) {}

  // Bytes and `delivery` must stay valid until done.
  void send(int channel, const std::byte* bytes, size_t count, Delivery& delivery);
  // Receives the channel's next message, of at most `most` bytes. Throws Error(Fault::communication) for a longer one.
  void receive(int channel, std::byte* bytes, size_t most, Delivery& delivery);
  // Returns the channel's next message if it is complete and no receive waits for it.
  bool take(int channel, std::string& text);

  // Sends and receives as much as possible without blocking. Throws Error(Fault::communication) for malformed data.
  void send_some();
  void take_some();
  bool sends() const { return !outgoing_.empty(); }
  int file() const { return link_.socket.file(); }
  // Why the connection ended; empty while it is open.
  const std::string& end() const { return end_; }

 private:
  static constexpr size_t kPlain = 16, kSealed = 48;  // bytes of a message header
  struct Outgoing {
    std::array<std::byte, kSealed> header{};
    const std::byte* bytes = nullptr;
    size_t count = 0, sent = 0;  // `sent`: including the header
    Delivery* delivery = nullptr;
  };
  struct Waiting {
    std::byte* bytes = nullptr;
    size_t most = 0;
    Delivery* delivery = nullptr;
  };
  // Message in receipt.
  struct Incoming {
    std::array<std::byte, kSealed> header{};
    size_t came = 0;  // bytes of the header
    int channel = 0;
    size_t count = 0, taken = 0;
    std::optional<Waiting> wanted{};  // none: buffered in `text`
    std::string text{};
  };
  struct Channel {
    std::deque<Waiting> waiting;
    std::deque<std::string> kept;  // arrived before being requested
  };

  size_t header_size() const { return link_.seals ? kSealed : kPlain; }
  size_t take_bytes(std::byte* bytes, size_t count);
  bool take_header();
  std::string take_kept(Channel& channel);
  Waiting take_waiting(Channel& channel);
  bool take_body();
  void finish_incoming();

  PeerConnection link_;
  std::deque<Outgoing> outgoing_;
  Incoming incoming_;
  std::map<int, Channel> channels_;
  size_t most_kept_, kept_ = 0, waiting_ = 0;  // bytes; pending receives
  std::string end_;
};

}  // namespace dtrain::tcp
