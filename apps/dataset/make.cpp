// The commands that write data sets.
#include <filesystem>

#include <fmt/format.h>

#include "apps/cli/flags.h"
#include "apps/cli/progress.h"
#include "apps/cli/run_main.h"
#include "apps/dataset/commands.h"
#include "data/image_tree.h"
#include "data/jpeg.h"
#include "data/synthetic.h"
#include "libdtrain/core/error.h"

namespace dtrain::dataset {
namespace {

namespace fs = std::filesystem;

// Parses `argv`; true where help or the version was asked for, and printed.
bool parse(cli::FlagSet& flags, const Arguments& argv) {
  const auto positional = flags.parse(argv);
  if (flags.wants_help() || flags.wants_version()) {
    fmt::print("{}", flags.wants_help() ? flags.help() : "dtrain-data " + cli::version() + "\n");
    return true;
  }
  DT_CHECK(positional.empty(), "argument ", positional.front(), " is not a flag; see --help");
  return false;
}

void write_split(const data::ShardOptions& options, uint64_t count, const std::function<std::string(uint64_t)>& make) {
  cli::Progress progress("images", count);
  data::write_shards(options, count, make, [&](uint64_t done) { progress.update(done); });
  progress.finish();
  fmt::print("{}: {} images in {} shards, {}/{}-00000-of-{:05} and on\n", options.split, count, options.shards,
             options.directory, options.split, options.shards);
}

// One split of a tree, shuffled, so that any part of a shard is a mixture of the classes.
void write_tree(const data::ShardOptions& options, const std::vector<data::TreeImage>& images, uint64_t seed,
                std::string (*make)(const data::TreeImage&)) {
  const std::vector<uint64_t> order = data::shuffled(images.size(), seed);
  write_split(options, images.size(), [&](uint64_t i) { return make(images[order[i]]); });
}

// The folder of the first name that is there, or "".
std::string existing(const std::string& root, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (fs::is_directory(fs::path(root) / name)) return (fs::path(root) / name).string();
  return "";
}

struct CommonFlags {
  std::string input, output;
  int64_t threads = 0, seed = 0;

  void declare(cli::FlagSet& flags, const char* input_meaning) {
    if (input_meaning) flags.add("input", input, input_meaning);
    flags.add("output", output, "folder for the shards, made if absent");
    flags.add("threads", threads, "worker threads; 0: one per core. The output does not depend on it",
              cli::kNotNegative);
    flags.add("seed", seed, "of the order of the records and of what is drawn", cli::kNotNegative);
  }
  void check(bool needs_input) const {
    DT_CHECK(!needs_input || !input.empty(), "--input is missing; see --help");
    DT_CHECK(!output.empty(), "--output is missing; see --help");
  }
};

}  // namespace

int imagenet(const Arguments& argv) {
  CommonFlags common;
  std::string labels;
  int64_t shards = 1024, validation_shards = 0;
  bool partial = false;
  cli::FlagSet flags(
      argv.front(), "--input DIR --labels FILE --output DIR [flags]",
      "Writes train-*-of-* from DIR/train/<class>/* and, if it is there, validation-*-of-* from "
      "DIR/validation (or val). Labels count from 1 in the order of FILE. PNG and CMYK images are written "
      "as JPEG; all others keep their bytes.");
  common.declare(flags, "folder that holds train/ and validation/ or val/");
  flags.add("labels", labels, "text file with a class folder's name per line");
  flags.add("shards", shards, "train shards", cli::kPositive);
  flags.add("validation_shards", validation_shards, "validation shards; 0: an eighth of --shards", cli::kNotNegative);
  flags.add("partial", partial, "accept a tree that lacks some of the listed classes");
  if (parse(flags, argv)) return 0;
  common.check(true);
  DT_CHECK(!labels.empty(), "--labels is missing; see --help");

  const std::vector<std::string> classes = data::read_lines(labels);
  const std::string train = existing(common.input, {"train"});
  if (train.empty()) throw Error(Fault::data, common.input + ": no folder train in it");
  write_tree({common.output, "train", shards, common.threads}, data::list_image_tree(train, classes, 1, partial),
             static_cast<uint64_t>(common.seed), data::tree_record);
  if (const std::string validation = existing(common.input, {"validation", "val"}); !validation.empty())
    write_tree({common.output, "validation", validation_shards ? validation_shards : std::max<int64_t>(shards / 8, 1),
                common.threads},
               data::list_image_tree(validation, classes, 1, true), static_cast<uint64_t>(common.seed),
               data::tree_record);
  return 0;
}

int synthesize(const Arguments& argv) {
  CommonFlags common;
  int64_t classes = 10, image_size = 64, train = 8000, validation = 1000, shards = 8, quality = 90;
  cli::FlagSet flags(argv.front(), "--output DIR [flags]",
                     "Draws shapes and textures, a class each, in random colours, positions and noise, and writes them "
                     "as JPEGs in the ImageNet schema; labels count from 1.");
  common.declare(flags, nullptr);
  flags.add("classes", classes, "number of classes", {2, data::kMaxDrawnClasses});
  flags.add("image_size", image_size, "width and height in pixels", {8, 4096});
  flags.add("train", train, "training images", cli::kPositive);
  flags.add("validation", validation, "validation images", cli::kPositive);
  flags.add("shards", shards, "train shards; validation has a quarter of them", cli::kPositive);
  flags.add("quality", quality, "of the JPEGs", {1, 100});
  if (parse(flags, argv)) return 0;
  common.check(false);

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
  write_split({common.output, "train", shards, common.threads}, train_count, make(0, "train"));
  write_split({common.output, "validation", std::max<int64_t>(shards / 4, 1), common.threads},
              static_cast<uint64_t>(validation), make(train_count, "validation"));
  return 0;
}

int cifar10(const Arguments& argv) {
  const std::vector<std::string> classes = {"airplane", "automobile", "bird",  "cat",  "deer",
                                            "dog",      "frog",       "horse", "ship", "truck"};
  CommonFlags common;
  int64_t shards = 8, first_label = 0;
  cli::FlagSet flags(argv.front(), "--input DIR --output DIR [flags]",
                     "Reads DIR/train/<class>/* and DIR/test/<class>/*, whose files keep their bytes, or the binary "
                     "batches data_batch_1.bin ... test_batch.bin, whose images become PNGs.");
  common.declare(flags, "folder with train/ and test/, or with the binary batches");
  flags.add("shards", shards, "train shards; validation has a quarter of them", cli::kPositive);
  flags.add("first_label", first_label, "label of airplane", {0, 1});
  if (parse(flags, argv)) return 0;
  common.check(true);

  const auto seed = static_cast<uint64_t>(common.seed);
  const data::ShardOptions train_options{common.output, "train", shards, common.threads};
  const data::ShardOptions test_options{common.output, "validation", std::max<int64_t>(shards / 4, 1), common.threads};
  const std::string train = existing(common.input, {"train"}), test = existing(common.input, {"test"});
  if (!train.empty() && !test.empty()) {
    write_tree(train_options, data::list_image_tree(train, classes, first_label, false), seed, data::verbatim_record);
    write_tree(test_options, data::list_image_tree(test, classes, first_label, false), seed, data::verbatim_record);
    return 0;
  }
  const fs::path root = common.input;
  if (!fs::exists(root / "data_batch_1.bin") || !fs::exists(root / "test_batch.bin"))
    throw Error(Fault::data, common.input + ": neither train/ and test/ nor data_batch_1.bin and test_batch.bin in it");
  std::vector<std::string> train_files;
  for (int i = 1; i <= 5; ++i) train_files.push_back((root / concat("data_batch_", i, ".bin")).string());
  for (const bool training : {true, false}) {
    const data::CifarBatch batch =
        data::read_cifar_batches(training ? train_files : std::vector{(root / "test_batch.bin").string()});
    const std::vector<uint64_t> order = data::shuffled(batch.count(), seed);
    write_split(training ? train_options : test_options, batch.count(),
                [&](uint64_t i) { return data::cifar_record(batch, order[i], classes, first_label); });
  }
  return 0;
}

}  // namespace dtrain::dataset
