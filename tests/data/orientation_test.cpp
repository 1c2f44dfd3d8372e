// EXIF orientation: parsing, and rotation of images and windows.
#include "data/orientation.h"

#include "data/shrink.h"
#include "data/whole_image.h"
#include "dtrain/data/cifar10.h"
#include "dtrain/data/detection.h"
#include "dtrain/data/jpeg.h"
#include "tests/data/coco_folder.h"
#include "tests/data/detection_sample.h"
#include "tests/data/exif.h"
#include "tests/jpegs.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

Image copied(const ImageView& view) {
  Image image(view.width, view.height);
  for (int y = 0; y < view.height; ++y)
    std::copy_n(view.row(y), 3 * view.width, image.pixels.begin() + 3 * y * view.width);
  return image;
}

// Stored position of the upright pixel (x, y), by the EXIF standard's definition of the first row and column.
std::array<int, 2> stored_at(int orientation, int x, int y, int width, int height) {
  switch (orientation) {
    case 2:
      return {width - 1 - x, y};  // top, right
    case 3:
      return {width - 1 - x, height - 1 - y};  // bottom, right
    case 4:
      return {x, height - 1 - y};  // bottom, left
    case 5:
      return {y, x};  // left, top
    case 6:
      return {y, height - 1 - x};  // right, top
    case 7:
      return {width - 1 - y, height - 1 - x};  // right, bottom
    case 8:
      return {width - 1 - y, x};  // left, bottom
    default:
      return {x, y};
  }
}

TEST(Orientation, RotatesImagesAndWindows) {
  const std::vector<std::byte> plain = smooth_jpeg(40, 24, 1, {.sampling = Sampling::s420});
  ImageDecoder stored, upright({.orientation = Orientation::apply});
  stored.open(plain);
  const Image expected = copied(stored.decode());
  for (int orientation = 1; orientation <= 8; ++orientation) {
    SCOPED_TRACE(orientation);
    const std::vector<std::byte> tagged = with_orientation(plain, orientation, orientation % 2 == 0);
    EXPECT_EQ(stored.open(tagged).width, 40) << "turned without having been asked for";
    const ImageInfo info = upright.open(tagged);
    ASSERT_EQ(info.orientation, orientation);
    ASSERT_EQ(info.width, orientation < 5 ? 40 : 24);
    ASSERT_EQ(info.height, orientation < 5 ? 24 : 40);
    const Image all = copied(upright.decode());
    for (int y = 0; y < info.height; ++y)
      for (int x = 0; x < info.width; ++x) {
        const auto [sx, sy] = stored_at(orientation, x, y, 40, 24);
        ASSERT_EQ(all.view().row(y)[3 * x + 1], expected.view().row(sy)[3 * sx + 1]) << x << " " << y;
      }
    const Window window{5, 3, 11, 14};
    upright.open(tagged);
    const Image part = copied(upright.decode(window));
    for (int y = 0; y < window.height; ++y)
      ASSERT_TRUE(std::equal(part.view().row(y), part.view().row(y) + 3 * window.width,
                             all.view().row(y + window.y) + 3 * window.x))
          << y;
  }
}

TEST(Orientation, DamagedExifIsIgnored) {
  const std::vector<std::byte> tagged = with_orientation(smooth_jpeg(16, 8, 1, {}), 6);
  EXPECT_EQ(exif_orientation(tagged), 6);
  for (size_t size = 0; size < 38; ++size) EXPECT_EQ(exif_orientation(std::span(tagged).first(size)), 1) << size;
  for (const auto& [at, value] :
       {std::pair{12, 'X'}, {14, 43}, {16, 0xff}, {20, 0}, {24, 4}, {26, 2}, {30, 9}, {30, 0}}) {
    std::vector<std::byte> damaged = tagged;
    damaged[static_cast<size_t>(at)] = static_cast<std::byte>(value);
    EXPECT_EQ(exif_orientation(damaged), 1) << at;
  }
}

TEST(Orientation, ExcludesHardwareDecoding) {
  ImageDecoder decoder({.orientation = Orientation::apply});
  const std::vector<std::byte> plain = smooth_jpeg(16, 8, 1, {});
  decoder.open(plain);
  EXPECT_TRUE(decoder.suits_hardware());
  decoder.open(with_orientation(plain, 3));
  EXPECT_FALSE(decoder.suits_hardware());
}

TEST(Orientation, IsReportedByPreprocessing) {
  const std::vector<std::byte> plain = smooth_jpeg(40, 24, 1, {}), tagged = with_orientation(plain, 6);
  std::vector<float> pixels(3 * 16 * 16);
  for (const Orientation orientation : {Orientation::ignore, Orientation::apply}) {
    const bool turns = orientation == Orientation::apply;
    for (const PreprocessorFactory& make :
         {make_preprocess({.height = 16, .width = 16, .orientation = orientation}),
          make_cifar_preprocess({true, 16, 16, orientation}), make_whole_image_preprocess(16, 16, orientation)}) {
      const auto preprocessor = make();
      const SampleNotes of_plain = preprocessor->run(plain, {}, {}, pixels.data());
      EXPECT_FALSE(of_plain.oriented || of_plain.turned);
      const SampleNotes of_tagged = preprocessor->run(tagged, {}, {}, pixels.data());
      EXPECT_TRUE(of_tagged.oriented);
      EXPECT_EQ(of_tagged.turned, turns);
    }
  }
  EncodedImage image(std::make_shared<HostAllocator>());
  const auto preprocessor = make_preprocess({.preset = Preset::torchvision, .height = 16, .width = 16})();
  EXPECT_TRUE(preprocessor->defer(tagged, {}, {}, image).value().oriented);
  EXPECT_FALSE(preprocessor->defer(plain, {}, {}, image).value().oriented);
}

TEST(Orientation, AppliesToShrunkImagesOnRequest) {
  const std::vector<std::byte> tagged = with_orientation(smooth_jpeg(40, 24, 1, {}), 6);
  const ShrunkImage upright = shrink_image(tagged, {.size = 100, .orientation = Orientation::apply});
  EXPECT_EQ(upright.width, 24);
  EXPECT_EQ(exif_orientation(upright.jpeg), 1);
  EXPECT_EQ(shrink_image(tagged, {.size = 100}).width, 40);
}

// Image 4 of the annotations has 30x40 pixels.
TEST(Orientation, AnnotatedSizeSelectsOrientation) {
  const CocoFolder coco;
  const auto read = [&](int width, int height, Orientation orientation) {
    const std::vector<std::byte> jpeg = with_orientation(smooth_jpeg(width, height, 1, {}), 6);
    write_file(coco.folder() + "/im4.png", {reinterpret_cast<const char*>(jpeg.data()), jpeg.size()});
    DetectionDatasetOptions options = small_canvases();
    options.training = false;
    options.decoding.orientation = orientation;
    const DetectionDataset dataset(open_coco(coco.annotations(), coco.folder()), options);
    for (uint64_t record = 0; record < dataset.size(); ++record)
      if (const SeenSample sample = read_sample(dataset, record); sample.id == 4) {
        const Batch batch = make_batch(dataset.layouts()[dataset.layout_of(record)], 1);
        const SampleNotes notes = dataset.reader()->read(record, {}, {batch, 0});
        EXPECT_TRUE(notes.oriented);
        return concat(sample.originals[1], "x", sample.originals[0], notes.turned ? " turned" : "");
      }
    return std::string();
  };
  EXPECT_EQ(read(40, 30, Orientation::apply), "30x40 turned") << "annotations of the upright image";
  EXPECT_EQ(read(30, 40, Orientation::apply), "30x40") << "annotations of the image as it is stored";
  EXPECT_EQ(read(30, 40, Orientation::ignore), "30x40");
  expect_error([&] { read(40, 30, Orientation::ignore); }, Fault::data, "--exif_orientation=apply turns it");
}

}  // namespace
}  // namespace dtrain::data
