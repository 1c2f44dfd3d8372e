// dtrain-data resize: TFRecord shards or folders of images with smaller images.
#include <algorithm>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "apps/cli/options/cache.h"
#include "apps/cli/run_main.h"
#include "apps/dataset/files.h"
#include "apps/dataset/writing.h"
#include "data/record_shards.h"
#include "data/shard_files.h"
#include "data/shrink.h"
#include "libdtrain/core/error.h"
#include "libdtrain/io/atomic_file.h"
#include "libdtrain/io/record_file.h"

namespace dtrain::dataset {
namespace {

namespace fs = std::filesystem;

// Record `i` with its image made smaller; an Error says where it is.
std::string shrunk_record(const data::RecordShards& shards, uint64_t i, const data::ShrinkOptions& options) try {
  std::vector<std::byte> buffer;
  return data::shrink_record(shards.read(i, buffer), options);
} catch (const RecordError&) {
  throw;  // it does so itself
} catch (const Error& error) {
  const data::RecordLocation at = shards.locate(i);
  throw Error(error.fault(), concat(at.file, ": record ", at.record, " at byte ", at.offset, ": ", error.what()));
}

void resize_shards(const CommonFlags& common, const std::vector<std::string>& names, int64_t shards,
                   const data::ShrinkOptions& options, const data::CacheOptions& cache) {
  std::string source = fmt::format("dtrain-data resize {}\nto {}, quality {}, stretch {}, shards {}\n", cli::version(),
                                   options.size, options.quality, options.stretch, shards);
  std::vector<data::Split> splits;
  for (const std::string& name : names) {
    const std::vector<std::string> paths = data::find_shards(common.input, name);
    const auto input = std::make_shared<const data::RecordShards>(paths, cache);
    if (!input->faults().empty()) throw Error(Fault::data, input->faults().front());
    source += input->contents();
    splits.push_back({name, shards > 0 ? shards : static_cast<int64_t>(paths.size()), input->size(),
                      [input, options](uint64_t i) { return shrunk_record(*input, i, options); }});
  }
  write_set(common, splits, source);
}

// All files below the folder but hidden ones, sorted, by their paths in it.
std::vector<fs::path> files_below(const std::string& folder) try {
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator entry(folder), end; entry != end; ++entry) {
    const bool is_hidden = entry->path().filename().string().starts_with('.');
    if (entry->is_directory() && is_hidden) entry.disable_recursion_pending();
    if (!entry->is_directory() && !is_hidden) files.push_back(fs::relative(entry->path(), folder));
  }
  std::ranges::sort(files);
  return files;
} catch (const fs::filesystem_error& error) {
  throw Error(fault_of_errno(error.code().value(), Fault::data),
              concat(folder, ": cannot be listed: ", error.code().message()));
}

void resize_files(const CommonFlags& common, const data::ShrinkOptions& options) {
  const std::vector<fs::path> files = files_below(common.input);
  if (files.empty()) throw Error(Fault::data, common.input + ": neither TFRecord shards nor images in it");
  until_stopped([&] {
    for_each_index(files.size(), common.threads, "images", [&](size_t i) {
      if (cli::stop_requested()) throw Error("stopped");
      const fs::path from = fs::path(common.input) / files[i], to = fs::path(common.output) / files[i];
      const std::string bytes = read_text(from.string(), kMaxRecordBytes);
      data::ShrunkImage image;
      try {
        image = data::shrink_image(std::as_bytes(std::span(bytes)), options);
      } catch (const Error& error) {
        throw Error(error.fault(), concat(from.string(), ": ", error.what()));
      }
      make_directories(system_files(), to.parent_path().string());
      AtomicFile file(to.string());
      file.write(image.jpeg.data(), image.jpeg.size());
      file.commit(/*durable=*/false);
    });
  });
  fmt::print("{} images in {}\n", files.size(), common.output);
}

}  // namespace

int resize(const Arguments& argv) {
  CommonFlags common;
  cli::CacheFlags cache;
  int64_t size = 480, quality = 85, shards = 0;
  bool stretch = false;
  cli::FlagSet flags(argv.front(), "--input DIR --output DIR [flags]",
                     "Writes the images of DIR with a shorter side of --size pixels, aspect kept, as JPEGs; those that "
                     "are smaller keep their size, and the old bytes where the new ones would not be fewer. Of "
                     "TFRecord shards (train-*-of-*, validation-*-of-*, in DIR or its folders train and validation) "
                     "all other features and the order of the records stay; of folders of images the names of all "
                     "files. A conversion of shards that fails or is killed leaves its complete shards, and the same "
                     "command goes on after them. --output may be DIR itself.");
  common.has_seed = false;
  common.declare(flags, "folder of TFRecord shards, or of folders of images");
  flags.add("size", size, "the shorter side in pixels, at most", {1, 65500});
  flags.add("quality", quality, "quality of the JPEGs", {1, 100});
  flags.add("stretch", stretch, "make all images squares of --size pixels");
  flags.add("shards", shards, "shards of each split; 0: as many as there are", {0, data::kMaxShards});
  cache.declare(flags);
  if (!common.parse(flags, argv)) return 0;

  const data::ShrinkOptions options{static_cast<int>(size), static_cast<int>(quality), stretch};
  std::vector<std::string> splits;
  for (const char* split : {"train", "validation"})
    if (data::has_shards(common.input, split)) splits.push_back(split);
  if (splits.empty())
    resize_files(common, options);
  else
    resize_shards(common, splits, shards, options, cache.options());
  return 0;
}

}  // namespace dtrain::dataset
