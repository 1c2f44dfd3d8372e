// JPEG damage that loses pixels, and warnings that do not.
#include <vector>

#include "data/synthetic.h"
#include "data/whole_image.h"
#include "dtrain/data/cifar10.h"
#include "dtrain/data/detection.h"
#include "dtrain/data/jpeg.h"
#include "tests/data/coco_folder.h"
#include "tests/data/detection_sample.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

TEST(JpegDamage, IsDistinguishedFromHarmlessWarnings) {
  const std::vector<std::byte> bytes = encode_jpeg(draw_image(1, 10, 120, 3, 4).view());
  ImageDecoder decoder;
  std::vector<std::byte> odd = bytes;
  odd.insert(odd.end() - 2, 20, std::byte{7});
  decoder.open(odd);
  decoder.decode();
  EXPECT_NE(decoder.warning().find("extraneous bytes before marker"), std::string::npos) << decoder.warning();
  EXPECT_EQ(decoder.damage(), "");
  std::vector<std::byte> corrupt = bytes;
  for (size_t i = bytes.size() / 2, end = i + 40; i < end; i += 2) {  // a run of ones is not a code word
    corrupt[i] = std::byte{0xFF};
    corrupt[i + 1] = std::byte{0};
  }
  decoder.open(corrupt);
  decoder.decode();
  EXPECT_EQ(decoder.damage(), "Corrupt JPEG data: bad Huffman code");
  // Truncation is reported for any window, even above the missing rows.
  const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(bytes.size() * 9 / 10));
  decoder.open(cut);
  decoder.decode({0, 0, 16, 16});
  EXPECT_EQ(decoder.damage(), "Premature end of JPEG file");
  EXPECT_EQ(decoder.warning(), decoder.damage());
  decoder.open(bytes);
  decoder.decode({0, 0, 16, 16});
  EXPECT_EQ(decoder.damage(), "");
}

// Extraneous bytes before the last marker lose no pixels: data-set readers accept the image.
TEST(JpegDamage, IsReportedByReaders) {
  const std::vector<std::byte> bytes = encode_jpeg(draw_image(1, 10, 120, 3, 4).view());
  std::vector<std::byte> odd = bytes;
  odd.insert(odd.end() - 2, 20, std::byte{7});
  const std::span cut = std::span(bytes).first(bytes.size() * 9 / 10);
  std::vector<float> pixels(3 * 16 * 16);
  for (const PreprocessorFactory& make : {make_preprocess({.height = 16, .width = 16}),
                                          make_preprocess({.preset = Preset::torchvision, .height = 16, .width = 16}),
                                          make_cifar_preprocess({true, 16, 16}), make_whole_image_preprocess(16, 16)}) {
    const auto preprocessor = make();
    EXPECT_EQ(preprocessor->run(odd, {}, {}, pixels.data()).damage, "");
    EXPECT_EQ(preprocessor->run(cut, {}, {}, pixels.data()).damage, "Premature end of JPEG file");
  }
  const CocoFolder coco;
  std::vector<std::byte> jpeg = encode_jpeg(CocoFolder::image(4).view());
  jpeg.insert(jpeg.end() - 2, 20, std::byte{7});
  write_file(coco.folder() + "/im4.png", {reinterpret_cast<const char*>(jpeg.data()), jpeg.size()});
  const DetectionDataset dataset(open_coco(coco.annotations(), coco.folder()), small_canvases());
  for (uint64_t record = 0; record < dataset.size(); ++record) read_sample(dataset, record);  // expects no damage
}

}  // namespace
}  // namespace dtrain::data
