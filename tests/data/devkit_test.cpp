// ImageNet's development kit and the MAT-file in it: MATLAB's forms of numbers and texts, and damage.
#include "data/devkit.h"

#include <algorithm>
#include <array>

#include "data/label_file.h"
#include "data/mat_file.h"
#include "tests/data/mat_files.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

using std::string_literals::operator""s;

const std::array<std::string, 2> kFields = {"id", "name"};

std::vector<std::vector<MatValue>> structs(const std::string& bytes) {
  return read_mat_structs(bytes, "a.mat", "s", kFields);
}

void refuses_mat(const std::string& bytes, const std::string& message) {
  expect_error([&] { structs(bytes); }, Fault::data, "a.mat: " + message);
}

std::string two_structs(const std::string& second = mat_number(300)) {
  return mat_structs("s", {"name", "other", "id"},
                     {mat_text("n01"), mat_number(1), mat_number(7), mat_text("ab"), mat_number(2), second});
}

TEST(MatFile, ReadsTheFieldsOfStructs) {
  const std::string other = mat_array(6, 1, 1, "x", mat_element(9, bytes_of_number(1.0)));
  for (const std::string& bytes :
       {mat_file(two_structs()), mat_file(other + mat_compressed(two_structs())),
        mat_file(mat_compressed(other) + mat_compressed(two_structs()) + mat_compressed(other))}) {
    const auto found = structs(bytes);
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0][0].numbers, std::vector<double>{7});
    EXPECT_EQ(found[0][1].text, "n01");
    EXPECT_EQ(found[1][0].numbers, std::vector<double>{300});
    EXPECT_EQ(found[1][1].text, "ab");
  }
}

TEST(MatFile, ReadsAllTypesOfNumbers) {
  const auto value = [](uint32_t type, const std::string& data) {
    return structs(mat_file(two_structs(mat_array(6, 1, 1, "", mat_element(type, data)))))[1][0].numbers;
  };
  EXPECT_EQ(value(1, bytes_of_number(int8_t{-3})), std::vector<double>{-3});
  EXPECT_EQ(value(3, bytes_of_number(int16_t{-300})), std::vector<double>{-300});
  EXPECT_EQ(value(4, bytes_of_number(uint16_t{60'000})), std::vector<double>{60'000});
  EXPECT_EQ(value(5, bytes_of_number(int32_t{-70'000})), std::vector<double>{-70'000});
  EXPECT_EQ(value(6, bytes_of_number(uint32_t{4'000'000'000})), std::vector<double>{4e9});
  EXPECT_EQ(value(7, bytes_of_number(1.5f)), std::vector<double>{1.5});
  EXPECT_EQ(value(12, bytes_of_number(int64_t{-5})), std::vector<double>{-5});
  EXPECT_EQ(value(13, bytes_of_number(uint64_t{5})), std::vector<double>{5});
  const std::string negative = mat_array(4, 1, 2, "", mat_element(3, bytes_of_number(int16_t{-65}) + "a\0"s));
  EXPECT_EQ(structs(mat_file(mat_structs("s", {"id", "name"}, {mat_number(1), negative})))[0][1].text, "?a");
  EXPECT_TRUE(structs(mat_file(two_structs(mat_element(14, ""))))[1][0].numbers.empty()) << "an empty array";
  EXPECT_TRUE(structs(mat_file(two_structs(mat_array(1, 1, 1, "", mat_number(1)))))[1][0].numbers.empty()) << "a cell";
}

TEST(MatFile, RefusesOtherFormats) {
  refuses_mat("MATLAB 7.3 MAT-file" + std::string(500, ' '), "a MAT-file of version 7.3, which is HDF5; expected");
  refuses_mat(mat_file(two_structs(), "MI"), "a big-endian MAT-file; expected");
  refuses_mat(std::string(20, '\0'), "no MAT-file of version 5");
  refuses_mat(mat_file(""), "has no variable s");
  refuses_mat(mat_file(mat_structs("t", {"id"}, {mat_number(1)})), "has no variable s");
  refuses_mat(mat_file(mat_structs("s", {"id"}, {mat_number(1)})), "the struct array s has no field name");
  refuses_mat(mat_file(mat_array(6, 1, 1, "s", mat_element(9, bytes_of_number(1.0)))),
              "the variable s is no struct array");
}

TEST(MatFile, RefusesDamage) {
  const std::string good = mat_file(two_structs()), packed = mat_file(mat_compressed(two_structs()));
  for (size_t size = 129; size < good.size(); ++size) refuses_mat(good.substr(0, size), "damaged or truncated: ");
  for (size_t size = 129; size < packed.size(); ++size) refuses_mat(packed.substr(0, size), "damaged or truncated: ");
  std::string flipped = packed;
  flipped[flipped.size() - 1] ^= 1;
  refuses_mat(flipped, "damaged or truncated: a compressed variable cannot be decompressed");
  refuses_mat(mat_file(mat_compressed(std::string(size_t{17} << 20, '\0'))), "unpacks to more than 16 MiB");
  const uint32_t most = UINT32_MAX;
  refuses_mat(mat_file(mat_array(2, most, most, "s", "")), "damaged or truncated: the dimensions of an array");
  refuses_mat(
      mat_file(mat_array(2, most, 1, "s",
                         mat_element(5, bytes_of_number(uint32_t{4})) + mat_element(1, std::string("id\0\0name", 8)))),
      "damaged or truncated: it has fewer structs than it states");
}

class Devkit : public testing::Test {
 protected:
  std::string path() const { return (folder / "kit.tar.gz").string(); }
  std::vector<std::string> labels(const std::string& bytes) const {
    write_file(path(), bytes);
    return devkit_labels(path());
  }
  void refuses(const std::string& bytes, const std::string& message) const {
    expect_error([&] { labels(bytes); }, Fault::data, path() + ": " + message);
  }

  TempDirectory folder;
};

TEST_F(Devkit, LabelsFollowTheOrderOfIds) {
  SyntheticDevkit kit;
  EXPECT_EQ(labels(kit.archive()), kit.labels());
  kit.compressed = false;
  EXPECT_EQ(labels(kit.archive()), kit.labels());
  kit.truth.pop_back();  // no line feed at the end
  EXPECT_EQ(labels(kit.archive()), kit.labels());
}

TEST_F(Devkit, LabelsImagesInTheirOrder) {
  const SyntheticDevkit kit;
  write_file(path(), kit.archive());
  const std::vector<std::string> labels = kit.labels();
  std::vector<std::string> classes = labels;
  std::ranges::sort(classes);
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  std::vector<TreeImage> images(labels.size());
  for (size_t i = 0; i < images.size(); ++i) images[i].filename = fmt::format("ILSVRC2012_val_{:08}.JPEG", i + 1);
  label_by_lines(images, classes, 1, path(), "val.tar");
  for (size_t i = 0; i < images.size(); i += 997) {
    EXPECT_EQ(images[i].synset, labels[i]);
    EXPECT_EQ(classes[static_cast<size_t>(images[i].label - 1)], labels[i]);
  }
  images.pop_back();
  expect_error([&] { label_by_lines(images, classes, 1, path(), "val.tar"); }, Fault::data,
               path() + ": 50000 lines, expected one for each of the 49999 images in val.tar");
}

TEST_F(Devkit, RefusesOtherFiles) {
  const SyntheticDevkit kit;
  const std::string archive = kit.archive();
  refuses("text", "not compressed by gzip; expected ImageNet's development kit, ILSVRC2012_devkit_t12.tar.gz");
  refuses("<!DOCTYPE html><html>", "is an HTML page");
  refuses(gzip_of("text"), "member at byte 0: the archive ends before its end mark");
  refuses(gzip_of(tar_of({{"a", "b"}})), "has no data/meta.mat; expected ILSVRC2012_devkit_t12.tar.gz");
  refuses(archive.substr(0, archive.size() / 2), "truncated gzip stream; download the development kit again");
  std::string flipped = archive;
  flipped[archive.size() / 2] ^= 1;
  expect_error([&] { labels(flipped); }, Fault::data, path() + ": ");
  refuses(gzip_of(std::string(size_t{65} << 20, '\0')), "unpacks to more than 64 MiB");
  SyntheticDevkit other;
  other.meta_name = "data/other.mat";
  refuses(other.archive(), "has no data/meta.mat");
}

TEST_F(Devkit, RefusesContradictions) {
  const std::string meta = "ILSVRC2012_devkit_t12/data/meta.mat: ",
                    truth = "ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt: ";
  const auto refuses_meta = [&](size_t i, double id, const std::string& name, const std::string& message) {
    SyntheticDevkit kit;
    kit.synsets[i] = {id, name};
    refuses(kit.archive(), meta + message);
  };
  const auto refuses_truth = [&](const std::string& from, const std::string& to, const std::string& message) {
    SyntheticDevkit kit;
    kit.truth.replace(kit.truth.find(from), from.size(), to);
    refuses(kit.archive(), truth + message);
  };
  refuses_meta(9, 1, "n00000001", "two synsets with ILSVRC2012_ID 1");
  refuses_meta(9, 1.5, "n00000001", "a synset without a whole number as ILSVRC2012_ID");
  refuses_meta(9, 1e300, "n00000001", "a synset without a whole number as ILSVRC2012_ID");
  refuses_meta(9, 993, "tench", "synset 993: its WNID is 'tench'; expected one such as n01440764");
  refuses_meta(9, 993, SyntheticDevkit::wordnet_id(1), "two classes with WNID n00007919");
  refuses_meta(9, 1009, "n00000001", "no synset with ILSVRC2012_ID 993; expected 1 to 1000");
  refuses(SyntheticDevkit().archive("x"), meta + "no MAT-file of version 5");

  refuses_truth("1\n38\n", "1\nx\n", "line 2: 'x'; expected a class from 1 to 1000");
  refuses_truth("1\n38\n", "1\n1001\n", "line 2: '1001'; expected a class from 1 to 1000");
  refuses_truth("1\n38\n", "1\n\n", "line 2: ''; expected a class from 1 to 1000");
  refuses_truth("1\n38\n", "1\n", "49999 lines; expected one for each of the 50000 validation images");
  refuses_truth("1\n38\n", "1\n1\n", "51 images of class 1; expected 50 of each class");
}

}  // namespace
}  // namespace dtrain::data
