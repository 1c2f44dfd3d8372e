// Streams to all peers under one poll, and loopback messages of a rank to itself.
#include "libdtrain/distributed/tcp_transport.h"

#include <deque>

#include <poll.h>

#include "dtrain/core/error.h"
#include "libdtrain/distributed/tcp_stream.h"

namespace dtrain::tcp {
namespace {

class TcpTransport : public host::Transport {
 public:
  TcpTransport(int rank, std::vector<Place> places, std::vector<PeerConnection> links)
      : rank_(rank), places_(std::move(places)) {
    for (PeerConnection& link : links) streams_.emplace_back(std::move(link));
  }
  const char* name() const override { return "TCP"; }
  int rank() const override { return rank_; }
  const std::vector<Place>& places() const override { return places_; }
  int open_channel() override { return channels_++; }

  Request send(int channel, int peer, const std::byte* bytes, size_t count) override {
    const Request request = free_slot(peer);
    if (peer == rank_) {
      own_[channel].emplace_back(reinterpret_cast<const char*>(bytes), count);
      deliveries_[request].delivery = {.done = true, .count = count};
    } else {
      stream(peer).send(channel, bytes, count, deliveries_[request].delivery);
    }
    return request;
  }
  Request receive(int channel, int peer, std::byte* bytes, size_t most) override {
    const Request request = free_slot(peer);
    deliveries_[request].own = {channel, bytes, most};
    if (peer != rank_) named(peer, [&] { stream(peer).receive(channel, bytes, most, deliveries_[request].delivery); });
    return request;
  }
  bool done(Request request, size_t& count) override {
    Slot& slot = deliveries_[request];
    if (slot.peer == rank_ && !slot.delivery.done) take_own(slot);
    if (!slot.delivery.done) {
      if (slot.peer != rank_ && !stream(slot.peer).end().empty())
        throw Error(Fault::communication, concat("lost ", name_of(slot.peer), ": ", stream(slot.peer).end()));
      return false;
    }
    count = slot.delivery.count;
    free_.push_back(request);
    return true;
  }
  bool take(int channel, int& peer, std::string& text) override {
    for (peer = 0; peer < static_cast<int>(streams_.size()); ++peer)
      if (peer != rank_ && stream(peer).take(channel, text)) return true;
    return false;
  }

  void progress() override {
    polled_.clear();
    for (const MessageStream& one : streams_)
      polled_.push_back(
          {one.end().empty() ? one.file() : -1, static_cast<short>(one.sends() ? POLLIN | POLLOUT : POLLIN), 0});
    if (::poll(polled_.data(), polled_.size(), 0) <= 0) return;
    for (size_t peer = 0; peer < polled_.size(); ++peer) {
      if (polled_[peer].revents == 0) continue;
      named(static_cast<int>(peer), [&] {
        streams_[peer].take_some();
        streams_[peer].send_some();
      });
    }
  }
  void finish() override { streams_.clear(); }

 private:
  struct Own {  // loopback messages
    int channel = 0;
    std::byte* bytes = nullptr;
    size_t most = 0;
  };
  struct Slot {
    int peer = 0;
    Delivery delivery{};
    Own own{};
  };

  MessageStream& stream(int peer) { return streams_[static_cast<size_t>(peer)]; }
  std::string name_of(int peer) const { return concat("rank ", peer, " on ", places_[static_cast<size_t>(peer)].host); }
  // Adds the peer's name to errors.
  template <class Use>
  void named(int peer, const Use& use) {
    try {
      use();
    } catch (const Error& error) {
      throw Error(error.fault(), concat(name_of(peer), ": ", error.what()));
    }
  }
  void take_own(Slot& slot) {
    std::deque<std::string>& texts = own_[slot.own.channel];
    if (texts.empty()) return;
    if (texts.front().size() > slot.own.most)
      throw Error(Fault::communication, concat("a message of ", texts.front().size(), " bytes came, at most ",
                                               slot.own.most, " were expected"));
    texts.front().copy(reinterpret_cast<char*>(slot.own.bytes), texts.front().size());
    slot.delivery = {.done = true, .count = texts.front().size()};
    texts.pop_front();
  }
  Request free_slot(int peer) {
    if (free_.empty()) {
      free_.push_back(deliveries_.size());
      deliveries_.emplace_back();
    }
    const Request request = free_.back();
    free_.pop_back();
    deliveries_[request] = {.peer = peer};
    return request;
  }

  int rank_;
  std::vector<Place> places_;
  std::vector<MessageStream> streams_;  // by rank; none to itself
  std::map<int, std::deque<std::string>> own_;
  std::deque<Slot> deliveries_;  // referenced by streams
  std::vector<Request> free_;
  std::vector<pollfd> polled_;
  int channels_ = 0;
};

}  // namespace

std::unique_ptr<host::Transport> make_transport(int rank, std::vector<Place> places,
                                                std::vector<PeerConnection> links) {
  return std::make_unique<TcpTransport>(rank, std::move(places), std::move(links));
}

}  // namespace dtrain::tcp
