// Messages, exit codes and signals of programs.
#include "apps/cli/run_main.h"
#include "apps/cli/stop_signals.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <new>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <unistd.h>

#include "apps/cli/command_line.h"
#include "apps/cli/log.h"
#include "apps/cli/messages.h"
#include "apps/cli/ranks.h"
#include "dtrain/core/error.h"
#include "tests/testing.h"

namespace dtrain::cli {
namespace {

TEST(Messages, AreAlwaysOneLine) {
  EXPECT_EQ(escaped("a\nerror: b\r\x1b[2J\x7f\tc"), "a\\nerror: b\\r\\x1b[2J\\x7f\tc");
  EXPECT_EQ(escaped(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(escaped("Größe 尺寸 😀 \\n"), "Größe 尺寸 😀 \\n");
  EXPECT_EQ(escaped("\xff \xc3 \xe2\x82 \xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80 \xc3"),
            "\\xff \\xc3 \\xe2\\x82 \\xc0\\xaf \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80 \\xc3")
      << "bytes that are no UTF-8";
  EXPECT_EQ(escaped("\u0085 \u2028 \u202egpj.exe"), "\\x85 \\u2028 \\u202egpj.exe");
  testing::internal::CaptureStderr();
  print_message("note", "x\ny");
  print_message("note", std::string(20000, 'x'));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("note: x\\ny\nnote: xxx"), 0u) << said.substr(0, 100);
  EXPECT_TRUE(said.ends_with("x ... and 12000 bytes more\n"));
}

TEST(Messages, ShowNoQueriesOfUrls) {
  testing::internal::CaptureStderr();
  print_message("error",
                "https://host/a?X-Amz-Signature=secret: does not fit; http://host/b?secret and s3://bucket/c?d");
  print_message("note", "https://host/a?...: why?");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "error: https://host/a?...: does not fit; http://host/b?... and s3://bucket/c?d\n"
            "note: https://host/a?...: why?\n");
}

TEST(Messages, LogsEscapeToo) {
  std::ostringstream out, notices;
  Log log(out, notices);
  log.line("1\ta\nb");
  log.notice("c\nd");
  EXPECT_EQ(out.str(), "1\ta\\nb\n");
  EXPECT_EQ(notices.str(), "note: c\\nd\n");
}

TEST(RunMain, ReturnsTheCodeOfTheFault) {
  EXPECT_EQ(run_main([] { return 0; }), 0);
  EXPECT_EQ(run_main([] { return kStopped; }), 75);
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_main([]() -> int { throw Error(Fault::checkpoint, "no checkpoint"); }), 5);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "error: no checkpoint\n");
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_main([]() -> int { throw std::bad_alloc(); }), 6);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "error: out of memory\n");
  const auto told = [](const std::function<int()>& body) {
    testing::internal::CaptureStderr();
    const int code = run_main(body);
    return std::pair(code, testing::internal::GetCapturedStderr());
  };
  EXPECT_EQ(told([]() -> int { throw std::length_error("vector::reserve"); }),
            std::pair(6, std::string("error: out of memory: a requested size exceeds any machine's memory\n")));
  EXPECT_EQ(
      told([]() -> int { throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)); }),
      std::pair(6, std::string("error: cannot start another thread (Resource temporarily unavailable): use fewer "
                               "threads, or raise the limits `ulimit -u` and `ulimit -v`\n")));
  EXPECT_EQ(told([]() -> int { throw Error("a\nerror: b"); }), std::pair(1, std::string("error: a\\nerror: b\n")));
}

TEST(RunMain, EndsAProcessWhoseThreadThrows) {
  const auto thrown_in_a_thread = [] {
    run_main([] {
      std::thread([] { throw std::bad_alloc(); }).join();
      return 0;
    });
  };
  EXPECT_EXIT(thrown_in_a_thread(), testing::ExitedWithCode(6), "^error: out of memory\n$");
}

class LaunchedAs {
 public:
  LaunchedAs(const char* rank, const char* size) {
    setenv("DTRAIN_RANK", rank, 1);
    setenv("DTRAIN_SIZE", size, 1);
  }
  ~LaunchedAs() {
    unsetenv("DTRAIN_RANK");
    unsetenv("DTRAIN_SIZE");
  }
};

std::string said_by_run_main() {
  testing::internal::CaptureStderr();
  run_main([]() -> int { throw Error("no such flag"); });
  return testing::internal::GetCapturedStderr();
}

TEST(RunMain, NamesTheRankAndItsHost) {
  char host[256] = "";
  ASSERT_EQ(gethostname(host, sizeof host), 0);
  {
    const LaunchedAs one_of_two("1", "2");
    EXPECT_EQ(said_by_run_main(), concat("error: rank 1 on ", host, ": no such flag\n"));
  }
  const LaunchedAs alone("0", "1");
  EXPECT_EQ(said_by_run_main(), "error: no such flag\n");
}

TEST(RunMain, ReportsInvalidLauncherVariables) {
  const LaunchedAs nonsense("one", "2");
  EXPECT_EQ(said_by_run_main(), "error: no such flag\n");
}

TEST(OpenGroup, IsOfOneRankWithoutALauncher) {
  EXPECT_EQ(open_group()->size(), 1);
  EXPECT_EQ(open_group({}, 1)->size(), 1);
  try {
    open_group({}, 4);
    FAIL() << "one rank where four are expected";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "expected 4 ranks, found 1: no launcher started this process");
  }
}

// Sends the signal to the process.
void send(int number) { kill(getpid(), number); }

void wait_for_stop() {
  while (!stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(StopSignals, TheFirstSetsAFlagTheSecondEndsTheProcess) {
  EXPECT_EXIT(
      {
        catch_stop_signals();
        if (stop_requested()) std::exit(1);
        send(SIGTERM);
        wait_for_stop();
        send(SIGINT);
        pause();
      },
      testing::ExitedWithCode(128 + SIGINT), "");
}

TEST(StopSignals, RepeatedSignalsToARankAreMerged) {
  EXPECT_EXIT(
      {
        setenv("OMPI_COMM_WORLD_RANK", "0", 1);
        setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
        catch_stop_signals();
        for (int number : {SIGUSR1, SIGTERM, SIGUSR1}) send(number);
        wait_for_stop();
        std::this_thread::sleep_for(std::chrono::milliseconds(2500));
        send(SIGTERM);
        pause();
      },
      testing::ExitedWithCode(128 + SIGTERM), "");
}

// A lost ssh session, and batch systems' signals, which are repeated and followed by others.
TEST(StopSignals, RepeatedSystemSignalsAreIgnored) {
  for (const int number : {SIGHUP, SIGUSR2, SIGXCPU})
    EXPECT_EXIT(
        {
          catch_stop_signals();
          for (const int sent : {number, number, SIGTERM, SIGHUP, SIGXCPU}) {
            send(sent);
            wait_for_stop();
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
          }
          send(SIGINT);  // the user's second request
          pause();
        },
        testing::ExitedWithCode(128 + SIGINT), "");
}

TEST(StopSignals, KeepWhatNohupIgnores) {
  EXPECT_EXIT(
      {
        std::signal(SIGHUP, SIG_IGN);
        catch_stop_signals();
        send(SIGHUP);
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        if (stop_requested()) std::exit(1);
        send(SIGUSR2);
        wait_for_stop();
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(StopSignals, AreIgnoredOnceAllIsDone) {
  EXPECT_EXIT(
      {
        catch_stop_signals();
        send(SIGUSR1);
        wait_for_stop();
        ignore_stop_signals();
        for (int number : {SIGTERM, SIGINT, SIGUSR1}) send(number);
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(StopSignals, EndTheProcessAsIfTheyHadNotBeenCaught) {
  EXPECT_EXIT(
      {
        catch_stop_signals();
        send(SIGTERM);
        wait_for_stop();
        end_by_signal();
      },
      testing::KilledBySignal(SIGTERM), "");
}

// A library may point its stack pointer to memory that a signal frame must not overwrite.
TEST(StopSignals, InterruptNoThread) {
  EXPECT_EXIT(
      {
        catch_stop_signals();
        const auto is_blocked = [] {
          sigset_t blocked;
          pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
          return std::ranges::all_of(std::array{SIGTERM, SIGINT, SIGUSR1, SIGHUP, SIGUSR2, SIGXCPU},
                                     [&](int number) { return sigismember(&blocked, number); });
        };
        bool later = false;
        std::thread([&] { later = is_blocked(); }).join();
        std::exit(is_blocked() && later ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace dtrain::cli
