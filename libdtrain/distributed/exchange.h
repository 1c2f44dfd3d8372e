// Exchange: progress engine of one collective's message schedule; never blocks.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "dtrain/core/types.h"
#include "libdtrain/distributed/ring.h"
#include "libdtrain/distributed/transport.h"

namespace dtrain::host {

// Elements of a collective: f32 to be summed, or bytes to be copied.
struct Elements {
  std::byte* memory = nullptr;
  size_t size = 1;         // element size in bytes; 4 for f32
  DType wire = DType::u8;  // u8: raw bytes; else the wire type of f32
  size_t wire_size() const { return wire == DType::u8 ? size : size_of(wire); }
};

// Message buffers, reused by the collectives of a lane.
struct ExchangeBuffers {
  std::vector<std::byte> sent, received;
};

class Exchange {
 public:
  // All ranks run plans of one schedule on equal elements, on a channel used by nothing else. A 16-bit wire rounds sent
  // elements in place, so that the sending rank keeps the values that peers receive.
  Exchange(Transport& transport, int channel, MessagePlan plan, const Elements& elements, ExchangeBuffers& buffers);
  // Posts, tests and applies messages as possible. Returns whether a message was sent or received.
  bool advance();
  bool done() const { return left_ == plan_.sends.size() && applied_ == plan_.receives.size(); }
  // Rank that it waits for, as sender or receiver; -1 once done.
  int waits_for() const;

 private:
  // Messages in flight per direction: keeps the link busy while received data is added.
  static constexpr size_t kWindow = 4;

  bool converts() const { return elements_.wire == DType::bf16 || elements_.wire == DType::f16; }
  size_t size_on_wire(const PlannedMessage& message) const {
    return static_cast<size_t>(message.range.count()) * elements_.wire_size();
  }
  std::byte* place(const PlannedMessage& message) const {
    return elements_.memory + message.range.begin * elements_.size;
  }
  void post_sends();
  void post_receives();
  void apply(size_t index);
  std::byte* slot(std::vector<std::byte>& buffer, size_t index) const;

  Transport& transport_;
  int channel_;
  MessagePlan plan_;
  Elements elements_;
  ExchangeBuffers& buffers_;
  size_t slot_bytes_ = 0;
  size_t send_posted_ = 0, left_ = 0, receive_posted_ = 0, applied_ = 0;
  bool arrived_ = false;  // receive applied_ has arrived, but sends from its destination have not completed
  std::array<Transport::Request, kWindow> sends_{}, receives_{};
};

}  // namespace dtrain::host
