// Event files, read back without the engine: their bytes, their names, what is pending, and full disks.
#include "dtrain/io/event_file.h"

#include <cerrno>
#include <cmath>
#include <limits>
#include <memory>

#include "dtrain/core/error.h"
#include "tests/event_reader.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

// 1.5 billion seconds after 1970 began.
constexpr double kNow = 1.5e9;

Summary summary_of(const std::string& tag, double value) {
  Summary summary;
  summary.scalar(tag, value);
  return summary;
}

EventFileOptions options_in(const TempDirectory& directory) { return {.folder = directory.path(), .host = "node-1"}; }

TEST(EventFile, BeginsAsTensorFlowsDo) {
  const TempDirectory directory;
  EventFile(options_in(directory), 1, 0);
  const std::string path = directory / "events.out.tfevents.0000000000.node-1";
  // The first record at time 0, as TensorFlow 2 writes it.
  const unsigned char known[] = {0x18, 0,   0,   0,   0,   0,   0,   0,    0xa3, 0x7f, 0x4b, 0x22, 0x09, 0,
                                 0,    0,   0,   0,   0,   0,   0,   0x1a, 0x0d, 'b',  'r',  'a',  'i',  'n',
                                 '.',  'E', 'v', 'e', 'n', 't', ':', '2',  0xee, 0xdf, 0x28, 0xa3};
  EXPECT_EQ(read_file(path).substr(0, sizeof known), std::string(reinterpret_cast<const char*>(known), sizeof known));
  const auto events = read_events(path);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_TRUE(events[1].start);
  EXPECT_EQ(events[1].step, 1u);
}

TEST(EventFile, KeepsEveryScalar) {
  const TempDirectory directory;
  std::string path;
  Summary many;
  const double values[] = {0.25, -3e38, 1e-40, std::nan(""), std::numeric_limits<double>::infinity(), 0};
  for (size_t i = 0; i < std::size(values); ++i) many.scalar("group/tag " + std::to_string(i), values[i]);
  const uint64_t steps[] = {1, 127, 128, 1'000'000'000'000};
  {
    EventFile file(options_in(directory), 1, kNow);
    path = file.path();
    for (const uint64_t step : steps) file.add(step, kNow + static_cast<double>(step) / 8, many);
    file.add(7, kNow, summary_of(std::string(70'000, 't'), 1));
  }
  EXPECT_EQ(path, (directory / "events.out.tfevents.1500000000.node-1").string());
  const auto events = read_events(path);
  ASSERT_EQ(events.size(), 2 + std::size(steps) + 1);
  for (size_t i = 0; i < std::size(steps); ++i) {
    const ReadEvent& event = events[2 + i];
    EXPECT_EQ(event.step, steps[i]);
    EXPECT_EQ(event.wall_time, kNow + static_cast<double>(steps[i]) / 8);
    ASSERT_EQ(event.scalars.size(), std::size(values));
    for (size_t k = 0; k < std::size(values); ++k) {
      const auto expected = static_cast<float>(values[k]);
      EXPECT_EQ(event.scalars[k].first, "group/tag " + std::to_string(k));
      EXPECT_TRUE(event.scalars[k].second == expected || (std::isnan(expected) && std::isnan(event.scalars[k].second)));
    }
  }
  EXPECT_EQ(events.back().scalars[0].first.size(), 70'000u);
}

TEST(EventFile, WritesWhatIsPendingByNumberAndByAge) {
  const TempDirectory directory;
  EventFileOptions options = options_in(directory);
  options.most_pending = 3;
  options.most_seconds = 10;
  EventFile file(options, 1, kNow);
  const auto written = [&] { return read_events(file.path()).size() - 2; };
  const Summary one = summary_of("a", 1);
  file.add(1, kNow + 1, one);
  file.add(2, kNow + 2, one);
  EXPECT_EQ(written(), 0u);
  file.add(3, kNow + 3, one);  // the third
  EXPECT_EQ(written(), 3u);
  file.add(4, kNow + 50, one);
  EXPECT_EQ(written(), 3u);
  file.add(5, kNow + 60, one);  // the fourth is old
  EXPECT_EQ(written(), 5u);
  file.add(6, kNow + 61, one);
  file.flush();
  EXPECT_EQ(written(), 6u);
}

// Readers go by names, and know nothing of clocks that were put back.
TEST(EventFile, ALaterRunHasALaterName) {
  const TempDirectory directory;
  for (const char* other : {"events.out.tfevents.9999999999.x", "events.out.tfevents.nonsense00.x",
                            "events.out.tfevents.15", "events.out.tfevents.1500000007.other.v2"})
    write_file(directory / other, "somebody else's");
  std::vector<std::string> names;
  for (const double now : {kNow, kNow - 1000, kNow + 100}) {
    EventFile file(options_in(directory), 1, now);
    names.push_back(fs::path(file.path()).filename());
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"events.out.tfevents.1500000008.node-1", "events.out.tfevents.1500000009.node-1",
                                      "events.out.tfevents.1500000100.node-1"}));
  EXPECT_EQ(read_file(directory / "events.out.tfevents.15"), "somebody else's");
  const TempDirectory other;
  EventFileOptions options = options_in(other);
  options.host = "../a b\n\xff";
  EXPECT_EQ(fs::path(EventFile(options, 1, kNow).path()).filename(), "events.out.tfevents.1500000000..._a_b__");
}

TEST(EventFile, FollowsNoLink) {
  const TempDirectory directory, far;
  // Beyond the last second that a name can have, so that the name is taken already.
  fs::create_symlink(far / "target", directory / "events.out.tfevents.9999999999.node-1");
  expect_error([&] { EventFile(options_in(directory), 1, 1e10); }, Fault::resource, "File exists");
  EXPECT_FALSE(fs::exists(far / "target"));
}

// Only what a later run begins anew is dropped, and a record that is cut off hides none that is whole.
TEST(EventFile, AResumedRunTakesTheStepsAfterItsCheckpoint) {
  const TempDirectory directory;
  std::string first;
  {
    EventFile file(options_in(directory), 1, kNow);
    first = file.path();
    for (uint64_t step = 1; step <= 5; ++step) file.add(step, kNow, summary_of("loss", 1));
  }
  fs::resize_file(first, fs::file_size(first) - 5);  // killed while it wrote
  {
    EventFile file(options_in(directory), 3, kNow);
    for (uint64_t step = 3; step <= 4; ++step) file.add(step, kNow, summary_of("loss", 2));
  }
  const std::map<uint64_t, float> expected = {{1, 1}, {2, 1}, {3, 2}, {4, 2}};
  EXPECT_EQ(shown_scalars(directory.path())["loss"], expected);
}

TEST(EventFile, WithoutAFirstStepNothingIsDropped) {
  const TempDirectory directory;
  for (const auto& [step, value] : {std::pair{5, 1.0}, {2, 2.0}, {5, 3.0}}) {
    EventFile file(options_in(directory), std::nullopt, kNow);
    file.add(static_cast<uint64_t>(step), kNow, summary_of("loss", value));
  }
  EXPECT_EQ(shown_scalars(directory.path())["loss"], (std::map<uint64_t, float>{{2, 2}, {5, 3}}));
  for (const std::string& file : event_files_in(directory.path())) {
    const std::vector<ReadEvent> events = read_events(file);
    ASSERT_EQ(events.size(), 2u) << "the version and the value";
    EXPECT_FALSE(events[0].start || events[1].start);
  }
}

// Takes so many bytes, then none.
class DiskOfEvents : public FileSystem {
 public:
  ssize_t write(int fd, const void* data, size_t size) override {
    if (room == 0) {
      errno = ENOSPC;
      return -1;
    }
    const size_t part = std::min(size, room);
    room -= part;
    return FileSystem::write(fd, data, part);
  }
  size_t room = 130;
};

TEST(EventFile, AFullDiskIsAnErrorAndLeavesWhatIsWhole) {
  const TempDirectory directory;
  DiskOfEvents disk;
  std::string path;
  {
    EventFile file(options_in(directory), 1, kNow, disk);
    path = file.path();
    file.add(1, kNow, summary_of("loss", 1));
    file.flush();
    file.add(2, kNow, summary_of("loss", 2));
    expect_error([&] { file.flush(); }, Fault::resource, "No space left on device");
    disk.room = 1000;
    file.flush();  // nothing follows a part of a record
  }
  const auto events = read_events(path);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[2].step, 1u);
}

}  // namespace
}  // namespace dtrain
