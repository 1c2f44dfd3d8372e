// Framing, seals and partial messages.
#include "libdtrain/distributed/tcp_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sys/socket.h>
#include <sys/uio.h>

#include "dtrain/core/error.h"

namespace dtrain::tcp {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 32;  // above any message of a schedule
constexpr size_t kStep = 1 << 20;                   // memory grows with received, not announced, bytes

constexpr uint64_t kMostChannels = 4096;
constexpr size_t kCostOfOne = 64;  // overhead of a buffered message, bytes

struct Header {
  uint64_t channel = 0, bytes = 0;
};
static_assert(sizeof(Header) == 16);

std::string_view view(const std::byte* bytes, size_t count) { return {reinterpret_cast<const char*>(bytes), count}; }

[[noreturn]] void refuse(const std::string& why) { throw Error(Fault::communication, why); }

}  // namespace

void MessageStream::send(int channel, const std::byte* bytes, size_t count, Delivery& delivery) {
  Outgoing& message = outgoing_.emplace_back();
  const Header header{static_cast<uint64_t>(channel), count};
  std::memcpy(message.header.data(), &header, sizeof header);
  if (link_.seals) {
    const Bytes32 tag = link_.seals->sends.next(view(message.header.data(), kPlain), view(bytes, count));
    std::memcpy(message.header.data() + kPlain, tag.data(), tag.size());
  }
  message.bytes = bytes;
  message.count = count;
  message.delivery = &delivery;
  delivery = {.done = false, .count = count};
  send_some();
}

void MessageStream::send_some() {
  const size_t ahead = header_size();
  while (!outgoing_.empty() && end_.empty()) {
    Outgoing& message = outgoing_.front();
    const size_t of_header = std::min(message.sent, ahead), of_body = message.sent - of_header;
    iovec parts[2] = {{message.header.data() + of_header, ahead - of_header},
                      {const_cast<std::byte*>(message.bytes) + of_body, message.count - of_body}};
    msghdr both{};
    both.msg_iov = parts;
    both.msg_iovlen = 2;
    const ssize_t sent = sendmsg(file(), &both, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (sent < 0) {
      end_ = std::strerror(errno);
      return;
    }
    message.sent += static_cast<size_t>(sent);
    if (message.sent < ahead + message.count) continue;
    message.delivery->done = true;
    outgoing_.pop_front();
  }
}

void MessageStream::receive(int channel, std::byte* bytes, size_t most, Delivery& delivery) {
  delivery = {};
  Channel& one = channels_[channel];
  if (one.kept.empty()) {
    one.waiting.push_back({bytes, most, &delivery});
    ++waiting_;
    return;
  }
  const std::string text = take_kept(one);
  if (text.size() > most) refuse(concat("a message of ", text.size(), " bytes came, at most ", most, " were expected"));
  std::memcpy(bytes, text.data(), text.size());
  delivery = {.done = true, .count = text.size()};
}

bool MessageStream::take(int channel, std::string& text) {
  Channel& one = channels_[channel];
  if (one.kept.empty()) return false;
  text = take_kept(one);
  return true;
}

std::string MessageStream::take_kept(Channel& channel) {
  std::string text = std::move(channel.kept.front());
  channel.kept.pop_front();
  kept_ -= text.size() + kCostOfOne;
  return text;
}

MessageStream::Waiting MessageStream::take_waiting(Channel& channel) {
  const Waiting waiting = channel.waiting.front();
  channel.waiting.pop_front();
  --waiting_;
  return waiting;
}

// Returns after 4 MiB of unrequested data: the caller may request it in between.
void MessageStream::take_some() {
  constexpr size_t kMostAtOnce = 4 << 20;
  const size_t enough = kept_ + kMostAtOnce, ahead = std::min(enough, most_kept_ / 4);
  const auto reads_on = [&] { return kept_ < (waiting_ > 0 || incoming_.wanted ? enough : ahead); };
  while (end_.empty() && reads_on() && take_header() && take_body()) finish_incoming();
}

// Reads up to `count` bytes; returns how many were available.
size_t MessageStream::take_bytes(std::byte* bytes, size_t count) {
  size_t taken = 0;
  while (taken < count) {
    const ssize_t came = recv(file(), bytes + taken, count - taken, MSG_DONTWAIT);
    if (came < 0 && errno == EINTR) continue;
    if (came < 0 && errno == EAGAIN) return taken;
    if (came <= 0) {
      end_ = came == 0 ? "the connection was closed" : std::strerror(errno);
      return taken;
    }
    taken += static_cast<size_t>(came);
  }
  return taken;
}

// True once the header is complete. A waiting receive then gets the bytes directly.
bool MessageStream::take_header() {
  const size_t size = header_size();
  if (incoming_.came == size) return true;
  incoming_.came += take_bytes(incoming_.header.data() + incoming_.came, size - incoming_.came);
  if (incoming_.came < size) return false;
  Header header;
  std::memcpy(&header, incoming_.header.data(), sizeof header);
  if (header.bytes > kMostBytes || header.channel >= kMostChannels) refuse("it does not follow the protocol of ranks");
  incoming_.channel = static_cast<int>(header.channel);
  incoming_.count = header.bytes;
  Channel& channel = channels_[incoming_.channel];
  if (channel.waiting.empty()) {
    if (kept_ + header.bytes + kCostOfOne > most_kept_)
      refuse(concat("it sent more than ", most_kept_, " bytes without a request"));
    return true;
  }
  incoming_.wanted = take_waiting(channel);
  if (header.bytes > incoming_.wanted->most)
    refuse(concat("a message of ", header.bytes, " bytes came, at most ", incoming_.wanted->most, " were expected"));
  return true;
}

bool MessageStream::take_body() {
  Incoming& message = incoming_;
  while (message.taken < message.count) {
    size_t part = message.count - message.taken;
    std::byte* to = nullptr;
    if (message.wanted) {
      to = message.wanted->bytes + message.taken;
    } else {
      part = std::min(part, kStep);
      message.text.resize(message.taken + part);
      to = reinterpret_cast<std::byte*>(message.text.data()) + message.taken;
    }
    const size_t came = take_bytes(to, part);
    message.taken += came;
    if (came < part) return false;
  }
  return true;
}

void MessageStream::finish_incoming() {
  Incoming& message = incoming_;
  if (link_.seals) {
    const std::string_view body = message.wanted ? view(message.wanted->bytes, message.count) : message.text;
    Bytes32 tag;
    std::memcpy(tag.data(), message.header.data() + kPlain, tag.size());
    if (!same(tag, link_.seals->receives.next(view(message.header.data(), kPlain), body)))
      refuse("it failed to authenticate with this job's secret");
  }
  Channel& channel = channels_[message.channel];
  if (message.wanted) {
    *message.wanted->delivery = {.done = true, .count = message.count};
  } else if (channel.waiting.empty()) {
    kept_ += message.count + kCostOfOne;
    channel.kept.push_back(std::move(message.text));
  } else {  // requested while it was arriving
    const Waiting waiting = take_waiting(channel);
    if (message.count > waiting.most)
      refuse(concat("a message of ", message.count, " bytes came, at most ", waiting.most, " were expected"));
    std::memcpy(waiting.bytes, message.text.data(), message.count);
    *waiting.delivery = {.done = true, .count = message.count};
  }
  message = {};
}

}  // namespace dtrain::tcp
