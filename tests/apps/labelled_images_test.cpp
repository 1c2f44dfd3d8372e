// Which class of a model the folders of dtrain-serve --images stand for.
#include "apps/serve/labelled_images.h"

#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::serve {
namespace {

class LabelledImages : public testing::Test {
 protected:
  void add(const std::string& name) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    write_file((folder_ / name).string(), "x");
  }
  std::vector<LabelledImage> images() const { return read_labelled_images(folder_.path().string(), ""); }
  std::vector<std::optional<int64_t>> labels(const std::vector<std::string>& names) const {
    const LabelRule rule(names);
    std::vector<std::optional<int64_t>> labels;
    for (const LabelledImage& image : images()) labels.push_back(rule.label_of(image));
    return labels;
  }

  TempDirectory folder_;
};

using Labels = std::vector<std::optional<int64_t>>;

TEST_F(LabelledImages, HaveTheClassesOfTheirFoldersNames) {
  for (const char* name : {"goldfish/b.jpg", "tench/a.png", "goldfish/a.jpg", ".hidden/a.jpg", "goldfish/list.txt"})
    add(name);
  const auto found = images();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].name, "goldfish/a.jpg");
  EXPECT_EQ(found[2].class_name, "tench");
  EXPECT_EQ(labels({"", "tench", "shark", "goldfish"}), (Labels{3, 3, 1}));
  const std::vector<std::string> other = {"", "shark"};
  EXPECT_EQ(labels(other), (Labels{{}, {}, {}}));
  expect_error([&] { LabelRule(other).require_labels(found); }, Fault::data,
               "goldfish is none of the model's classes, such as shark");
  EXPECT_FALSE(LabelRule(other).counts_folders(found));
  // Without names, as the shards of the same folders are numbered.
  EXPECT_EQ(labels({}), (Labels{1, 1, 2}));
  EXPECT_TRUE(LabelRule({}).counts_folders(found));
  LabelRule({}).require_labels(found);
}

TEST_F(LabelledImages, NumbersAreClassesUnlessTheyAreNames) {
  for (const char* name : {"0/a.jpg", "7/a.jpg"}) add(name);
  EXPECT_EQ(labels({}), (Labels{0, 7}));
  EXPECT_EQ(labels({"a", "b"}), (Labels{0, 7}));
  // Digits that dtrain-data has numbered from 1 on.
  EXPECT_EQ(labels({"", "0", "1", "7"}), (Labels{1, 3}));
  EXPECT_FALSE(LabelRule({}).counts_folders(images()));
}

}  // namespace
}  // namespace dtrain::serve
