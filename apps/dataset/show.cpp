// dtrain-data show: a contact sheet of images with their boxes, masks and class names.
#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "apps/cli/command_line.h"
#include "apps/cli/messages.h"
#include "apps/dataset/annotated_source.h"
#include "apps/dataset/commands.h"
#include "apps/dataset/writing.h"
#include "apps/mask_rcnn/canvas.h"
#include "apps/mask_rcnn/draw_objects.h"
#include "apps/mask_rcnn/text.h"
#include "data/orientation.h"
#include "dtrain/core/error.h"
#include "dtrain/data/resize.h"

namespace dtrain::dataset {
namespace {

using mask_rcnn::Canvas;
using mask_rcnn::DrawnObject;
namespace labelled = data::coco;

constexpr int64_t kMaxSheetPixels = 1 << 28;  // 800 MB; as much again for the tiles

struct ShowFlags {
  AnnotationFlags annotations;
  std::string output, split;
  int64_t images = 12, columns = 4, tile = 320, seed = 0;

  void declare(cli::FlagSet& flags) {
    annotations.declare(flags);
    flags.add("output", output, "PNG file");
    flags.add("split", split, "train, val or test; default: the first one that exists");
    flags.add("images", images, "number of images", {1, 400});
    flags.add("columns", columns, "images in a row", {1, 100});
    flags.add("tile", tile, "longer side of each image in pixels, to which it is resized", {32, 2000});
    flags.add("seed", seed, "selects the images", {0, INT64_MAX});
  }
};

// An image in its tile.
struct Tile {
  data::Image picture{};
  std::string title{};
};

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

data::Image sheet_of(const std::vector<Tile>& tiles, int columns, int side) {
  constexpr mask_rcnn::Color kGround{24, 27, 33}, kTitle{236, 239, 244};
  constexpr double kScale = 1.5;
  constexpr int kGap = 8;
  const int head = mask_rcnn::text_height(kScale) + kGap, across = std::min(columns, static_cast<int>(tiles.size()));
  const int down = (static_cast<int>(tiles.size()) + across - 1) / across;
  Canvas canvas(kGap + across * (side + kGap), kGap + down * (side + head + kGap), kGround);
  for (int i = 0; const Tile& tile : tiles) {
    const int x = kGap + i % across * (side + kGap), y = kGap + i / across * (side + head + kGap);
    draw_text(canvas, x, y, mask_rcnn::shortened(tile.title, kScale, side), kScale, kTitle);
    canvas.paste(tile.picture.view(), x, y + head);
    ++i;
  }
  return canvas.image();
}

const AnnotatedSource& chosen(const std::vector<AnnotatedSource>& splits, const std::string& name) {
  const auto found = std::ranges::find(splits, name, &AnnotatedSource::name);
  if (!name.empty() && found == splits.end())
    throw Error(fmt::format("--split={}: no such split; the first one is {}", name, splits.front().name));
  return name.empty() ? splits.front() : *found;
}

int write_sheet(const ShowFlags& flags, const std::string& input) {
  const std::vector<AnnotatedSource> splits = flags.annotations.open(input, 0);
  const AnnotatedSource& split = chosen(splits, flags.split);
  int code = 0;
  std::vector<Tile> tiles;
  const auto wanted = static_cast<size_t>(flags.images);
  for (const uint64_t index : data::shuffled(split.source->size(), static_cast<uint64_t>(flags.seed))) {
    if (tiles.size() == wanted) break;
    try {
      tiles.push_back(tile_of(split, index, static_cast<int>(flags.tile)));
    } catch (const Error& error) {
      if (error.fault() != Fault::data) throw;
      cli::print_message("error", error.what());
      code = static_cast<int>(Fault::data);
    }
  }
  if (tiles.empty()) throw Error(Fault::data, split.annotations + ": no image that can be shown");
  mask_rcnn::write_png(flags.output,
                       sheet_of(tiles, static_cast<int>(flags.columns), static_cast<int>(flags.tile)).view());
  fmt::print("{}: {} of {} images of {}\n", cli::escaped(flags.output), tiles.size(), split.source->size(), split.name);
  return code;
}

}  // namespace

int show(const Arguments& argv) {
  ShowFlags values;
  cli::FlagSet flags(
      argv.front(), "DIR --output FILE.png [flags]",
      "Draws a contact sheet of randomly selected images of a detection data set, with boxes, masks and "
      "class names. Crowds are labelled. Images that cannot be used are named; the exit code is 2 then.");
  values.declare(flags);
  const auto places = cli::read_command_line(flags, argv);
  if (!places) return 0;
  DT_CHECK(places->size() == 1, "expected one folder; see --help");
  DT_CHECK(!values.output.empty(), "--output is missing; see --help");
  const int64_t pixels = values.images * values.tile * values.tile;
  DT_CHECK(pixels <= kMaxSheetPixels, "--images=", values.images, " --tile=", values.tile, ": up to ", pixels,
           " pixels, expected at most ", kMaxSheetPixels, "; choose smaller tiles or fewer images");
  int code = 0;
  until_stopped([&] { code = write_sheet(values, places->front()); });
  return code;
}

}  // namespace dtrain::dataset
