// Notices about skipped records, damaged images, and EXIF orientation.
#include "apps/cli/input_notices.h"

#include <thread>

#include "tests/distributed/thread_communicator.h"
#include "tests/testing.h"

namespace dtrain::cli {
namespace {

TEST(InputNotices, AreOfAllRanks) {
  data::LoaderStats first{.records = 6, .damaged_images = 1, .bad_records = 3, .unreachable = 2};
  first.faults = {"a shard is cut", "record 3"};
  first.damages = {"record 5"};
  data::LoaderStats second{.records = 4, .oriented_images = 2, .turned_images = 1, .bad_records = 2, .unreachable = 2};
  second.faults = {"a shard is cut"};
  MeetingPlace place(2);
  data::LoaderStats of_second;
  std::thread other([&] {
    ThreadGroup group(place, 1, 2);
    of_second = over_ranks(group, second);
  });
  ThreadGroup group(place, 0, 2);
  const data::LoaderStats all = over_ranks(group, first);
  other.join();
  const std::vector<std::string> lines = input_notices(all, data::Orientation::apply);
  EXPECT_EQ(
      lines,
      (std::vector<std::string>{
          "3 bad records skipped, 1 damaged images used", "a shard is cut", "record 3", "damaged: record 5",
          "2 of the 10 images read have an EXIF orientation other than 1: 1 were rotated, the others were used as "
          "stored, because their annotations state the stored size"}));
  EXPECT_EQ(input_notices(of_second, data::Orientation::apply), lines);
}

TEST(InputNotices, SoundDataHasNone) {
  EXPECT_EQ(input_notices({.records = 9}, data::Orientation::apply), std::vector<std::string>());
}

}  // namespace
}  // namespace dtrain::cli
