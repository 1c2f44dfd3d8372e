// Group over TCP: threads as ranks without failures, processes with them.
#include <arpa/inet.h>

#include <csignal>
#include <thread>

#include "libdtrain/distributed/read_texts.h"
#include "tests/distributed/ranks.h"

namespace dtrain {
namespace {

using std::string_literals::operator""s;

TcpOptions rank_of(int rank, int size, int port) {
  return {.rank = rank, .size = size, .address = "localhost", .port = port, .bind_address = "", .job = "this job"};
}

GroupOptions limits(double setup) {
  GroupOptions options = quick_options();
  options.setup_limit = setup;
  return options;
}

// Each rank in a thread.
void run_threads(int size, const std::function<void(Group&)>& body) {
  const int port = free_port();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([=, &body] {
      const auto group = make_tcp_group(limits(60), rank_of(rank, size, port));
      body(*group);
      group->finish();
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(TcpGroup, GathersTextsOfAnyLength) {
  for (const int size : {1, 2, 5}) {
    run_threads(size, [size](Group& group) {
      ASSERT_EQ(group.size(), size);
      for (const size_t length : {size_t{0}, size_t{1}, size_t{300'000}}) {
        const auto text = [&](int rank) { return std::string(length * static_cast<size_t>(rank + 1), 'a') + "\0z"; };
        const std::vector<std::string> texts = group.all_gather(text(group.rank()), "texts");
        ASSERT_EQ(texts.size(), static_cast<size_t>(size));
        for (int rank = 0; rank < size; ++rank) EXPECT_EQ(texts[static_cast<size_t>(rank)], text(rank));
      }
      EXPECT_EQ(group.broadcast(group.rank() == size - 1 ? "from the last" : "", size - 1, "word"), "from the last");
      EXPECT_EQ(group.extremes(10 * group.rank(), "numbers"), (std::pair<int64_t, int64_t>(0, 10 * (size - 1))));
    });
  }
}

TEST(TcpGroup, KnowsWhereItsRanksAre) {
  run_threads(3, [](Group& group) {
    for (int rank = 0; rank < 3; ++rank) {
      const Place& place = group.places()[static_cast<size_t>(rank)];
      EXPECT_EQ(place.host, group.places()[0].host);
      EXPECT_EQ(place.pid, getpid());
      EXPECT_EQ(place.local_rank, rank);
      EXPECT_EQ(place.local_size, 3);
      EXPECT_EQ(place.node, 0);
    }
  });
}

TEST(TcpGroup, RefusesTextsBeyondItsLimit) {
  run_threads(1, [](Group& group) {
    expect_error([&] { group.all_gather(std::string(kMostTextBytes + 1, 'x'), "too much"); }, Fault::config,
                 "too much: 536870913 bytes of one rank");
  });
}

TEST(TcpGroup, RefusesWhatComesAfterTheEnd) {
  const auto group = make_tcp_group({}, rank_of(0, 1, free_port()));
  expect_error([&] { group->broadcast("text", 1, "word"); }, Fault::config, "word: from rank 1 of 1");
  group->finish();
  expect_error([&] { group->barrier("texts"); }, Fault::config, "texts: called after Group::finish()");
}

TEST(TcpGroup, EndsWithItsCodeWhereNobodySaysHow) {
  const auto results = in_ranks(2, [] {
    GroupOptions options = quick_options();
    options.fail = {};
    const TcpOptions tcp = tcp_options_from([](const char* name) { return std::getenv(name); });
    if (tcp.rank == 1) options.warn = {};
    const auto group = make_tcp_group(options, tcp);
    group->barrier(tcp.rank == 0 ? "this" : "that");
    FAIL() << "all went well";
  });
  if (is_rank()) return;
  for (const RankResult& result : results) EXPECT_EQ(result.code, 4) << result.out;
  EXPECT_NE(results[0].out.find("WARNING: ranks are out of step"), std::string::npos) << results[0].out;
}

TEST(TcpGroup, NamesWhoDoesNotCome) {
  const int port = free_port();
  std::thread first([port] {
    expect_error([&] { make_tcp_group(limits(3), rank_of(0, 3, port)); }, Fault::communication,
                 "no connection within 3 s from rank 2");
  });
  expect_error([&] { make_tcp_group(limits(60), rank_of(1, 3, port)); }, Fault::communication,
               "rank 0 gave up: set-up: no connection within 3 s from rank 2");
  first.join();
  expect_error([&] { make_tcp_group(limits(0.2), rank_of(1, 3, port)); }, Fault::communication,
               "did not reach rank 0 at localhost port");
}

// A client that sends bytes to a local port and, with `wait`, reads the reply to its end.
void call(int port, const std::string& bytes, bool wait) {
  const int file = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  while (connect(file, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  static_cast<void>(send(file, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  char answer[64];
  while (wait && recv(file, answer, sizeof answer, 0) > 0) {
  }
  close(file);
}

TEST(TcpGroup, SendsAwayWhoIsNoRank) {
  const int port = free_port();
  std::vector<std::string> warnings;
  std::thread first([&] {
    GroupOptions options = limits(60);
    options.warn = [&](const std::string& line) { warnings.push_back(line); };
    make_tcp_group(options, rank_of(0, 2, port))->finish();
  });
  const std::string greeting = "dtcp2\0\0\0"s + std::string(32, 'n');
  const std::vector<std::string> nonsense = {
      "GET / HTTP/1.1\r\n\r\n and more than a greeting", greeting + std::string(56, '\xff'),  // would need an exabyte
      greeting + std::string(56, '\0'),                                                       // no proof
      greeting + std::string(16, '\0') + std::string(40, 'x'),  // text in place of a length
  };
  for (const std::string& bytes : nonsense) call(port, bytes, /*wait=*/true);
  call(port, "half a mess", /*wait=*/false);
  const auto refused = [&](TcpOptions options, const std::string& part) {
    expect_error([&] { make_tcp_group(limits(60), options); }, Fault::config, part);
  };
  TcpOptions other = rank_of(1, 2, port);
  other.job = "an\nother";
  refused(other, "rejected by rank 0 at localhost port");
  refused(other, "it belongs to job 'an\\x0aother', rank 0 to job 'this job'");
  refused(rank_of(1, 3, port), "it was started as one of 3 ranks, rank 0 as one of 2");
  make_tcp_group(limits(60), rank_of(1, 2, port))->finish();
  first.join();
  EXPECT_GE(warnings.size(), nonsense.size() + 4);
  for (const std::string& line : warnings)
    EXPECT_TRUE(contains(line, "rejected a connection from 127.0.0.1: ") || contains(line, "rejected a rank from"))
        << line;
}

// Rank 0 times out first: rank 1's last attempt may then find no listener.
TEST(TcpGroup, SaysThatSecretsDiffer) {
  const int port = free_port();
  const auto failure = [port](int rank, const char* secret, double limit) {
    TcpOptions tcp = rank_of(rank, 2, port);
    tcp.secret = secret;
    try {
      make_tcp_group(limits(limit), tcp);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  std::string first;
  std::thread rank_zero([&] { first = failure(0, "0123456789abcdef", 1); });
  const std::string second = failure(1, "fedcba9876543210", 1);
  rank_zero.join();
  EXPECT_TRUE(contains(first, "no connection within 1 s from rank 1")) << first;
  EXPECT_TRUE(contains(first, "; a caller from 127.0.0.1 failed to authenticate: all ranks need one")) << first;
  EXPECT_TRUE(contains(second, "the listener failed to authenticate as rank 0 of this job")) << second;
  EXPECT_TRUE(contains(second, "it probably has another job secret: all ranks need one")) << second;
}

TEST(TcpGroup, NeedsASecretBeyondThisMachine) {
  TcpOptions far = rank_of(1, 2, free_port());
  far.address = "192.0.2.1";
  const auto refused = [](const TcpOptions& tcp) {
    expect_error([&] { make_tcp_group(limits(0.2), tcp); }, Fault::config, "need a secret");
  };
  refused(far);
  far.secret = "0123456789abcdef";
  expect_error([&] { make_tcp_group(limits(0.2), far); }, Fault::communication, "did not reach rank 0 at 192.0.2.1");
  far.secret = "";
  far.trust_network = true;
  expect_error([&] { make_tcp_group(limits(0.2), far); }, Fault::communication, "did not reach rank 0 at 192.0.2.1");
  TcpOptions open = rank_of(0, 2, free_port());
  open.bind_address = "0.0.0.0";
  refused(open);
}

// Three ranks are stopped for longer than the timeout, while two of them wait for the third.
TEST(TcpGroup, GoesOnAfterAllRanksHaveSlept) {
  const auto results = in_ranks(3, [] {
    const auto group = make_tcp_group(quick_options(/*step_limit=*/3), launched_tcp());
    group->enter(Section::step, 5);
    group->barrier("first");
    if (group->rank() == 2) {
      if (fork() == 0) {
        std::this_thread::sleep_for(std::chrono::seconds(1));
        for (const Place& place : group->places()) kill(place.pid, SIGSTOP);
        std::this_thread::sleep_for(std::chrono::seconds(5));
        for (const Place& place : group->places()) kill(place.pid, SIGCONT);
        _exit(0);
      }
      std::this_thread::sleep_for(std::chrono::seconds(7));  // arrives a second after they have resumed
    }
    group->barrier("second");
    group->finish();
  });
  if (is_rank()) return;
  for (const RankResult& result : results) EXPECT_EQ(result.code, 0) << result.out;
}

TEST(TcpGroup, WaitsForARankThatIsLateAndSaysSo) {
  const auto results = in_ranks(3, [] {
    const auto group = make_tcp_group(quick_options(/*step_limit=*/6), launched_tcp());
    group->enter(Section::step, 5);
    if (group->rank() == 2)
      while (!contains(written_by(0), "WARNING: waiting for "))
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    group->barrier("metrics");
    group->finish();
  });
  if (is_rank()) return;
  for (const RankResult& result : results) EXPECT_EQ(result.code, 0) << result.out;
  EXPECT_NE(results[0].out.find("WARNING: waiting for rank 2 on "), std::string::npos) << results[0].out;
  EXPECT_NE(results[0].out.find("in 'metrics', collective 1, in step 5, limit 6 s"), std::string::npos)
      << results[0].out;
}

// All other ranks exit with code 4 and a report that contains `part`. The timeout applies only after the fault.
void expect_end(int count, int culprit, const std::string& part, const std::function<void(Group&)>& fault,
                double step_limit = 60) {
  const auto results = in_ranks(count, [&] {
    const auto group = make_tcp_group(quick_options(step_limit), launched_tcp());
    group->barrier("first");
    group->enter(Section::step, 7);
    if (group->rank() == culprit) fault(*group);
    group->barrier("second");
    group->barrier("third");
    FAIL() << "all went well";
  });
  if (is_rank()) return;
  for (int rank = 0; rank < count; ++rank) {
    if (rank == culprit) continue;
    const RankResult& result = results[static_cast<size_t>(rank)];
    EXPECT_EQ(result.code, 4) << result.out;
    EXPECT_NE(result.out.find(part), std::string::npos) << "expected " << part << ", found " << result.out;
  }
}

void stay_away(Group&) {
  std::this_thread::sleep_for(std::chrono::seconds(8));
  _exit(0);
}

TEST(TcpGroup, EndsWithoutARankThatStopped) { expect_end(3, 1, "rank 1 on ", stay_away, /*step_limit=*/1.5); }
TEST(TcpGroup, EndsWithoutRankZero) { expect_end(3, 0, "rank 0 on ", stay_away, /*step_limit=*/1.5); }
TEST(TcpGroup, EndsWhereARankDies) {
  expect_end(3, 2, "lost rank 2 on ", [](Group&) { raise(SIGKILL); });
}
TEST(TcpGroup, EndsWhereRankZeroDies) {
  expect_end(3, 0, "lost rank 0 on ", [](Group&) { raise(SIGKILL); });
}
TEST(TcpGroup, EndsWhereRanksDoDifferentThings) {
  expect_end(3, 1, "rank 1 on ", [](Group& group) { group.barrier("something else"); });
}
TEST(TcpGroup, PassesOnTheLastWordsOfARank) {
  expect_end(3, 1, "REPORT: the GPU of rank 1 burns", [](Group& group) { group.fail("the GPU of rank 1 burns"); });
}

// A rank dies while no collective is in progress.
TEST(TcpGroup, NoticesADeathBetweenCollectives) {
  const auto results = in_ranks(3, [] {
    const auto group = make_tcp_group(quick_options(), launched_tcp());
    group->enter(Section::step, 3);
    group->barrier("first");
    if (group->rank() == 1) raise(SIGKILL);
    std::this_thread::sleep_for(std::chrono::seconds(50));
    FAIL() << "nobody noticed";
  });
  if (is_rank()) return;
  for (const int rank : {0, 2}) {
    const RankResult& result = results[static_cast<size_t>(rank)];
    EXPECT_EQ(result.code, 4) << result.out;
    EXPECT_NE(result.out.find("lost rank 1 on "), std::string::npos) << result.out;
  }
}

}  // namespace
}  // namespace dtrain
