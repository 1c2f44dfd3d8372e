// Labels of the folders of dtrain-serve --images.
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
  std::vector<std::optional<int64_t>> labels(const std::vector<std::string>& names, int64_t outputs) const {
    const std::vector<LabelledImage> found = images();
    const LabelRule rule(names, outputs, found);
    std::vector<std::optional<int64_t>> labels;
    for (const LabelledImage& image : found) labels.push_back(rule.label_of(image));
    return labels;
  }

  TempDirectory folder_;
};

using Labels = std::vector<std::optional<int64_t>>;

TEST_F(LabelledImages, HaveTheClassesOfTheirFoldersNames) {
  for (const char* name : {"goldfish/b.jpg", "tench/a.webp", "goldfish/a.JPG", ".hidden/a.jpg", "goldfish/list.txt",
                           "__MACOSX/a.jpg", "@eaDir/a.jpg", "lost+found/a.jpg"})
    add(name);
  const auto found = images();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].name, "goldfish/a.JPG");
  EXPECT_EQ(found[2].class_name, "tench");
  EXPECT_EQ(labels({"", "tench", "shark", "goldfish"}, 4), (Labels{3, 3, 1}));
  EXPECT_EQ(labels({"", "tench fish", "tench paint", "goldfish Carassius auratus"}, 4), (Labels{3, 3, {}}))
      << "the first word of one name alone";
  const std::vector<std::string> other = {"", "shark"};
  EXPECT_EQ(labels(other, 2), (Labels{{}, {}, {}}));
  expect_error([&] { LabelRule(other, 2, found).require_labels(found); }, Fault::data,
               "goldfish is not one of the model's classes, such as shark");
  EXPECT_EQ(LabelRule(other, 2, found).notice(), "");
  // Without names: numbered like the shards of the same folders.
  EXPECT_EQ(labels({}, 3), (Labels{1, 1, 2}));
  EXPECT_TRUE(LabelRule({}, 3, found).notice().ends_with("numbered from 1 in sorted order, as in dtrain-data"));
  LabelRule({}, 3, found).require_labels(found);
  expect_error([&] { LabelRule({}, 2, found).require_labels(found); }, Fault::data,
               "its folder is number 2, and the model, which has recorded no names of classes, has outputs 0 to 1");
}

TEST_F(LabelledImages, NumbersAreClassesUnlessTheyAreNames) {
  for (const char* name : {"0/a.jpg", "7/a.jpg"}) add(name);
  EXPECT_EQ(labels({}, 8), (Labels{0, 7}));
  EXPECT_TRUE(contains(LabelRule({}, 8, images()).notice(), "used as output indices, from 0"));
  EXPECT_EQ(labels({}, 7), (Labels{1, 2})) << "the model has no output 7: they are no numbers of outputs";
  EXPECT_EQ(labels({"a", "b"}, 2), (Labels{0, {}}));
  // Digits, numbered from 1 by dtrain-data.
  EXPECT_EQ(labels({"", "0", "1", "7"}, 4), (Labels{1, 3}));
}

TEST_F(LabelledImages, ALinkHasTheNameThatItHasInTheFolder) {
  const TempDirectory elsewhere;
  write_file(elsewhere / "secret.jpg", "x");
  add("0/a.jpg");
  std::filesystem::create_symlink(elsewhere / "secret.jpg", folder_ / "0/b.jpg");
  ASSERT_EQ(images().size(), 2u);
  EXPECT_EQ(images()[1].name, "0/b.jpg");
}

TEST_F(LabelledImages, HugeFilesAreRefusedWithoutTheirPath) {
  add("0/a.jpg");
  const LabelledImage image = images().at(0);
  EXPECT_EQ(read_image(image, 1), "x");
  std::filesystem::resize_file(image.path, uint64_t{20} << 30);  // sparse
  try {
    read_image(image, 1 << 20);
    FAIL() << "20 GB were read";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::data);
    EXPECT_STREQ(error.what(), "0/a.jpg: 21474836480 bytes, expected at most 1048576");
  }
}

}  // namespace
}  // namespace dtrain::serve
