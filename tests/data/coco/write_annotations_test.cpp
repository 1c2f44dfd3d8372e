// Round trip of annotations.
#include "data/coco/write_annotations.h"

#include <cmath>

#include "tests/testing.h"

namespace dtrain::data::coco {
namespace {

Annotations all_kinds() {
  Annotations all;
  all.images = {{3, "folder/a \"b\".jpg", 20, 10}, {4, "ü\".png", 8, 6}};
  all.categories = {{1, "cat"}, {90, "tooth\tbrush"}};
  all.annotations = {{.id = 7, .image = 0, .category = 1, .area = 12.5, .box = {0.1, 2, 5, 1e-3}},
                     {.id = 5,
                      .image = 0,
                      .category = 0,
                      .area = 1.0 / 3,
                      .box = {1, 2, 3, 4},
                      .segmentation = Polygons{{1, 2, 4.25, 2, 4, 6.1}, {0, 0, 3, 0, 3, 3, 0, 3}}},
                     {.id = 6,
                      .image = 1,
                      .category = 1,
                      .is_crowd = true,
                      .area = 40,
                      .box = {0, 0, 8, 6},
                      .segmentation = Rle{6, 8, {0, 33, 8, 7}}}};
  all.begins = {0, 2, 3};
  return all;
}

TEST(WriteAnnotations, RoundTrip) {
  const Annotations written = all_kinds(), read = parse_annotations(to_json(written), "set.json");
  ASSERT_EQ(read.images.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read.images[i].id, written.images[i].id);
    EXPECT_EQ(read.images[i].file_name, written.images[i].file_name);
    EXPECT_EQ(read.images[i].width, written.images[i].width);
    EXPECT_EQ(read.images[i].height, written.images[i].height);
    EXPECT_EQ(read.categories[i].id, written.categories[i].id);
    EXPECT_EQ(read.categories[i].name, written.categories[i].name);
  }
  EXPECT_EQ(read.begins, written.begins);
  ASSERT_EQ(read.annotations.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const Annotation &a = read.annotations[i], &b = written.annotations[i];
    EXPECT_EQ(a.id, b.id);
    EXPECT_EQ(a.image, b.image);
    EXPECT_EQ(a.category, b.category);
    EXPECT_EQ(a.is_crowd, b.is_crowd);
    EXPECT_EQ(a.area, b.area);
    EXPECT_EQ(a.box, b.box);
    EXPECT_EQ(a.segmentation, b.segmentation) << i;
  }
}

TEST(WriteAnnotations, RejectInvalidValues) {
  Annotations endless = all_kinds(), unknown = all_kinds();
  endless.annotations[0].area = std::nan("");
  expect_error([&] { to_json(endless); }, Fault::numeric, "has the number nan");
  unknown.annotations[1].image = 2;
  expect_error([&] { to_json(unknown); }, Fault::config, "annotation 5 is about image 2 of 2");
  EXPECT_EQ(parse_annotations(to_json({}), "set.json").images.size(), 0u);
}

}  // namespace
}  // namespace dtrain::data::coco
