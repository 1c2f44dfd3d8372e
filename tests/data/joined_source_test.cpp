#include "dtrain/data/detection_source.h"
#include "tests/data/coco_folder.h"

namespace dtrain::data {
namespace {

TEST(JoinedSource, ConcatenatesSources) {
  const CocoFolder folder;
  const auto train = open_coco(folder.annotations(), folder.folder());
  const auto val = open_coco(folder.annotations("val"), folder.folder("val"));
  EXPECT_EQ(join({train}), train);
  const auto both = join({train, val});
  EXPECT_EQ(both->size(), 14u);
  EXPECT_EQ(both->shard_begins(), (std::vector<uint64_t>{0, 7, 14}));
  EXPECT_EQ(both->locate(8).text(), folder.annotations("val") + ": image 4");
  EXPECT_EQ(both->identity(), train->identity() + val->identity());
  const auto reader = both->reader();
  EXPECT_EQ(reader->read(8, {}).id, 4);
  EXPECT_EQ(reader->read(0, {}).id, 3);
  expect_error([&] { both->locate(14); }, Fault::config, "image 14 of 14");
}

}  // namespace
}  // namespace dtrain::data
