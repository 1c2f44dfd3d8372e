// Text of "instances" files: encodings, Python's constants, damage.
#include "dtrain/data/coco/annotations.h"
#include "tests/data/coco/small_set.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::data::coco {
namespace {

TEST(AnnotationsText, RejectsInvalidJson) {
  const auto refused = [](const std::string& text, const std::string& part) {
    expect_error([&] { parse_annotations(text, "set.json"); }, Fault::data, "set.json: " + part);
  };
  refused("", "invalid JSON or UTF-8 at byte");
  refused("{\"images\": [", "invalid JSON or UTF-8 at byte");
  refused("{} {}", "invalid JSON or UTF-8 at byte");
  refused("{\"images\": [{\"id\": NaN}]}", "image at index 0: id is null, expected a whole number or a string");
  refused("{\"x\": [NaN, -Infinity, Infinity x", "invalid JSON or UTF-8 at byte 33");
  refused("{\"x\": [-Infinity x NaN", "invalid JSON or UTF-8 at byte 18");
  refused("{\"x\": NaNs", "invalid JSON or UTF-8 at byte");
  refused(std::string("\xff\xfe{\0", 4), "text in UTF-16, expected UTF-8: convert it by iconv -f UTF-16 -t UTF-8");
  refused(std::string("{\0\"\0", 4), "text in UTF-16");
  refused("\x1f\x8b\x08", "compressed by gzip, expected JSON: unpack it by gunzip");
  refused("{\"images\": [{\"id\": 1e999}]}", "a number that is too large at byte");
  refused("{\"images\": [], \"images\": []}", "duplicate list 'images'");
  refused("{\"images\": [], \"annotations\": []}", "no list 'categories'");
  refused("[]", "a list, expected an object that holds lists");
  refused("5", "a single value, expected");
  refused(std::string(100000, '['), "a list, expected an object");
  refused("{\"info\": " + std::string(100000, '['), "JSON nested more than 64 deep");
  const std::string whole = kSmallSet.dump();
  for (size_t size = 0; size < whole.size(); size += 7)
    expect_error([&] { parse_annotations(whole.substr(0, size), "set.json"); }, Fault::data, "set.json: ");
}

TEST(AnnotationsText, AcceptsPythonConstants) {
  const std::string text = R"({"images": [{"id": 1, "file_name": "NaN\\\"-Infinity", "width": 9, "height": 9}],
      "categories": [{"id": 1, "name": "a"}],
      "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [NaN, 2, 3, 4]},
                      {"id": 2, "image_id": 1, "category_id": 1, "bbox": [1, 2, Infinity, 4]},
                      {"id": 3, "image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "x": -Infinity, "y": -5}]})";
  for (const std::string& begin : {std::string(), std::string("\xef\xbb\xbf")}) {
    const Annotations all = parse_annotations(begin + text, "set.json");
    EXPECT_EQ(all.images[0].file_name, "NaN/\"-Infinity");
    ASSERT_EQ(all.annotations.size(), 1u);
    EXPECT_EQ(all.findings.count("boxes with numbers that are not finite or beyond 1e9"), 2u);
    EXPECT_EQ(all.findings.count("numbers NaN or Infinity, which are invalid JSON"), 3u);
  }
}

TEST(AnnotationsText, DamagedTextIsReadOrRejected) {
  const std::string whole = kSmallSet.dump();
  int read = 0, refused = 0;
  for (size_t at = 0; at < whole.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      try {
        parse_annotations(damaged, "set.json");
        ++read;
      } catch (const Error& error) {
        EXPECT_EQ(error.fault(), Fault::data) << error.what();
        EXPECT_TRUE(std::string(error.what()).starts_with("set.json: ")) << error.what();
        ++refused;
      }
    }
  EXPECT_GT(read, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(AnnotationsText, LastDuplicateKeyWins) {
  const Annotations all = parse_annotations(
      R"({"images": [{"id": 1, "file_name": "a", "width": 9, "height": 9, "id": 2}],
          "categories": [{"id": 1, "name": "a"}],
          "annotations": [{"id": 1, "image_id": 2, "category_id": 1, "bbox": [1, 2, 3, 4], "bbox": [5, 6, 7, 8],
                           "segmentation": [[1, 2, 3, 4, 5, 6]], "segmentation": [[6, 5, 4, 3, 2, 1]]}]})",
      "set.json");
  EXPECT_EQ(all.images[0].id, 2);
  EXPECT_EQ(all.annotations[0].box, (BoundingBox{5, 6, 7, 8}));
  EXPECT_EQ(std::get<Polygons>(all.annotations[0].segmentation), (Polygons{{6, 5, 4, 3, 2, 1}}));
}

TEST(AnnotationsText, StopsOnRequest) {
  const TempDirectory folder;
  const std::string path = folder / "set.json";
  write_file(path, std::string(5'000'000, ' ') + kSmallSet.dump());
  static int pieces;
  pieces = 0;
  expect_error([&] { read_annotations(path, {.stop = [] { return ++pieces == 3; }}); }, Fault::resource,
               path + ": reading was stopped");
  EXPECT_EQ(pieces, 3);
  EXPECT_EQ(read_annotations(path, {.stop = [] { return false; }}).images.size(), kSmallSet["images"].size());
}

TEST(AnnotationsText, ReadsFilesInChunks) {
  const TempDirectory directory;
  Json json = kSmallSet;
  const std::string padding(3'000'000, 'x');  // several chunks
  json["info"]["description"] = padding;
  json["zz"] = padding;
  write_file(directory / "set.json", json.dump());
  const Annotations all = read_annotations(directory / "set.json");
  EXPECT_EQ(all.annotations.size(), 4u);
  expect_error([&] { read_annotations(directory / "none.json"); }, Fault::data, "none.json");
}

}  // namespace
}  // namespace dtrain::data::coco
