// Traces as valid JSON, complete and truncated.
#include "libdtrain/io/trace_file.h"

#include <thread>

#include <nlohmann/json.hpp>

#include "dtrain/core/error.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using Json = nlohmann::json;

struct TraceFileTest : testing::Test {
  TraceSpan span(const std::string& lane, const std::string& name, int begin, int end) const {
    return {.lane = lane,
            .name = name,
            .begin = origin + std::chrono::microseconds(begin),
            .end = origin + std::chrono::microseconds(end)};
  }

  const TraceFile::Clock::time_point origin = TraceFile::Clock::now();
  TempDirectory folder;
  const std::string path = (folder / "trace.json").string();
};

TEST_F(TraceFileTest, HasLanesAndSpans) {
  TraceFile file(path, "a \"process\"", origin);
  TraceSpan first = span("one", "conv2d \xff", 5, 12);
  first.args = {{"FLOPs", 2e9}, {"output", "[1, 2]"}};
  file.add(first);
  file.add(span("other", "b", 6, 6));
  file.add(span("one", "c", 20, 21));
  file.close();
  const Json events = Json::parse(read_file(path));
  ASSERT_EQ(events.size(), 1u + 2 * 2 + 3);
  EXPECT_EQ(events[0]["args"]["name"], "a \"process\"");
  EXPECT_EQ(events[1]["name"], "thread_name");
  EXPECT_EQ(events[1]["args"]["name"], "one");
  EXPECT_EQ(events[3]["ph"], "X");
  EXPECT_EQ(events[3]["ts"], 5.0);
  EXPECT_EQ(events[3]["dur"], 7.0);
  EXPECT_EQ(events[3]["args"], (Json{{"FLOPs", 2e9}, {"output", "[1, 2]"}}));
  EXPECT_EQ(events[3]["tid"], events[1]["tid"]);
  EXPECT_EQ(events.back()["tid"], events[1]["tid"]);
  EXPECT_NE(events[6]["tid"], events[1]["tid"]);
  EXPECT_EQ(file.take_failure(), "");
}

TEST_F(TraceFileTest, IsAnArrayButForItsEndAtAnyTime) {
  TraceFile file(path, "p", origin);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Json::parse(read_file(path) + "]").size(), i == 0 ? 1u : 3u + static_cast<size_t>(i));
    file.add(span("lane", "event", i, i + 1));
  }
}

TEST_F(TraceFileTest, TakesSpansOfSeveralThreads) {
  constexpr int kEach = 200;
  TraceFile file(path, "p", origin);
  std::vector<std::thread> threads;
  for (const char* lane : {"a", "b", "c"})
    threads.emplace_back([&, lane] {
      for (int i = 0; i < kEach; ++i) file.add(span(lane, "event", i, i + 1));
    });
  for (std::thread& thread : threads) thread.join();
  file.close();
  EXPECT_EQ(Json::parse(read_file(path)).size(), 1u + 3 * 2 + 3 * kEach);
}

TEST_F(TraceFileTest, SaysOnceWhyItCannotBeWritten) {
  EXPECT_THROW(TraceFile(folder.path().string(), "p"), Error);
  EXPECT_THROW(TraceFile((folder / "none" / "trace").string(), "p"), Error);
  EXPECT_THROW(TraceFile("/dev/full", "p"), Error);
}

}  // namespace
}  // namespace dtrain
