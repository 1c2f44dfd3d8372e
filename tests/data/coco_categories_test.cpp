#include "data/coco_categories.h"

#include "tests/data/coco_folder.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

std::shared_ptr<const DetectionSource> numbered(const CocoFolder& folder) {
  return with_coco_classes(open_coco(folder.annotations(), folder.folder()), "here");
}

TEST(CocoCategories, AreEighty) {
  const auto ids = coco_category_ids();
  ASSERT_EQ(ids.size(), 80u);
  EXPECT_TRUE(std::ranges::is_sorted(ids));
  EXPECT_EQ(ids.front(), 1);
  EXPECT_EQ(ids[11], 13);
  EXPECT_EQ(ids.back(), 90);
}

TEST(CocoCategories, MapClassesOfASubset) {
  const CocoFolder folder;  // with categories 5 and 9
  const auto source = numbered(folder);
  ASSERT_EQ(source->categories().size(), 80u);
  EXPECT_EQ(source->categories()[4].name, "cat");
  EXPECT_EQ(source->categories()[8].id, 9);
  const auto reader = source->reader();
  const DetectionSample sample = reader->read(0, {});
  ASSERT_EQ(sample.objects.size(), 2u);
  EXPECT_EQ(sample.objects[0].category, 4u);
  EXPECT_EQ(sample.objects[1].category, 8u);
}

TEST(CocoCategories, RejectUnknownCategories) {
  const CocoFolder folder;
  std::string json = CocoFolder::json();
  for (size_t at; (at = json.find("\"category_id\":9")) != json.npos;) json.replace(at, 15, "\"category_id\":12");
  json.replace(json.find("\"id\":9,\"name\""), 13, "\"id\":12,\"name\"");
  write_file(folder.annotations(), json);
  expect_error([&] { numbered(folder); }, Fault::data, "here: category 12 (dog), expected one of COCO's 80");
}

TEST(CocoCategories, GroundTruthMatchesTheFile) {
  const CocoFolder folder;
  const coco::Annotations made = annotations_of(*open_coco(folder.annotations(), folder.folder()));
  const coco::Annotations read = coco::read_annotations(folder.annotations());
  ASSERT_EQ(made.images.size(), read.images.size());
  EXPECT_EQ(made.begins, read.begins);
  for (size_t i = 0; i < made.images.size(); ++i) {
    EXPECT_EQ(made.images[i].id, read.images[i].id);
    EXPECT_EQ(made.images[i].width, read.images[i].width);
  }
  ASSERT_EQ(made.annotations.size(), read.annotations.size());
  for (size_t i = 0; i < made.annotations.size(); ++i) {
    EXPECT_EQ(made.annotations[i].category, read.annotations[i].category);
    EXPECT_EQ(made.annotations[i].image, read.annotations[i].image);
    EXPECT_EQ(made.annotations[i].area, read.annotations[i].area);
    EXPECT_EQ(made.annotations[i].is_crowd, read.annotations[i].is_crowd);
    EXPECT_EQ(made.annotations[i].box.width, read.annotations[i].box.width);
  }
}

}  // namespace
}  // namespace dtrain::data
