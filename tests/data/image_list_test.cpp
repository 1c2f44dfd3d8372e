// Lists of images: columns, labels, classes, bad rows and files.
#include "data/image_list.h"

#include <fmt/ranges.h>

#include "dtrain/data/imagenet.h"
#include "tests/data/image_folder_fixture.h"

namespace dtrain::data {
namespace {

class ImageListTest : public ImageFolderFixture {
 protected:
  ImageListTest() {
    for (const char* name : {"a.jpg", "b.jpg", "sub/c.jpg"}) place(name, numbered_jpeg(1));
  }
  std::unique_ptr<const ImageSource> open_list(bool multi_label = false, bool training = true) {
    notices.clear();
    return open_image_list({root.path().string(),
                            training,
                            multi_label,
                            {.directory = (cache / "c").string()},
                            [&](const std::string& line) { notices.push_back(line); }});
  }
  // "NAME LABEL,LABEL" of each image, then "! FAULT" without the folder.
  Lines read(const std::string& text, bool multi_label = false, bool training = true) {
    place(training ? "train.csv" : "val.csv", text);
    const auto source = open_list(multi_label, training);
    Lines lines;
    const std::string folder = root.path().string() + "/";
    const auto short_name = [&](std::string name) {
      for (size_t at; (at = name.find(folder)) != std::string::npos;) name.erase(at, folder.size());
      return name;
    };
    for (uint64_t i = 0; i < source->size(); ++i)
      lines.push_back(fmt::format("{} {}", short_name(source->locate(i).file), fmt::join(source->labels(i), ",")));
    for (const std::string& fault : source->faults()) lines.push_back("! " + short_name(fault));
    return lines;
  }
  Lines names() const { return labels_of_lists(root.path().string()).names; }
  void refuses_list(const std::string& text, const std::string& part, bool multi_label = false) {
    place("train.csv", text);
    expect_error([&] { open_list(multi_label); }, Fault::data, part);
  }
};

TEST_F(ImageListTest, NamesAreSortedAndNumbersStay) {
  EXPECT_EQ(read("b.jpg,dog\na.jpg,cat\nsub/c.jpg,dog\n"), (Lines{"b.jpg 1", "a.jpg 0", "sub/c.jpg 1"}));
  EXPECT_EQ(names(), (Lines{"cat", "dog"}));
  EXPECT_EQ(read("b.jpg,10\na.jpg,9\n"), (Lines{"b.jpg 10", "a.jpg 9"}));
  EXPECT_EQ(names(), Lines{});
  EXPECT_EQ(labels_of_lists(root.path().string()).count, 11);
  EXPECT_EQ(read("b.jpg,10\na.jpg,x\n"), (Lines{"b.jpg 0", "a.jpg 1"}));
  EXPECT_EQ(
      read((root / "b.jpg").string() + ", dog \n../" + root.path().filename().string() + "/a.jpg,\" dog \"\n").size(),
      2u);
  EXPECT_EQ(names(), (Lines{" dog ", "dog"}));
  refuses_list("a.jpg,20240101\n", "train.csv: label 20240101, expected at most 1048576");
}

TEST_F(ImageListTest, HeaderSelectsColumns) {
  EXPECT_EQ(read("path,label\na.jpg,x\n"), Lines{"a.jpg 0"});
  EXPECT_TRUE(contains(notices.at(0), "train.csv: header row in line 1: paths in column path, labels in label"));
  EXPECT_EQ(read("\xef\xbb\xbfid,width,filename,Label\r\n7,40,a.jpg,x\r\n8,40,b.jpg,y\r\n"),
            (Lines{"a.jpg 0", "b.jpg 1"}));
  EXPECT_TRUE(contains(notices.at(0), "paths in column filename, labels in Label; left out the columns id, width"));
  EXPECT_EQ(read(",image,label\n0,a.jpg,x\n"), Lines{"a.jpg 0"}) << "an index column of pandas";
  EXPECT_EQ(read("image,label_1,label_2\na.jpg,x,\nb.jpg,y,x\n", true), (Lines{"a.jpg 0", "b.jpg 0,1"}));
  EXPECT_EQ(read("path,label\na.jpg,x,y\nb.jpg\n", true), (Lines{"a.jpg 0,1", "b.jpg "}));
  EXPECT_EQ(read("path,label,split\na.jpg,x,train,y\nb.jpg,x,train\n"),
            (Lines{"b.jpg 0", "! train.csv:2: 4 fields; the header has 3"}));
}

TEST_F(ImageListTest, ColumnsOfZeroAndOne) {
  EXPECT_EQ(read("path,zebra,cat,dog\na.jpg,0,1,1\nb.jpg,0,0,0\nsub/c.jpg,1.0,0,0\n", true),
            (Lines{"a.jpg 0,1", "b.jpg ", "sub/c.jpg 2"}));
  EXPECT_EQ(names(), (Lines{"cat", "dog", "zebra"}));
  EXPECT_TRUE(contains(notices.at(0), "labels in zebra, cat, dog (0 or 1 in each row)")) << notices.at(0);
  EXPECT_TRUE(contains(notices.at(1), "train.csv: 3 images with 3 labels of 3 classes")) << notices.at(1);
  for (const char* row : {"a.jpg,0,-1\n", "a.jpg,1,\n", "a.jpg,1\n"})
    refuses_list(std::string("path,a,b\nb.jpg,0,1\n") + row, "columns without 0 or 1 in some row", true);
  EXPECT_EQ(read("path,label_1,label_2\na.jpg,1,0\nb.jpg,1\n", true), (Lines{"a.jpg 0,1", "b.jpg 1"}));
  refuses_list("path,a,a\na.jpg,0,1\n", "columns of 0 and 1 need different names in the header", true);
}

TEST_F(ImageListTest, ClassesFileGivesNamesOrNumbers) {
  place("classes.txt", "1 tench\n3 great shark\n");
  EXPECT_EQ(read("a.jpg,tench\nb.jpg,3\nsub/c.jpg,2\na.jpg,whale\n"),
            (Lines{"a.jpg 1", "b.jpg 3", "! train.csv:3: label '2' is not in classes.txt",
                   "! train.csv:4: label 'whale' is not in classes.txt"}));
  EXPECT_EQ(names(), (Lines{"", "tench", "", "great shark"}));
  EXPECT_EQ(read("a.jpg,3,great shark\n"), Lines{"a.jpg 3"});
}

TEST_F(ImageListTest, ValidationHasTheClassesOfTraining) {
  place("train.csv", "a.jpg,cat\nb.jpg,dog\n");
  EXPECT_EQ(read("sub/c.jpg,dog\na.jpg,cow\n", false, false),
            (Lines{"sub/c.jpg 1", "! val.csv:2: label 'cow' is not one of the 2 classes of train.csv"}));
  place("train.csv", "a.jpg,0\nb.jpg,1\n");
  EXPECT_EQ(read("sub/c.jpg,4\na.jpg,0\n", false, false), (Lines{"sub/c.jpg 4", "a.jpg 0"}));
  EXPECT_EQ(labels_of_lists(root.path().string()).count, 5);
}

TEST_F(ImageListTest, BadRowsAndFilesAreFaults) {
  place("empty.jpg", "");
  place("text.bin", "text");
  std::filesystem::create_directory(root / "folder.jpg");
  const Lines lines = read(
      "a.jpg,x\nmissing.jpg,x\n\"b.jpg\" ,x\n,x\nhttps://host/b.jpg,x\nb.jpg\nempty.jpg,x\ntext.bin,x\nfolder.jpg,x\n"
      "sub/c.jpg,\"x\ny\"\na.jpg,x\na.jpg,z\n");
  EXPECT_EQ(lines.at(0), "a.jpg 0");
  EXPECT_EQ(lines.at(1), "a.jpg 0");
  const Lines expected = {
      "train.csv:3: text after a closing quote (field 1)",
      "train.csv:4: no path",
      "train.csv:5: the path is a URL; lists name local files",
      "train.csv:10: a label with a line break or control character",
      "train.csv:2: stat missing.jpg: No such file or directory",
      "train.csv:6: no label",
      "train.csv:7: empty.jpg: ",
      "train.csv:8: text.bin: is not a JPEG, PNG, WebP, GIF, BMP or TIFF image",
      "train.csv:9: folder.jpg: is not a regular file",
      "train.csv:13: a.jpg has other labels in line 1; put all its labels into one row",
  };
  ASSERT_EQ(lines.size(), 2 + expected.size()) << fmt::format("{}", fmt::join(lines, "\n"));
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(lines[2 + i].starts_with("! " + expected[i])) << lines[2 + i] << " instead of " << expected[i];
  EXPECT_TRUE(contains(notices.back(), "train.csv: 1 images are listed again with the same labels"));
}

TEST_F(ImageListTest, RefusesOtherTexts) {
  refuses_list("a.jpg,x\nb.jpg,x,y\n", "train.csv:2: 2 labels, expected one; train with --loss=bce for several");
  refuses_list(
      "\xff\xfe"
      "a",
      "train.csv: is UTF-16 text; save it as UTF-8");
  refuses_list("path,label\n", "train.csv: no images in it");
  std::string many;
  for (int i = 0; i < 100'002; ++i) many += ",\n";
  refuses_list(many, "100000 rows before it are malformed, too: this is no list of images");
  place("train.tsv", "a.jpg\tx\n");
  refuses_list("a.jpg,x\n", ": two lists of one split, ");
}

TEST_F(ImageListTest, FindsListsBelowOtherData) {
  const std::string folder = root.path().string();
  EXPECT_FALSE(has_image_lists(folder));
  place("Valid.TSV", "a.jpg\tx,y\n");
  place("notes.csv", "x");
  EXPECT_TRUE(has_image_lists(folder));
  EXPECT_EQ(find_image_list(folder, true), "");
  EXPECT_EQ(find_image_list(folder, false), folder + "/Valid.TSV");
  EXPECT_EQ(open_list(false, false)->size(), 1u);
  EXPECT_EQ(names(), (Lines{"x,y"}));
  expect_error([&] { open_list(); }, Fault::data, ": no list train.csv or train.tsv");
  EXPECT_TRUE(has_list_of_one_split(folder + "/Valid.TSV"));
  EXPECT_EQ(find_image_list(folder + "/Valid.TSV", true), folder + "/Valid.TSV");
  place("train/x/a.jpg", numbered_jpeg(1));
  EXPECT_FALSE(has_image_lists(folder));
}

TEST_F(ImageListTest, IdentityCoversOrderAndLabels) {
  read("a.jpg,x\nb.jpg,y\n");
  const std::string identity = open_list()->identity(), contents = open_list()->contents();
  EXPECT_TRUE(contains(identity, "list of images: 2 images, 2 classes")) << identity;
  for (const char* other : {"b.jpg,y\na.jpg,x\n", "a.jpg,y\nb.jpg,x\n", "a.jpg,x\nb.jpg,y\nb.jpg,y\n"}) {
    read(other);
    EXPECT_NE(open_list()->identity(), identity) << other;
  }
  read("a.jpg,x\nb.jpg,y\n");
  EXPECT_EQ(open_list()->contents(), contents);
  EXPECT_TRUE(std::filesystem::exists(root / ".train.csv.dtidx"));
}

TEST_F(ImageListTest, MultiLabelRowsHaveTargets) {
  place("train.csv", "a.jpg,x,z\nb.jpg\n");
  PreprocessorFactory preprocessors{.shape = {8, 8, 3}, .dtype = DType::u8, .make = [] {
                                      struct Nothing final : Preprocessor {
                                        SampleNotes run(std::span<const std::byte>, std::span<const NormalizedBox>,
                                                        const SampleKey&, void*) override {
                                          return {};
                                        }
                                      };
                                      return std::make_unique<Nothing>();
                                    }};
  const ImageSourceDataset dataset(open_list(true), 3, 1, {}, preprocessors, true);
  EXPECT_EQ(dataset.layout(), multi_labelled_images({8, 8, 3}, DType::u8, 3));
  const Batch batch = make_batch(dataset.layout(), 3);
  const auto reader = dataset.reader();
  reader->read(0, {}, Row(batch, 0));
  reader->read(1, {}, Row(batch, 1));
  Row(batch, 2).pad();
  const float* const targets = batch["targets"].data<float>();
  EXPECT_EQ(std::vector<float>(targets, targets + 9), (std::vector<float>{0, 1, 1, 0, 0, 0, 0, 0, 0}));
  const float* const weights = batch["row_weights"].data<float>();
  EXPECT_EQ(std::vector<float>(weights, weights + 3), (std::vector<float>{1, 1, 0}));
}

}  // namespace
}  // namespace dtrain::data
