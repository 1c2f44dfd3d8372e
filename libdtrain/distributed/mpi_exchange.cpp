// Posting, testing and adding of a collective's messages.
#include "libdtrain/distributed/mpi_exchange.h"

#include <algorithm>
#include <cstring>

#include "libdtrain/core/error.h"
#include "libdtrain/distributed/wire.h"

namespace dtrain::mpi {
namespace {

constexpr int kDataTag = 0;

}  // namespace

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(Fault::communication, concat(call, ": ", std::string(text, static_cast<size_t>(length))));
}

Exchange::Exchange(MPI_Comm comm, MessagePlan plan, const Elements& elements, ExchangeBuffers& buffers)
    : comm_(comm), plan_(std::move(plan)), elements_(elements), buffers_(buffers) {
  int64_t longest = 0;
  for (const Message& message : plan_.sends) longest = std::max(longest, message.range.count());
  for (const Message& message : plan_.receives) longest = std::max(longest, message.range.count());
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
  while (left_ < send_posted_) {
    int done = 0;
    check(MPI_Test(&sends_[left_ % kWindow], &done, MPI_STATUS_IGNORE), "MPI_Test of a send");
    if (!done) break;
    ++left_;
  }
  while (applied_ < receive_posted_) {
    if (!arrived_) {
      int done = 0;
      MPI_Status status;
      check(MPI_Test(&receives_[applied_ % kWindow], &done, &status), "MPI_Test of a receive");
      if (!done) break;
      int bytes = 0;
      check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
      const Message& message = plan_.receives[applied_];
      const auto expected = static_cast<int>(static_cast<size_t>(message.range.count()) * elements_.wire_size());
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
    const Message& message = plan_.sends[send_posted_];
    std::byte* bytes = place(message);
    if (converts()) {
      std::byte* rounded = slot(buffers_.sent, send_posted_);
      round_to_wire(elements_.wire, reinterpret_cast<float*>(bytes), rounded, message.range.count());
      bytes = rounded;
    }
    const auto count = static_cast<int>(static_cast<size_t>(message.range.count()) * elements_.wire_size());
    check(MPI_Isend(bytes, count, MPI_BYTE, message.peer, kDataTag, comm_, &sends_[send_posted_ % kWindow]),
          "MPI_Isend");
    ++send_posted_;
  }
}

void Exchange::post_receives() {
  while (receive_posted_ < plan_.receives.size() && receive_posted_ - applied_ < kWindow) {
    const Message& message = plan_.receives[receive_posted_];
    const bool in_place = !message.add && !converts();
    // What comes straight to its place must not change what has still to leave from there.
    if (in_place && message.after > left_) break;
    std::byte* bytes = in_place ? place(message) : slot(buffers_.received, receive_posted_);
    const auto count = static_cast<int>(static_cast<size_t>(message.range.count()) * elements_.wire_size());
    check(MPI_Irecv(bytes, count, MPI_BYTE, message.peer, kDataTag, comm_, &receives_[receive_posted_ % kWindow]),
          "MPI_Irecv");
    ++receive_posted_;
  }
}

void Exchange::apply(size_t index) {
  const Message& message = plan_.receives[index];
  if (!message.add && !converts()) return;
  auto* values = reinterpret_cast<float*>(place(message));
  const std::byte* came = slot(buffers_.received, index);
  const int64_t count = message.range.count();
  if (message.add)
    add_from_wire(elements_.wire, came, values, count);
  else
    copy_from_wire(elements_.wire, came, values, count);
}

}  // namespace dtrain::mpi
