#include "data/shrink.h"

#include <algorithm>

#include "dtrain/core/error.h"
#include "dtrain/data/bad_record.h"
#include "dtrain/data/example.h"
#include "dtrain/data/image.h"
#include "dtrain/data/jpeg.h"
#include "dtrain/data/resize.h"

namespace dtrain::data {
namespace {

// New length of a side when the shorter one becomes `size`.
int side_of(int side, int shorter, const ShrinkOptions& options) {
  if (options.stretch) return options.size;
  if (shorter <= options.size) return side;
  return static_cast<int>(int64_t{side} * options.size / shorter);
}

Image resized(const ImageView& image, int width, int height) {
  Image out(width, height);
  Filter<float> across, down;
  std::vector<float> rows;
  make_filter({image.width, width, 0, width}, ResizeMethod::bilinear, across);
  make_filter({image.height, height, 0, height}, ResizeMethod::bilinear, down);
  resample(image, across, down, rows, out.pixels.data(), int64_t{3} * width);
  return out;
}

// Copies a feature unchanged.
void copy_feature(const Example::Entry& entry, ExampleWriter& writer) {
  std::vector<std::string_view> texts;
  std::vector<float> floats;
  std::vector<int64_t> numbers;
  switch (entry.feature.kind) {
    case FeatureKind::bytes:
      entry.feature.read(texts);
      return writer.bytes(entry.key, texts);
    case FeatureKind::float32:
      entry.feature.read(floats);
      return writer.floats(entry.key, floats);
    case FeatureKind::int64:
      entry.feature.read(numbers);
      return writer.int64s(entry.key, numbers);
    case FeatureKind::unset:
      return;  // unset
  }
}

}  // namespace

ShrunkImage shrink_image(std::span<const std::byte> encoded, const ShrinkOptions& options) {
  DT_CHECK(options.size > 0, "images resized to ", options.size, " pixels: expected at least 1");
  ImageDecoder decoder({.orientation = options.orientation});
  const ImageInfo info = decoder.open(encoded);
  const ImageView image = decoder.decode();
  if (info.orientation != 1 && options.oriented) ++*options.oriented;
  const int shorter = std::min(image.width, image.height), width = side_of(image.width, shorter, options),
            height = side_of(image.height, shorter, options);
  const JpegEncodeOptions jpeg{.quality = options.quality, .optimize = true};
  if (width != image.width || height != image.height)
    return {encode_jpeg(resized(image, width, height).view(), jpeg), width, height, decoder.warning(),
            decoder.damage()};
  std::vector<std::byte> smaller = encode_jpeg(image, jpeg);
  const bool is_turned = options.orientation == Orientation::apply && info.orientation != 1;
  const bool is_plain = info.format == ImageFormat::jpeg && info.components != 4 && !is_turned;
  if (is_plain && smaller.size() >= encoded.size()) smaller.assign(encoded.begin(), encoded.end());
  return {std::move(smaller), width, height, decoder.warning(), decoder.damage()};
}

std::string shrink_record(std::span<const std::byte> record, const ShrinkOptions& options, std::string& warning) {
  Example example;
  example.parse(record);
  if (example.find("image/object/class/label") != nullptr)
    throw Error(Fault::data, "a record of object detection, whose images are resized as they are read");
  const ShrunkImage image = shrink_image(std::as_bytes(std::span(example.bytes("image/encoded"))), options);
  if (!image.damage.empty()) throw Error(Fault::data, damaged_image(image.damage));
  warning = image.warning;
  ExampleWriter writer;
  for (const Example::Entry& entry : example.entries()) {
    if (example.find(entry.key) != &entry.feature) continue;  // overridden by a later duplicate
    if (entry.key == "image/encoded")
      writer.bytes(entry.key, {reinterpret_cast<const char*>(image.jpeg.data()), image.jpeg.size()});
    else if (entry.key == "image/format")
      writer.bytes(entry.key, "JPEG");
    else if (entry.key == "image/width")
      writer.int64(entry.key, image.width);
    else if (entry.key == "image/height")
      writer.int64(entry.key, image.height);
    else
      copy_feature(entry, writer);
  }
  return writer.take();
}

}  // namespace dtrain::data
