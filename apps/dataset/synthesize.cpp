// dtrain-data synthesize: drawn images as a data set.
#include "apps/dataset/writing.h"
#include "data/jpeg.h"
#include "data/synthetic.h"
#include "libdtrain/core/error.h"

namespace dtrain::dataset {

int synthesize(const Arguments& argv) {
  CommonFlags common;
  int64_t classes = 10, image_size = 64, train = 8000, validation = 1000, shards = 8, quality = 90;
  cli::FlagSet flags(argv.front(), "--output DIR [flags]",
                     "Draws shapes and textures, a class each, in random colours, positions and noise, and writes them "
                     "as JPEGs in the ImageNet schema; labels count from 1.");
  common.declare(flags, nullptr);
  flags.add("classes", classes, "number of classes", {2, data::kMaxDrawnClasses});
  flags.add("image_size", image_size, "width and height in pixels", {8, 4096});
  flags.add("train", train, "training images", cli::kPositiveCount);
  flags.add("validation", validation, "validation images", cli::kPositiveCount);
  flags.add("shards", shards, "train shards; validation has a quarter of them", {1, data::kMaxShards});
  flags.add("quality", quality, "quality of the JPEGs", {1, 100});
  if (!common.parse(flags, argv)) return 0;

  const auto seed = static_cast<uint64_t>(common.seed);
  const int class_count = static_cast<int>(classes), size = static_cast<int>(image_size);
  // Images are numbered through both splits, so that none is drawn twice.
  auto make = [&](uint64_t first, const char* split) {
    return [=](uint64_t i) {
      const auto drawn = static_cast<int>((first + i) % static_cast<uint64_t>(class_count));
      const std::vector<std::byte> encoded = data::encode_jpeg(
          data::draw_image(drawn, class_count, size, seed, first + i).view(), {.quality = static_cast<int>(quality)});
      return data::image_example({.encoded = encoded,
                                  .format = "JPEG",
                                  .width = size,
                                  .height = size,
                                  .label = drawn + 1,
                                  .synset = concat("drawn", drawn),
                                  .text = data::drawn_class_name(drawn, class_count),
                                  .filename = concat(split, "_", i, ".jpg")});
    };
  };
  const auto train_count = static_cast<uint64_t>(train);
  write_set(common, {{"train", shards, train_count, make(0, "train")},
                     {"validation", std::max<int64_t>(shards / 4, 1), static_cast<uint64_t>(validation),
                      make(train_count, "validation")}});
  return 0;
}

}  // namespace dtrain::dataset
