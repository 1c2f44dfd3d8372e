// dtrain-data shapes: annotated masks match the drawn pixels; errors.
#include <map>
#include <set>

#include "dtrain/data/coco/annotations.h"
#include "dtrain/data/image.h"
#include "tests/apps/dataset_fixture.h"

namespace dtrain {
namespace {

namespace coco = data::coco;

class DatasetShapes : public DatasetProgram {
 protected:
  coco::Annotations annotations(const std::string& set, const std::string& split) const {
    return coco::read_annotations((root / set / "annotations" / ("instances_" + split + ".json")).string());
  }
};

// All files below a folder, with their bytes.
std::map<std::string, std::string> files_below(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files[std::filesystem::relative(entry.path(), folder).string()] = contents(entry.path());
  return files;
}

TEST_F(DatasetShapes, DependOnTheSeedAlone) {
  const std::string flags = "shapes --images 25 --size 64x48 --output ";
  expect(flags + "one --threads 1", 0, "train: 20 images with ");
  ASSERT_EQ(run(flags + "three --threads 3").code, 0);
  ASSERT_EQ(run(flags + "other --seed 1").code, 0);
  const auto one = files_below(root / "one");
  EXPECT_EQ(one.size(), 27u);
  EXPECT_TRUE(one == files_below(root / "three"));
  for (const auto& [name, bytes] : files_below(root / "other")) EXPECT_NE(bytes, one.at(name)) << name;
}

// Without noise, the background and every object except a crowd have one colour each, distinct within an image.
void expect_masks_are_what_was_drawn(const data::ImageView& image, std::span<const coco::Annotation> objects) {
  using Color = std::array<uint8_t, 3>;
  std::vector<size_t> owner(static_cast<size_t>(image.width) * static_cast<size_t>(image.height), objects.size());
  int shared = 0;
  for (size_t i = 0; i < objects.size(); ++i) {
    const std::vector<uint8_t> mask = coco::decode(coco::mask_of(objects[i], image.height, image.width));
    for (size_t at = 0; at < owner.size(); ++at)
      if (mask[at]) {
        shared += owner[at] != objects.size();
        owner[at] = i;
      }
  }
  EXPECT_EQ(shared, 0) << "pixels of several objects";
  std::map<Color, std::set<size_t>> owners;
  std::vector<std::set<Color>> colors(objects.size() + 1);
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) {
      const uint8_t* pixel = image.row(y) + 3 * x;
      const size_t whose = owner[static_cast<size_t>(y * image.width + x)];
      owners[{pixel[0], pixel[1], pixel[2]}].insert(whose);
      colors[whose].insert({pixel[0], pixel[1], pixel[2]});
    }
  for (const auto& [color, all] : owners) EXPECT_EQ(all.size(), 1u) << "a colour of several objects";
  for (size_t i = 0; i < colors.size(); ++i) {
    const bool is_crowd = i < objects.size() && objects[i].is_crowd;
    EXPECT_TRUE(is_crowd || colors[i].size() == 1) << "object " << i << " has " << colors[i].size() << " colours";
  }
}

TEST_F(DatasetShapes, MasksAreThePixelsThatWereDrawn) {
  ASSERT_EQ(run("shapes --images 120 --validation 40 --size 160x120 --noise 0 --format png --seed 2 --output set").code,
            0);
  std::set<int64_t> images, objects;
  std::map<std::string, int> seen;
  for (const std::string split : {"train", "val"}) {
    const coco::Annotations all = annotations("set", split);
    EXPECT_EQ(all.images.size(), split == "train" ? 80u : 40u);
    EXPECT_EQ(all.categories.size(), 5u);
    for (size_t i = 0; i < all.images.size(); ++i) {
      EXPECT_TRUE(images.insert(all.images[i].id).second) << all.images[i].id;
      const std::string bytes = contents(root / "set" / split / all.images[i].file_name);
      data::ImageDecoder decoder;
      decoder.open(std::as_bytes(std::span(bytes)));
      const data::ImageView image = decoder.decode();
      ASSERT_EQ(image.width, 160);
      ASSERT_EQ(image.height, 120);
      SCOPED_TRACE(all.images[i].file_name);
      expect_masks_are_what_was_drawn(image, all.of(i));
      seen["empty images"] += all.of(i).empty();
      for (const coco::Annotation& one : all.of(i)) {
        EXPECT_TRUE(objects.insert(one.id).second) << one.id;
        const coco::Rle mask = coco::mask_of(one, 120, 160);
        EXPECT_EQ(one.box, coco::bounds(mask));
        EXPECT_EQ(one.area, static_cast<double>(coco::area(mask)));
        EXPECT_GT(one.area, 0);
        ++seen[all.categories[one.category].name];
        seen["crowds"] += one.is_crowd;
        ++seen[std::holds_alternative<coco::Rle>(one.segmentation) ? "run lengths" : "polygons"];
      }
    }
  }
  for (const char* what :
       {"circle", "rectangle", "triangle", "star", "ring", "crowds", "run lengths", "polygons", "empty images"})
    EXPECT_GT(seen[what], 0) << what;
}

TEST_F(DatasetShapes, BecomeRecords) {
  ASSERT_EQ(run("shapes --images 10 --size 32x33 --quality 50 --output set").code, 0);
  expect("coco --input set --output records --shards 2", 0, "train: 8 images in 2 shards");
  expect("verify records", 0, "3 files, 10 records, 0 faults, 0 damaged images");
}

TEST_F(DatasetShapes, UsageErrorsNameTheFlag) {
  expect("shapes", 1, "--output is missing; see --help");
  expect("shapes x", 1, "unexpected argument 'x'");
  expect("shapes --output set --images 1", 1, "--images: expected an integer of at least 2, found 1");
  expect("shapes --output set --images 9 --validation 9", 1, "--validation: expected less than --images, 9, found 9");
  for (const char* size : {"320", "320x", "x240", "320x240x3", "31x32", "32x4097", "32 x 32", "-32x32"})
    expect(concat("shapes --output set --size '", size, "'"), 1, "--size: expected ");
  expect("shapes --output set --noise 129", 1, "--noise: expected a number of at most 128");
  expect("shapes --output set --noise nan", 1, "--noise: expected a number");
  expect("shapes --output set --format gif", 1, "--format: expected one of jpeg|png, found 'gif'");
  expect("shapes --output set --quality 0", 1, "--quality: expected an integer of at least 1");
  expect("shapes --output set --seed -1", 1, "--seed: expected an integer of at least 0");
  EXPECT_FALSE(std::filesystem::exists(root / "set"));
}

TEST_F(DatasetShapes, AreWrittenAtomically) {
  const std::string flags = "shapes --images 4 --size 64x48 --output ";
  std::filesystem::create_directory(root / "set");
  ASSERT_EQ(run(flags + "set/").code, 0);
  expect(flags + "set", 1, "set: is there already; choose another name or remove it");
  place_file(root / "file", "x");
  expect(flags + "file", 1, "file: is there already");
  expect(flags + "file/set", 1, "file: is not a directory");
  expect(flags + "/proc/none", 6, "/proc/none");
  const std::vector<std::string> before = listing(root.path());
  expect(flags + "limited --noise 100", 6, "File too large", "trap '' XFSZ; ulimit -f 2;");  // simulates a full disk
  for (const char* signal : {"INT", "TERM"})
    EXPECT_EQ(
        run(flags + "stopped --images 1000000", concat("timeout --foreground --preserve-status -s ", signal, " 1"))
            .code,
        signal == std::string("INT") ? 130 : 143);
  EXPECT_EQ(listing(root.path()), before);
}

}  // namespace
}  // namespace dtrain
