#include "apps/dataset/object_tiles.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "apps/cli/messages.h"
#include "apps/mask_rcnn/canvas.h"
#include "apps/mask_rcnn/draw_objects.h"
#include "data/orientation.h"
#include "data/shards.h"
#include "dtrain/core/error.h"
#include "dtrain/data/resize.h"

namespace dtrain::dataset {
namespace {

using mask_rcnn::Canvas;
using mask_rcnn::DrawnObject;
namespace labelled = data::coco;

data::Image resized(const data::ImageView& image, int width, int height) {
  data::Image result(width, height);
  Filter<int32_t> x, y;
  data::make_filter({.in = image.width, .out = width, .count = width}, x);
  data::make_filter({.in = image.height, .out = height, .count = height}, y);
  std::vector<uint8_t> rows;
  data::resample(image, x, y, rows, result.pixels.data());
  return result;
}

// A mask at the size of its tile, by the nearest pixel.
labelled::Rle resized(const labelled::Rle& mask, int width, int height) {
  const std::vector<uint8_t> pixels = labelled::decode(mask);
  std::vector<uint8_t> result(static_cast<size_t>(width) * static_cast<size_t>(height));
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      result[static_cast<size_t>(y * width + x)] = pixels[static_cast<size_t>(
          (2 * y + 1) * mask.height / (2 * height) * mask.width + (2 * x + 1) * mask.width / (2 * width))];
  return labelled::encode(result, height, width);
}

std::vector<DrawnObject> objects_of(const data::DetectionSample& sample, const data::DetectionSource& source, int width,
                                    int height) {
  const double across = width / static_cast<double>(sample.size.width);
  const double down = height / static_cast<double>(sample.size.height);
  std::vector<DrawnObject> objects;
  for (const labelled::Annotation& one : sample.objects) {
    DrawnObject& object = objects.emplace_back();
    object.box = {one.box.x * across, one.box.y * down, one.box.width * across, one.box.height * down};
    object.object_class = int64_t{one.category} + 1;
    object.label = source.categories()[one.category].name + (one.is_crowd ? " (crowd)" : "");
    if (one.segmentation.index() != 0)
      object.mask = resized(mask_of(one, sample.size.height, sample.size.width), width, height);
  }
  return objects;
}

Tile tile_of(const AnnotatedSource& split, uint64_t index, int side) {
  const auto reader = split.source->reader();
  const data::DetectionSample sample = reader->read(index, {});
  data::ImageDecoder decoder;
  data::ImageInfo info = decoder.open(sample.encoded);
  if (data::is_upright_size(info, sample.size.width, sample.size.height))
    info = decoder.open(sample.encoded, data::Orientation::apply);
  if (info.width != sample.size.width || info.height != sample.size.height)
    throw Error(Fault::data,
                fmt::format("{}: is {}x{} pixels large, {} has it as {}x{}", split.source->file_of(index), info.width,
                            info.height, split.annotations, sample.size.width, sample.size.height));
  const double scale = static_cast<double>(side) / std::max(info.width, info.height);
  const auto scaled = [&](int length) { return std::max(1, static_cast<int>(std::lround(length * scale))); };
  Canvas canvas(resized(decoder.decode(), scaled(info.width), scaled(info.height)).view());
  draw_objects(canvas, objects_of(sample, *split.source, canvas.width(), canvas.height()));
  const std::string name(sample.name);
  return {canvas.image(), name.substr(name.rfind('/') + 1)};
}

const AnnotatedSource& chosen(const std::vector<AnnotatedSource>& splits, const std::string& name) {
  const auto found = std::ranges::find(splits, name, &AnnotatedSource::name);
  if (!name.empty() && found == splits.end())
    throw Error(fmt::format("--split={}: no such split; the first one is {}", name, splits.front().name));
  return name.empty() ? splits.front() : *found;
}

}  // namespace

Tiles object_tiles(const std::vector<AnnotatedSource>& splits, const TileSelection& selection) {
  const AnnotatedSource& split = chosen(splits, selection.split);
  Tiles result{.images = split.source->size(), .split = split.name};
  for (const uint64_t index : data::shuffled(split.source->size(), static_cast<uint64_t>(selection.seed))) {
    if (result.tiles.size() == static_cast<size_t>(selection.images)) break;
    try {
      result.tiles.push_back(tile_of(split, index, static_cast<int>(selection.side)));
    } catch (const Error& error) {
      if (error.fault() != Fault::data) throw;
      cli::print_message("error", error.what());
      ++result.bad_images;
    }
  }
  if (result.tiles.empty()) throw Error(Fault::data, split.annotations + ": no image that can be shown");
  return result;
}

}  // namespace dtrain::dataset
