#include "dtrain/data/cifar10.h"

#include <cstring>
#include <filesystem>
#include <memory>

#include "data/shards.h"
#include "data/whole_image.h"
#include "dtrain/core/error.h"
#include "dtrain/data/augment.h"
#include "dtrain/data/png.h"
#include "dtrain/io/input_file.h"

namespace dtrain::data {
namespace {

constexpr size_t kMaxBatchBytes = size_t{1} << 30;

class CifarPreprocessor final : public Preprocessor {
 public:
  explicit CifarPreprocessor(const CifarOptions& options)
      : options_(options), decoder_({.orientation = options.orientation}), writer_(options.height, options.width) {}

  SampleNotes run(std::span<const std::byte> encoded, std::span<const NormalizedBox>, const SampleKey& key,
                  void* pixels) override {
    const ImageInfo info = decoder_.open(encoded);
    ImageView view = decoder_.decode();
    if (options_.training) {
      if (augmented_.width != view.width || augmented_.height != view.height)
        augmented_ = Image(view.width, view.height);
      RandomStream random = sample_stream(key);
      pad_crop_flip(view, random, augmented_.pixels.data());
      view = augmented_.view();
    }
    writer_.write(view, static_cast<float*>(pixels));
    return notes_of(info, decoder_, options_.orientation);
  }

 private:
  CifarOptions options_;
  ImageDecoder decoder_;
  Image augmented_;
  WholeImage writer_;
};

}  // namespace

void pad_crop_flip(const ImageView& image, RandomStream& random, uint8_t* out) {
  constexpr int kPadding = 4;
  const int dy = static_cast<int>(random.below(2 * kPadding + 1)) - kPadding;
  const int dx = static_cast<int>(random.below(2 * kPadding + 1)) - kPadding;
  const bool flip = random.uniform() < 0.5f;
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x, out += 3) {
      const int from_y = y + dy, from_x = (flip ? image.width - 1 - x : x) + dx;
      if (from_y < 0 || from_y >= image.height || from_x < 0 || from_x >= image.width)
        std::memset(out, 0, 3);
      else
        std::memcpy(out, image.row(from_y) + 3 * from_x, 3);
    }
}

PreprocessorFactory make_cifar_preprocess(const CifarOptions& options) {
  const WholeImage checked(options.height, options.width);
  const auto make = [options] { return std::make_unique<CifarPreprocessor>(options); };
  return {{options.height, options.width, 3}, DType::f32, make};
}

const std::vector<std::string>& cifar_classes() {
  static const std::vector<std::string> names = {"airplane", "automobile", "bird",  "cat",  "deer",
                                                 "dog",      "frog",       "horse", "ship", "truck"};
  return names;
}

CifarBatch read_cifar_batches(const std::vector<std::string>& paths) {
  CifarBatch all;
  for (const std::string& path : paths) {
    const std::string bytes = read_text(path, kMaxBatchBytes);
    if (bytes.empty() || bytes.size() % CifarBatch::kRecord != 0)
      throw Error(Fault::data, concat(path, ": ", bytes.size(), " bytes, expected a multiple of ", CifarBatch::kRecord,
                                      ": not a binary batch of CIFAR-10"));
    all.bytes.insert(all.bytes.end(), bytes.begin(), bytes.end());
  }
  return all;
}

std::string other_cifar_form(const std::string& folder) {
  const auto has = [&](const char* name) {
    std::error_code unreadable;
    return std::filesystem::is_regular_file(std::filesystem::path(folder) / name, unreadable);
  };
  if (has("data_batch_1.bin") && has("test_batch.bin"))
    return "CIFAR-10's binary batches; dtrain-data cifar10 --input DIR --output RECORDS makes records of them";
  if (has("data_batch_1"))
    return "CIFAR-10's Python batches, which are pickles and not read; fetch the binary version, "
           "cifar-10-binary.tar.gz, and make records of it with dtrain-data cifar10 --input DIR --output RECORDS";
  if (has("train.bin") && has("test.bin"))
    return "CIFAR-100's binary files, which are not read; write the images as PNGs in folders train/<class> and "
           "validation/<class>, and make records of them with dtrain-data imagenet";
  if (has("train") && has("test") && has("meta"))
    return "CIFAR-100's Python files, which are pickles and not read; write the images as PNGs in folders "
           "train/<class> and validation/<class>, and make records of them with dtrain-data imagenet";
  return "";
}

std::string cifar_record(const CifarBatch& batch, uint64_t i, const std::vector<std::string>& classes,
                         int64_t first_label) {
  constexpr int kSide = 32;
  constexpr size_t kPlane = size_t{kSide} * kSide;
  const uint8_t* from = batch.bytes.data() + i * CifarBatch::kRecord;
  if (*from >= classes.size())
    throw Error(Fault::data,
                concat("CIFAR-10 image ", i, ": label ", int{*from}, ", expected 0 to ", classes.size() - 1));
  Image image(kSide, kSide);
  for (size_t pixel = 0; pixel < kPlane; ++pixel)
    for (size_t c = 0; c < 3; ++c) image.pixels[3 * pixel + c] = from[1 + c * kPlane + pixel];
  const std::vector<std::byte> encoded = encode_png(image.view());
  return image_example({.encoded = encoded,
                        .format = "PNG",
                        .width = kSide,
                        .height = kSide,
                        .label = first_label + *from,
                        .synset = classes[*from],
                        .text = classes[*from],
                        .filename = concat(i, ".png")});
}

}  // namespace dtrain::data
