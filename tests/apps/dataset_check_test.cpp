// dtrain-data check: reports every kind of problem in one run.
#include <nlohmann/json.hpp>

#include "dtrain/data/png.h"
#include "tests/apps/dataset_fixture.h"
#include "tests/data/coco_folder.h"
#include "tests/data/exif.h"
#include "tests/data/idx_files.h"
#include "tests/data/tar_files.h"

namespace dtrain {
namespace {

class DatasetCheck : public DatasetProgram {
 protected:
  static std::string half(const std::string& image) { return image.substr(0, image.size() * 2 / 3); }
  const std::string large = text_of(data::encode_jpeg(data::draw_image(3, 10, 64, 1, 2).view()));
};

TEST_F(DatasetCheck, SoundFilesOfEveryKindHaveNoFault) {
  place_file(root / "in/train/a/1.jpg", small_jpeg());
  place_file(root / "in/train/a/2.png", text_of(data::encode_png(data::Image(4, 4).view())));
  place_file(root / "in/labels.txt", "a\n");
  place_file(root / "in/train.tar", tar_of({{"a.tar", tar_of({{"1.jpg", small_jpeg()}})}}));
  place_file(root / "in/digits/train-images-idx3-ubyte", idx_images(10));
  place_file(root / "in/digits/train-labels-idx1-ubyte", idx_labels(10));
  write_records(root / "in/train-00000-of-00001", {image_record(small_jpeg())});
  const data::CocoFolder coco;
  const Outcome outcome = run("check in " + coco.root());
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_TRUE(contains(outcome.out, " images, 1 records, 0 faults\n")) << outcome.out;
}

TEST_F(DatasetCheck, WebDatasetArchives) {
  place_file(root / "in/train-0.tar", tar_of({{"1.jpg", small_jpeg()}, {"1.cls", "0"}, {"1.txt", "a cat"}}));
  place_file(
      root / "in/train-1.tar",
      tar_of({{"2.jpg", half(large)}, {"2.json", R"({"label": 1})"}, {"3.jpg", small_jpeg()}, {"3.cls", "cat"}}));
  const Outcome outcome = run("check in");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.out, "bad sample: 1\n  in/train-1.tar: sample 3: ")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "damaged image: 1\n  in/train-1.tar: 2.jpg")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "2 files, 3 images, 0 records, 2 faults\n")) << outcome.out;
}

TEST_F(DatasetCheck, AllProblemsAreGroupedByKind) {
  for (const char* name : {"1.jpg", "2.jpg", "3.jpg"}) place_file(root / "in/a" / name, half(large));
  place_file(root / "in/a/desktop.ini", "text");
  place_file(root / "in/a/zero.jpg", "");
  place_file(root / "in/b/cut.png", half(text_of(data::encode_png(data::Image(40, 40).view()))));
  place_file(root / "in/labels.csv", "\xff\xfen\1");
  place_file(root / "in/page.tar", "<html>");
  place_file(root / "in/good.tar", tar_of({{"a/4.jpg", half(large)}, {"a/5.jpg", small_jpeg()}}));
  write_records(root / "in/train-00000-of-00002", {image_record(small_jpeg()), image_record(half(large)), "no record"});
  place_file(root / "in/x-labels-idx1-ubyte", "no IDX");
  place_file(root / "in/annotations/instances_a.json", "{");
  const Outcome outcome = run("check in --examples 2 --html page.html");
  EXPECT_EQ(outcome.code, 2);
  for (const char* part :
       {"damaged image: 5\n  in/a/1.jpg: Premature end", "\n  and 3 more\n",
        "file that is no image: 1\n  in/a/desktop.ini", "empty file: 1\n  in/a/zero.jpg",
        "image that cannot be decoded: 1\n  in/b/cut.png: PNG cannot",
        "broken file of labels: 1\n  in/labels.csv: line 1: is text in UTF-16",
        "broken archive: 1\n  in/page.tar: not a tar", "bad record: 1\n  in/train-00000-of-00002: record 2 at byte",
        "incomplete set of shards: 1\n  in: ", "broken IDX file: 1\n  in/x-labels-idx1-ubyte",
        "broken annotations: 1\n  in/annotations/instances_a.json"})
    EXPECT_TRUE(contains(outcome.out, part)) << part << "\n" << outcome.out;
  const std::string page = contents(root / "page.html");
  EXPECT_TRUE(contains(page, "<h2>damaged image: 5</h2>")) << page;
  EXPECT_TRUE(contains(page, "<img alt=\"\" src=\"data:image/jpeg;base64,")) << page;
  const auto json = nlohmann::json::parse(run("check in --json").out);
  EXPECT_EQ(json.at("kinds").at(0).at("kind"), "damaged image");
  EXPECT_EQ(json.at("kinds").at(0).at("count"), 5);
  EXPECT_EQ(json.at("kinds").at(0).at("examples").size(), 5u);
  EXPECT_TRUE(contains(outcome.out, concat(json.at("faults").get<int>(), " faults\n"))) << outcome.out;
}

TEST_F(DatasetCheck, ImagesOfAnnotationsAreLookedFor) {
  const data::CocoFolder coco;
  std::filesystem::remove(coco.folder() + "/im3.png");
  write_file(coco.folder() + "/im4.png", text_of(data::encode_png(data::Image(7, 5).view())));
  const Outcome outcome = run("check " + coco.annotations("train"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.out, "image of annotations that cannot be read: 1\n")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "im4.png: is 7x5 pixels large, ")) << outcome.out;
}

TEST_F(DatasetCheck, FaultyAnnotationsAreProblems) {
  const auto annotations = [&](const std::string& object, const std::string& image = R"("width":16,"height":16)") {
    const char* const box = contains(object, "bbox") ? "" : R"(,"bbox":[1,1,5,5])";
    place_file(root / "set/annotations/instances_train.json",
               concat(R"({"images":[{"id":1,"file_name":"1.jpg",)", image,
                      R"(}],"categories":[{"id":1,"name":"a"}],"annotations":[{"id":7,"image_id":1,"category_id":1,)",
                      R"("area":25,"iscrowd":0)", box, object, "}]}"));
    return run("check set/annotations/instances_train.json");
  };
  place_file(root / "set/train/1.jpg", small_jpeg());
  const Outcome sound = annotations("");
  EXPECT_EQ(sound.code, 0) << sound.out;
  for (const auto& [object, kind] : std::vector<std::pair<const char*, const char*>>{
           {R"(,"bbox":[9,9,-5,-5])", "boxes of negative width or height: 1\n"},
           {R"(,"bbox":[NaN,9,5,5])", "boxes with numbers that are not finite or beyond 1e9: 1\n"},
           {R"(,"segmentation":[[1,1,5,5]])", "polygons of fewer than 3 corners or an odd count of numbers: 1\n"},
           {R"(,"segmentation":[[1,1,5,1,5,5,1]])", "objects of which no polygon remains: 1\n"},
           {R"(,"image_id":99)", "annotations of images that are not listed: 1\n"},
           {R"(,"segmentation":{"size":[2,2],"counts":[4]})",
            "objects with a mask of another size than their image"}}) {
    const Outcome outcome = annotations(object);
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    EXPECT_TRUE(contains(outcome.out, kind)) << kind << "\n" << outcome.out;
    EXPECT_TRUE(contains(outcome.out, "instances_train.json: first: ")) << outcome.out;
  }
  const Outcome unsized = annotations("", R"("width":0,"height":0)");
  EXPECT_TRUE(contains(unsized.out, "images without width and height: 1\n")) << unsized.out;
  const Outcome ignored = annotations(R"(,"ignore":1)");
  EXPECT_EQ(ignored.code, 0) << ignored.out;
  EXPECT_TRUE(contains(ignored.out, "objects with ignore: 1: 1 (no fault)\n")) << ignored.out;
  place_file(root / "set/train/1.jpg", "");
  EXPECT_TRUE(
      contains(annotations("", R"("width":0,"height":0)").out, "image of annotations that cannot be read: 1\n"));
}

// Annotations refer to the stored image or, as in training, to the EXIF-rotated image.
TEST_F(DatasetCheck, AnnotationsMayBeForTheUprightImage) {
  const data::CocoFolder coco;
  const auto jpeg = with_orientation(data::encode_jpeg(data::noise(40, 30, 1).view()), 6);
  write_file(coco.folder() + "/im4.png", text_of(jpeg));  // 30x40 by the annotations
  expect("check " + coco.annotations("train"), 0, "0 faults");
}

TEST_F(DatasetCheck, AnnotationsAndLabelsMayLieAmongTheImages) {
  place_file(root / "in/1.jpg", small_jpeg());
  place_file(root / "in/labels.txt", "a\n");
  place_file(root / "in/_annotations.coco.json",
             R"({"images":[{"id":1,"file_name":"1.jpg","width":9,"height":16}],"categories":[],"annotations":[]})");
  const Outcome outcome = run("check in");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.out, "in/1.jpg: is 16x16 pixels large, in/_annotations.coco.json has it as 9x16"))
      << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "1 faults\n")) << outcome.out;
}

TEST_F(DatasetCheck, LinkCyclesHideNothing) {
  place_file(root / "in/a/1.jpg", "");
  std::filesystem::create_symlink("..", root / "in/a/round");
  Outcome outcome = run("check in");
  EXPECT_TRUE(contains(outcome.out, "folder that cannot be listed: 1\n  in/a/round: is a link to ")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "empty file: 1\n  in/a/1.jpg")) << outcome.out;
  // The last of these folders is reachable by a million paths.
  for (int i = 0; i < 20; ++i) {
    std::filesystem::create_directories(root / concat("wide/", i));
    for (const char* name : {"x", "y"})
      std::filesystem::create_directory_symlink(concat("../", i + 1), root / concat("wide/", i) / name);
  }
  place_file(root / "wide/20/1.jpg", "");
  outcome = run("check wide --examples 10000");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.out, "as 64 other links do; remove some")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "  wide/20/1.jpg: ")) << outcome.out;
}

TEST_F(DatasetCheck, MissingPathIsAProblem) {
  expect("check none", 2, "file that cannot be read: 1\n  none: open none: No such file");
  expect("check", 1, "no folder or file given");
}

}  // namespace
}  // namespace dtrain
