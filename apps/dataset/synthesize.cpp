// dtrain-data synthesize: generates a synthetic classification data set.
#include <algorithm>

#include "apps/dataset/writing.h"
#include "data/synthetic.h"
#include "dtrain/core/error.h"
#include "dtrain/core/rng.h"
#include "dtrain/data/jpeg.h"

namespace dtrain::dataset {
namespace {

// As in tf_cnn_benchmarks' test records.
constexpr data::NormalizedBox kInner{.ymin = 0.1f, .xmin = 0.1f, .ymax = 0.9f, .xmax = 0.9f};

struct Drawings {
  uint64_t seed = 0;
  int64_t classes = 10, image_size = 64, max_image_size = 0, quality = 90, first_label = 1;
  std::string drawing = "shapes";

  void declare(cli::FlagSet& flags) {
    flags.add_choice(
        "drawing", drawing, {"shapes", "solid"},
        "shapes: shapes and textures, to test training; solid: one grey level per class, fast to generate");
    flags.add("classes", classes, "number of classes", {2, data::kMaxDrawnClasses});
    flags.add("first_label", first_label, "label of the first class", {0, 1});
    flags.add("image_size", image_size, "width and height in pixels", {8, 4096});
    flags.add("max_image_size", max_image_size,
              "if greater than --image_size: widths and heights are drawn from --image_size to this", {0, 4096});
    flags.add("quality", quality, "quality of the JPEGs", {1, 100});
  }

  // Image `number`, counted over all splits.
  std::string record(uint64_t number, const std::string& filename) const {
    const auto drawn = static_cast<int>(number % static_cast<uint64_t>(classes));
    RandomStream random(seed, /*stream=*/~number);  // the generator numbers classes from 0
    const int width = side(random), height = side(random), larger = std::max(width, height);
    const data::Image image = drawing == "solid"
                                  ? solid(drawn, larger)
                                  : data::draw_image(drawn, static_cast<int>(classes), larger, seed, number);
    data::ImageView view = image.view();  // the middle of it
    view.pixels = view.row((larger - height) / 2) + 3 * ((larger - width) / 2);
    view.width = width;
    view.height = height;
    const std::vector<std::byte> encoded = data::encode_jpeg(view, {.quality = static_cast<int>(quality)});
    return data::image_example({.encoded = encoded,
                                .format = "JPEG",
                                .width = width,
                                .height = height,
                                .label = first_label + drawn,
                                .synset = concat("drawn", drawn),
                                .text = data::drawn_class_name(drawn, static_cast<int>(classes)),
                                .filename = filename,
                                .boxes = {&kInner, drawing == "solid" ? size_t{1} : size_t{0}}});
  }

 private:
  int side(RandomStream& random) const {
    const int64_t range = std::max(max_image_size, image_size) - image_size + 1;
    return static_cast<int>(image_size + random.below(static_cast<uint32_t>(range)));
  }

  // From black to white.
  data::Image solid(int drawn, int size) const {
    data::Image image(size, size);
    std::ranges::fill(image.pixels, static_cast<uint8_t>(255 * drawn / (classes - 1)));
    return image;
  }
};

}  // namespace

int synthesize(const Arguments& argv) {
  CommonFlags common;
  Drawings drawings;
  int64_t train = 8000, validation = 1000, shards = 8, validation_shards = 0;
  cli::FlagSet flags(argv.front(), "--output DIR [flags]",
                     "Generates a synthetic classification data set: one shape and texture per class, in random "
                     "colours and positions with noise, as JPEGs in the ImageNet schema; labels count from 1. With "
                     "--drawing=solid --image_size=30 --max_image_size=299 --train=512 --validation=128 --quality=100 "
                     "the records resemble the test data of tf_cnn_benchmarks, with one grey level per class.");
  common.declare(flags, nullptr);
  drawings.declare(flags);
  flags.add("train", train, "training images", cli::kPositiveCount);
  flags.add("validation", validation, "validation images", cli::kPositiveCount);
  flags.add("shards", shards, "train shards", {1, data::kMaxShards});
  flags.add("validation_shards", validation_shards, "validation shards; 0: a quarter of --shards",
            {0, data::kMaxShards});
  if (!common.parse(flags, argv)) return 0;
  drawings.seed = static_cast<uint64_t>(common.seed);
  if (validation_shards == 0) validation_shards = std::max<int64_t>(shards / 4, 1);

  // Numbered across both splits, so that no image occurs twice.
  const auto make = [&](uint64_t first, const char* split) {
    return [=](uint64_t i) { return drawings.record(first + i, concat(split, "_", i, ".jpg")); };
  };
  const auto train_count = static_cast<uint64_t>(train);
  write_set(common,
            {{"train", shards, train_count, make(0, "train")},
             {"validation", validation_shards, static_cast<uint64_t>(validation), make(train_count, "validation")}});
  return 0;
}

}  // namespace dtrain::dataset
