// Messages over one connection: a socket pair, with a stream at each end.
#include "libdtrain/distributed/tcp_stream.h"

#include <sys/socket.h>
#include <unistd.h>

#include "tests/testing.h"

namespace dtrain::tcp {
namespace {

struct Pair {
  std::array<int, 2> files{};
  Pair() { DT_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, files.data()) == 0, "no sockets"); }
};

Seals seals_of(bool is_rank_zero) {
  const Bytes32 key = key_of("a secret of this job"), zero{1}, other{2};
  return {Seal(key, is_rank_zero, zero, other), Seal(key, !is_rank_zero, zero, other)};
}

std::string numbered(size_t count) {
  std::string text(count, '\0');
  for (size_t i = 0; i < count; ++i) text[i] = static_cast<char>(i * 31 % 251);
  return text;
}

std::byte* bytes_of(std::string& text) { return reinterpret_cast<std::byte*>(text.data()); }

TEST(MessageStream, KeepsTheMessagesOfAChannelInOrder) {
  for (const bool sealed : {false, true}) {
    const Pair pair;
    MessageStream a(PeerConnection{Socket(pair.files[0]), sealed ? std::optional(seals_of(true)) : std::nullopt});
    MessageStream b(PeerConnection{Socket(pair.files[1]), sealed ? std::optional(seals_of(false)) : std::nullopt});
    // More than a socket buffers; the first of channel 1 arrives before it is requested.
    std::string first = numbered(3), second = numbered(5'000'000), third = numbered(0), fourth = numbered(70);
    std::array<Delivery, 4> sent, received;
    a.send(1, bytes_of(first), first.size(), sent[0]);
    a.send(2, bytes_of(second), second.size(), sent[1]);
    a.send(1, bytes_of(third), third.size(), sent[2]);
    a.send(1, bytes_of(fourth), fourth.size(), sent[3]);
    b.take_some();
    std::array<std::string, 4> texts{std::string(10, '?'), std::string(second.size(), '?'), "?", std::string(100, '?')};
    b.receive(1, bytes_of(texts[0]), 10, received[0]);
    EXPECT_TRUE(received[0].done);
    b.receive(1, bytes_of(texts[2]), 1, received[2]);
    b.receive(2, bytes_of(texts[1]), texts[1].size(), received[1]);
    b.receive(1, bytes_of(texts[3]), 100, received[3]);
    for (int turn = 0; turn < 100000 && !received[3].done; ++turn) {
      a.send_some();
      b.take_some();
    }
    const std::string* expected[] = {&first, &second, &third, &fourth};
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_TRUE(sent[i].done && received[i].done) << i;
      EXPECT_EQ(received[i].count, expected[i]->size()) << i;
      EXPECT_TRUE(texts[i].starts_with(*expected[i])) << i;
    }
    EXPECT_FALSE(a.sends());
  }
}

TEST(MessageStream, GivesWhatNobodyHasAskedFor) {
  const Pair pair;
  MessageStream a(PeerConnection{Socket(pair.files[0])}), b(PeerConnection{Socket(pair.files[1])});
  std::string word = "word", text;
  Delivery sent;
  EXPECT_FALSE(b.take(7, text));
  a.send(7, bytes_of(word), word.size(), sent);
  b.take_some();
  EXPECT_FALSE(b.take(8, text));
  EXPECT_TRUE(b.take(7, text));
  EXPECT_EQ(text, word);
}

TEST(MessageStream, RefusesWhatIsTooLong) {
  const Pair pair;
  MessageStream a(PeerConnection{Socket(pair.files[0])}), b(PeerConnection{Socket(pair.files[1])});
  std::string word = "word";
  Delivery sent, received;
  b.receive(1, bytes_of(word), 3, received);
  a.send(1, bytes_of(word), word.size(), sent);
  expect_error([&] { b.take_some(); }, Fault::communication, "a message of 4 bytes came, at most 3 were expected");
}

TEST(MessageStream, KeepsNoMoreThanItsLimit) {
  const Pair pair;
  MessageStream a(PeerConnection{Socket(pair.files[0])}),
      b(PeerConnection{Socket(pair.files[1])}, /*most_kept=*/10'000);
  std::string block = numbered(4000), none, text, wanted = "?";
  std::array<Delivery, 4> sent;
  Delivery received;
  b.receive(1, bytes_of(wanted), 1, received);  // behind the other messages
  for (int again = 0; again < 3; ++again) {     // read data does not count
    a.send(7, bytes_of(block), block.size(), sent[0]);
    a.send(8, bytes_of(block), block.size(), sent[1]);
    b.take_some();
    EXPECT_TRUE(b.take(7, text));
    EXPECT_TRUE(b.take(8, text));
  }
  for (int i = 0; i < 100; ++i) a.send(9, bytes_of(none), 0, sent[2]);
  b.take_some();
  a.send(9, bytes_of(block), block.size(), sent[3]);
  expect_error([&] { b.take_some(); }, Fault::communication, "more than 10000 bytes without a request");
}

TEST(MessageStream, APeerThatIsAheadWaits) {
  const Pair pair;
  MessageStream a(PeerConnection{Socket(pair.files[0])}),
      b(PeerConnection{Socket(pair.files[1])}, /*most_kept=*/10'000);
  std::string block = numbered(4000), word = "word", behind = "????", text;
  std::array<Delivery, 6> sent;
  for (size_t i = 0; i < 5; ++i) a.send(7, bytes_of(block), block.size(), sent[i]);
  a.send(1, bytes_of(word), word.size(), sent[5]);
  for (int again = 0; again < 9; ++again) b.take_some();
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(b.take(7, text));
    EXPECT_EQ(text, block);
    EXPECT_FALSE(b.take(7, text)) << "a second one is not read before somebody asks";
    if (i < 4) b.take_some();
  }
  Delivery received;
  b.receive(1, bytes_of(behind), behind.size(), received);
  b.take_some();
  EXPECT_TRUE(received.done);
  EXPECT_EQ(behind, word);
}

TEST(MessageStream, RefusesChannelsThatNoRankOpens) {
  for (const int channel : {4096, 1 << 30}) {
    const Pair pair;
    MessageStream a(PeerConnection{Socket(pair.files[0])}), b(PeerConnection{Socket(pair.files[1])});
    std::string word = "word";
    Delivery sent;
    a.send(channel, bytes_of(word), word.size(), sent);
    expect_error([&] { b.take_some(); }, Fault::communication, "it does not follow the protocol of ranks");
  }
}

TEST(MessageStream, RefusesWhatIsNotSealed) {
  const std::string plain = numbered(16 + 32 + 5);  // without our header
  for (const bool changed : {false, true}) {
    const Pair pair;
    MessageStream b(PeerConnection{Socket(pair.files[1]), seals_of(false)});
    std::string word = "word!", between(48 + word.size(), '\0');
    if (!changed) {
      ASSERT_EQ(write(pair.files[0], plain.data(), plain.size()), static_cast<ssize_t>(plain.size()));
      expect_error([&] { b.take_some(); }, Fault::communication, "it does not follow the protocol of ranks");
      close(pair.files[0]);
      continue;
    }
    // Flips one bit of a sealed message in transit.
    const Pair other;
    MessageStream a(PeerConnection{Socket(other.files[0]), seals_of(true)});
    Delivery sent;
    a.send(1, bytes_of(word), word.size(), sent);
    ASSERT_EQ(read(other.files[1], between.data(), between.size()), static_cast<ssize_t>(between.size()));
    between.back() = static_cast<char>(between.back() ^ 1);
    ASSERT_EQ(write(pair.files[0], between.data(), between.size()), static_cast<ssize_t>(between.size()));
    expect_error([&] { b.take_some(); }, Fault::communication, "it failed to authenticate with this job's secret");
    close(pair.files[0]);
    close(other.files[1]);
  }
}

TEST(MessageStream, SaysThatItsPeerHasGone) {
  const Pair pair;
  MessageStream b(PeerConnection{Socket(pair.files[1])});
  close(pair.files[0]);
  b.take_some();
  EXPECT_EQ(b.end(), "the connection was closed");
}

}  // namespace
}  // namespace dtrain::tcp
