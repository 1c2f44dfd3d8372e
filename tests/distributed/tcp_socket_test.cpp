// Which messages a connection accepts and rejects.
#include "libdtrain/distributed/tcp_socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <sstream>
#include <thread>

#include "tests/distributed/ranks.h"

namespace dtrain {
namespace {

using std::string_literals::operator""s;

// A timeout that expires only if the test hangs.
tcp::Deadline soon() { return tcp::in(60); }

// Both ends of a connection after the greetings, with keys of these secrets; `zero` is the listener.
struct Ends {
  tcp::Socket zero, other;
};
Ends greet(const std::string& secret_of_zero, const std::string& secret_of_other) {
  const int port = free_port();
  const tcp::Socket listener = tcp::listen_on("127.0.0.1", port, "a test");
  std::string why, caller;
  int error = 0;
  Ends ends{.zero = {}, .other = tcp::connect_to("127.0.0.1", port, soon(), why)};
  ends.zero = tcp::accept_from(listener, caller, error);
  DT_CHECK(ends.zero && ends.other, why);
  DT_CHECK(ends.zero.greet(tcp::key_of(secret_of_zero), true, why), why);
  DT_CHECK(ends.other.greet(tcp::key_of(secret_of_other), false, why), why);
  DT_CHECK(ends.zero.await_greeting(soon(), why) && ends.other.await_greeting(soon(), why), why);
  return ends;
}

TEST(TcpSocket, TakesWhatOneWithTheSecretSays) {
  Ends ends = greet("a secret", "a secret");
  std::string why;
  for (const std::string& text : {""s, "one"s, std::string(3 << 20, 'x')}) {
    std::thread sender([&] { EXPECT_TRUE(ends.zero.send({tcp::Kind::result, 7, text}, soon(), why)); });
    tcp::Message message;
    EXPECT_TRUE(ends.other.receive(message, 4 << 20, soon(), why)) << why;
    sender.join();
    EXPECT_TRUE(message.kind == tcp::Kind::result && message.sequence == 7 && message.text == text);
  }
}

// The system assigns ephemeral ports in sequence, and eventually the destination port itself.
TEST(TcpSocket, ACallerIsNotItsOwnListener) {
  int first = 0, last = 0;
  std::istringstream(read_file("/proc/sys/net/ipv4/ip_local_port_range")) >> first >> last;
  ASSERT_GT(last, first + 2000);
  const int port = first + 1000;  // among the first assigned to callers: listeners get odd distances from `first`
  for (int attempt = first; attempt <= last; ++attempt) {
    std::string why;
    ASSERT_FALSE(tcp::connect_to("127.0.0.1", port, soon(), why)) << "attempt " << attempt - first;
    ASSERT_NE(why.find("Connection refused"), std::string::npos) << why;
  }
}

constexpr char kNoProof[] = "it failed to authenticate with this job's secret";

TEST(TcpSocket, RefusesWhatOneWithoutTheSecretSays) {
  for (const std::string secret : {"", "another secret"}) {
    Ends ends = greet("a secret", secret);
    std::string why;
    tcp::Message message;
    EXPECT_TRUE(ends.other.send({tcp::Kind::proof, 0, {}}, soon(), why));
    EXPECT_FALSE(ends.zero.receive(message, 100, soon(), why));
    EXPECT_EQ(why, kNoProof);
    EXPECT_TRUE(ends.zero.send({tcp::Kind::proof, 0, {}}, soon(), why));
    EXPECT_FALSE(ends.other.receive(message, 100, soon(), why));
    EXPECT_EQ(why, kNoProof);
  }
}

// Copies `bytes` in transit into `to`, as if its peer had sent them.
void carry(const tcp::Socket& from, const tcp::Socket& to, size_t bytes, int times) {
  std::string taken(bytes, '\0');
  pollfd readable{from.file(), POLLIN, 0};
  ASSERT_EQ(poll(&readable, 1, 60'000), 1);
  ASSERT_EQ(recv(from.file(), taken.data(), bytes, MSG_WAITALL), static_cast<ssize_t>(bytes));
  for (int i = 0; i < times; ++i) ASSERT_EQ(send(to.file(), taken.data(), bytes, 0), static_cast<ssize_t>(bytes));
}

// Replayed messages: own ones, from another connection, or reflected to their sender.
TEST(TcpSocket, RefusesWhatIsSaidAgain) {
  constexpr size_t kBytes = 56;  // size of a message without text
  std::string why;
  tcp::Message message;
  const tcp::Message late{tcp::Kind::late, 1, {}};
  Ends one = greet("a secret", "a secret"), two = greet("a secret", "a secret");
  ASSERT_TRUE(one.zero.send(late, soon(), why));
  carry(one.other, two.zero, kBytes, 1);
  EXPECT_FALSE(two.other.receive(message, 100, soon(), why)) << "on another connection";
  EXPECT_EQ(why, kNoProof);

  Ends three = greet("a secret", "a secret");
  ASSERT_TRUE(three.zero.send(late, soon(), why));
  carry(three.other, three.other, kBytes, 1);
  EXPECT_FALSE(three.zero.receive(message, 100, soon(), why)) << "sent back";
  EXPECT_EQ(why, kNoProof);

  Ends four = greet("a secret", "a secret"), relay = greet("", "");
  ASSERT_TRUE(four.zero.send(late, soon(), why));
  carry(four.other, relay.zero, kBytes, 2);
  carry(relay.other, four.zero, 2 * kBytes, 1);
  EXPECT_TRUE(four.other.receive(message, 100, soon(), why)) << why;
  EXPECT_FALSE(four.other.receive(message, 100, soon(), why)) << "twice";
  EXPECT_EQ(why, kNoProof);
}

TEST(TcpSocket, MakesForeignTextPrintable) {
  EXPECT_EQ(tcp::printable("a rank\n\x1b[2Jerror: \xff"), "a rank\\x0a\\x1b[2Jerror: \\xff");
  EXPECT_EQ(tcp::printable("0123456789", 4), "0123...");
}

}  // namespace
}  // namespace dtrain
