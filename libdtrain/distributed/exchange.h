// Exchange: works through the messages of one collective, a little whenever it is asked to; it never waits.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "libdtrain/core/types.h"
#include "libdtrain/distributed/ring.h"
#include "libdtrain/distributed/transport.h"

namespace dtrain::host {

// Where the elements of a collective are: f32 that are summed, or bytes that are copied.
struct Elements {
  std::byte* memory = nullptr;
  size_t size = 1;         // bytes of one in memory: 4 where they are f32
  DType wire = DType::u8;  // u8: bytes as they are; else the type of f32 under way
  size_t wire_size() const { return wire == DType::u8 ? size : size_of(wire); }
};

// Memory for messages under way, kept from one collective of a lane to the next.
struct ExchangeBuffers {
  std::vector<std::byte> sent, received;
};

class Exchange {
 public:
  // All ranks run plans of the same schedule on elements of the same kind, on a channel that nothing else uses. A
  // 16-bit wire rounds what is sent in place, so that the rank that keeps it has what the others get.
  Exchange(Transport& transport, int channel, MessagePlan plan, const Elements& elements, ExchangeBuffers& buffers);
  // Posts, tests and applies what can be. True where a message left or arrived.
  bool advance();
  bool done() const { return left_ == plan_.sends.size() && applied_ == plan_.receives.size(); }
  // The rank whose message it waits for, or that does not take one; -1 once done.
  int waits_for() const;

 private:
  // Messages under way of each list: enough that a link is busy while what came is added.
  static constexpr size_t kWindow = 4;

  bool converts() const { return elements_.wire == DType::bf16 || elements_.wire == DType::f16; }
  size_t size_on_wire(const Message& message) const {
    return static_cast<size_t>(message.range.count()) * elements_.wire_size();
  }
  std::byte* place(const Message& message) const { return elements_.memory + message.range.begin * elements_.size; }
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
  bool arrived_ = false;  // receive number applied_ is in, but sends that need its place have not left
  std::array<Transport::Request, kWindow> sends_{}, receives_{};
};

}  // namespace dtrain::host
