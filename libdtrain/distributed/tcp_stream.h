// MessageStream: messages of several channels over one connection, which are sent from where they lie and received to
// where they are wanted. It never waits.
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

// A message under way; `count`: its bytes, once it is done.
struct Delivery {
  bool done = false;
  size_t count = 0;
};

class MessageStream {
 public:
  // `most_kept`: bytes of messages that come before this rank asks for them; while it asks for none, a quarter of that
  // is read, so that a peer that is ahead waits.
  explicit MessageStream(Link link, size_t most_kept = size_t{1} << 30)
      : link_(std::move(link)), most_kept_(most_kept) {}

  // The bytes and `delivery` stay where they are until that is done.
  void send(int channel, const std::byte* bytes, size_t count, Delivery& delivery);
  // The next message of the channel, of at most `most` bytes. Throws Error(Fault::communication) for a longer one.
  void receive(int channel, std::byte* bytes, size_t most, Delivery& delivery);
  // The next message of the channel, if it has come as a whole and nobody waits for it.
  bool take(int channel, std::string& text);

  // Sends and takes what the connection allows at once. Throws Error(Fault::communication) where what comes is no
  // message of a rank.
  void send_some();
  void take_some();
  bool sends() const { return !outgoing_.empty(); }
  int file() const { return link_.socket.file(); }
  // Why nothing moves any more; empty while it does.
  const std::string& end() const { return end_; }

 private:
  static constexpr size_t kPlain = 16, kSealed = 48;  // bytes in front of a message
  struct Outgoing {
    std::array<std::byte, kSealed> header{};
    const std::byte* bytes = nullptr;
    size_t count = 0, sent = 0;  // `sent`: with the header
    Delivery* delivery = nullptr;
  };
  struct Waiting {
    std::byte* bytes = nullptr;
    size_t most = 0;
    Delivery* delivery = nullptr;
  };
  // A message that arrives.
  struct Incoming {
    std::array<std::byte, kSealed> header{};
    size_t came = 0;  // of the header
    int channel = 0;
    size_t count = 0, taken = 0;
    std::optional<Waiting> wanted{};  // none: it is kept in `text`
    std::string text{};
  };
  struct Channel {
    std::deque<Waiting> waiting;
    std::deque<std::string> kept;  // came before anybody asked
  };

  size_t header_size() const { return link_.seals ? kSealed : kPlain; }
  size_t take_bytes(std::byte* bytes, size_t count);
  bool take_header();
  std::string take_kept(Channel& channel);
  Waiting take_waiting(Channel& channel);
  bool take_body();
  void finish_incoming();

  Link link_;
  std::deque<Outgoing> outgoing_;
  Incoming incoming_;
  std::map<int, Channel> channels_;
  size_t most_kept_, kept_ = 0, waiting_ = 0;  // bytes; receives
  std::string end_;
};

}  // namespace dtrain::tcp
