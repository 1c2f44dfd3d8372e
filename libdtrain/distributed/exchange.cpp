// Posting, completion and accumulation of a collective's messages.
#include "libdtrain/distributed/exchange.h"

#include <algorithm>
#include <cstring>

#include "dtrain/core/error.h"
#include "libdtrain/distributed/wire.h"

namespace dtrain::host {

Exchange::Exchange(Transport& transport, int channel, MessagePlan plan, const Elements& elements,
                   ExchangeBuffers& buffers)
    : transport_(transport), channel_(channel), plan_(std::move(plan)), elements_(elements), buffers_(buffers) {
  int64_t longest = 0;
  for (const PlannedMessage& message : plan_.sends) longest = std::max(longest, message.range.count());
  for (const PlannedMessage& message : plan_.receives) longest = std::max(longest, message.range.count());
  slot_bytes_ = static_cast<size_t>(longest) * elements_.wire_size();
  if (buffers.received.size() < kWindow * slot_bytes_) buffers.received.resize(kWindow * slot_bytes_);
  if (converts() && buffers.sent.size() < kWindow * slot_bytes_) buffers.sent.resize(kWindow * slot_bytes_);
}

std::byte* Exchange::slot(std::vector<std::byte>& buffer, size_t index) const {
  return buffer.data() + index % kWindow * slot_bytes_;
}

int Exchange::waits_for() const {
  if (applied_ < plan_.receives.size()) return plan_.receives[applied_].peer;
  return left_ < plan_.sends.size() ? plan_.sends[left_].peer : -1;
}

bool Exchange::advance() {
  post_sends();
  post_receives();
  const size_t before = left_ + applied_;
  size_t bytes = 0;
  while (left_ < send_posted_ && transport_.done(sends_[left_ % kWindow], bytes)) ++left_;
  while (applied_ < receive_posted_) {
    if (!arrived_) {
      if (!transport_.done(receives_[applied_ % kWindow], bytes)) break;
      const PlannedMessage& message = plan_.receives[applied_];
      const size_t expected = size_on_wire(message);
      if (bytes != expected)
        throw Error(Fault::communication, concat("a message of ", bytes, " bytes came from rank ", message.peer, ", ",
                                                 expected, " were expected"));
      arrived_ = true;
    }
    if (plan_.receives[applied_].after > left_) break;
    apply(applied_);
    arrived_ = false;
    ++applied_;
  }
  return left_ + applied_ != before;
}

void Exchange::post_sends() {
  while (send_posted_ < plan_.sends.size() && send_posted_ - left_ < kWindow &&
         plan_.sends[send_posted_].after <= applied_) {
    const PlannedMessage& message = plan_.sends[send_posted_];
    std::byte* bytes = place(message);
    if (converts()) {
      std::byte* rounded = slot(buffers_.sent, send_posted_);
      round_to_wire(elements_.wire, reinterpret_cast<float*>(bytes), rounded, message.range.count());
      bytes = rounded;
    }
    sends_[send_posted_ % kWindow] = transport_.send(channel_, message.peer, bytes, size_on_wire(message));
    ++send_posted_;
  }
}

void Exchange::post_receives() {
  while (receive_posted_ < plan_.receives.size() && receive_posted_ - applied_ < kWindow) {
    const PlannedMessage& message = plan_.receives[receive_posted_];
    const bool in_place = !message.add && !converts();
    // Zero-copy receives must not overwrite data that has not been sent yet.
    if (in_place && message.after > left_) break;
    std::byte* bytes = in_place ? place(message) : slot(buffers_.received, receive_posted_);
    receives_[receive_posted_ % kWindow] = transport_.receive(channel_, message.peer, bytes, size_on_wire(message));
    ++receive_posted_;
  }
}

void Exchange::apply(size_t index) {
  const PlannedMessage& message = plan_.receives[index];
  if (!message.add && !converts()) return;
  auto* values = reinterpret_cast<float*>(place(message));
  const std::byte* came = slot(buffers_.received, index);
  const int64_t count = message.range.count();
  if (message.add)
    add_from_wire(elements_.wire, came, values, count);
  else
    copy_from_wire(elements_.wire, came, values, count);
}

}  // namespace dtrain::host
