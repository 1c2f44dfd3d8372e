// dtrain-data resize: downscales the images of TFRecord shards or folders.
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "apps/cli/messages.h"
#include "apps/cli/options/cache.h"
#include "apps/cli/run_main.h"
#include "apps/dataset/resize_files.h"
#include "apps/dataset/writing.h"
#include "data/shard_files.h"
#include "dtrain/core/error.h"
#include "dtrain/data/bad_record.h"
#include "dtrain/data/class_names.h"
#include "dtrain/data/record_shards.h"
#include "dtrain/io/atomic_file.h"

namespace dtrain::dataset {
namespace {

namespace fs = std::filesystem;

// Record `i` with a downscaled image; Errors have its position.
std::string shrunk_record(const data::RecordShards& shards, uint64_t i, const data::ShrinkOptions& options,
                          KeptWarnings& warnings) {
  const std::string place = shards.locate(i).text();
  try {
    std::vector<std::byte> buffer;
    std::string warning, record = data::shrink_record(shards.read(i, buffer), options, warning);
    warnings.add(place, warning);
    return record;
  } catch (const Error& error) {
    const data::BadRecordError placed(place, error.what());
    if (error.fault() == Fault::data) throw placed;
    throw Error(error.fault(), placed.what());
  }
}

// Labels and class names are unchanged.
void copy_class_names(const CommonFlags& common) {
  const fs::path from = fs::path(common.input) / data::kClassNamesFile;
  std::error_code unknown;
  if (common.on_bad_image == "list" || !fs::is_regular_file(from, unknown)) return;
  AtomicFile file((fs::path(common.output) / data::kClassNamesFile).string());
  file.write(data::to_text(data::read_class_names(common.input)));
  file.commit();
}

int resize_shards(const CommonFlags& common, const std::vector<std::string>& names, int64_t shards,
                  const data::ShrinkOptions& options, const data::CacheOptions& cache) {
  std::string source = fmt::format("dtrain-data resize {}\nto {}, quality {}, stretch {}, turned {}, shards {}\n",
                                   cli::version(), options.size, options.quality, options.stretch,
                                   options.orientation == data::Orientation::apply, shards);
  std::vector<data::Split> splits;
  KeptWarnings warnings;
  for (const std::string& name : names) {
    const std::vector<std::string> paths = data::find_shards(common.input, name);
    const auto input = std::make_shared<const data::RecordShards>(paths, cache);
    if (!input->faults().empty()) throw Error(Fault::data, input->faults().front());
    source += input->contents();
    splits.push_back({name, shards > 0 ? shards : static_cast<int64_t>(paths.size()), input->size(),
                      [input, options, &warnings](uint64_t i) { return shrunk_record(*input, i, options, warnings); }});
  }
  const int code = write_set(common, splits, source, warnings);
  copy_class_names(common);
  return code;
}

}  // namespace

int resize(const Arguments& argv) {
  CommonFlags common;
  cli::CacheFlags cache;
  int64_t size = 480, quality = 85, shards = 0;
  std::string orientation = "ignore";
  bool stretch = false;
  cli::FlagSet flags(
      argv.front(), "--input DIR --output DIR [flags]",
      "Downscales the images of DIR to a shorter side of --size pixels, keeping the aspect ratio, and encodes them as "
      "JPEG. Smaller images keep their size, and their file unless the new one is smaller. TFRecord shards "
      "(train-*-of-*, validation-*-of-*, in DIR or its folders train and validation) keep all other features and the "
      "order of records; image folders keep all file names. An interrupted conversion of shards keeps its complete "
      "shards, and the same command resumes after them. --output may be DIR itself: images that are links are then "
      "replaced by files; folders that are links are refused.");
  common.has_seed = false;
  common.reads_images = true;
  common.declare(flags, "folder of TFRecord shards, or of image folders");
  flags.add("size", size, "maximum shorter side in pixels", {1, 65500});
  flags.add("quality", quality, "quality of the JPEGs", {1, 100});
  flags.add("stretch", stretch, "resize all images to squares of --size pixels, ignoring the aspect ratio");
  flags.add_choice("exif_orientation", orientation, {"apply", "ignore"},
                   "apply or ignore the EXIF orientation tag of images; the new images have no such tag");
  flags.add("shards", shards, "shards of each split; 0: as in the input", {0, data::kMaxShards});
  cache.declare(flags);
  if (!common.parse(flags, argv)) return 0;

  const data::ShrinkOptions options{static_cast<int>(size), static_cast<int>(quality), stretch,
                                    orientation == "apply" ? data::Orientation::apply : data::Orientation::ignore,
                                    std::make_shared<std::atomic<uint64_t>>(0)};
  std::vector<std::string> splits;
  for (const char* split : {"train", "validation"})
    if (data::has_shards(common.input, split)) splits.push_back(split);
  const int code =
      splits.empty() ? resize_files(common, options) : resize_shards(common, splits, shards, options, cache.options());
  if (const uint64_t oriented = *options.oriented; oriented > 0)
    cli::print_message("note", fmt::format("{} images have an EXIF orientation other than 1: {}", oriented,
                                           orientation == "apply" ? "rotated"
                                                                  : "the new ones are as they were stored, without it; "
                                                                    "--exif_orientation=apply turns them"));
  return code;
}

}  // namespace dtrain::dataset
