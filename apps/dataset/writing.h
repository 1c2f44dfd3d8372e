// Shared by the commands that write data sets.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "apps/cli/flags.h"
#include "apps/dataset/commands.h"
#include "data/image_tree.h"
#include "data/shards.h"
#include "dtrain/data/bad_record.h"

namespace dtrain::dataset {

struct CommonFlags {
  std::string input, output;
  int64_t threads = 0, seed = 0;
  std::string on_bad_image = "fail";  // fail, skip or list
  bool has_seed = true;               // whether the command generates or shuffles
  bool reads_images = false;          // whether it has --on_bad_image
  bool takes_folder = false;          // whether --input may be given as an argument

  // Declares --input only if the command has it; it is optional if others can replace it.
  void declare(cli::FlagSet& flags, const char* input_meaning, bool needs_input = true);
  // Parses argv, which has no positional arguments but that of takes_folder; false after printing help or the version.
  // Throws Error if --input or
  // --output is missing.
  bool parse(cli::FlagSet& flags, const Arguments& argv);

 private:
  bool needs_input_ = false;
};

// Calls `work`, which should throw an Error soon after cli::stop_requested(). SIGINT and SIGTERM then end the process
// after clean-up of unfinished output.
void until_stopped(const std::function<void()>& work);

// Decoder warnings of images that are kept because all pixels are present. Thread-safe.
class KeptWarnings {
 public:
  void add(const std::string& file, const std::string& warning);  // may be ""
  // Prints a notice with their count and the first one, if any.
  void report() const;

 private:
  mutable std::mutex mutex_;
  uint64_t count_ = 0;
  std::string first_;
};

// Reports unusable images, sorted by file: on stdout for `list`; as one notice if they are skipped, or handled as
// `skipped` says; else on stderr. Returns the exit code for `list`.
int report_bad_images(const CommonFlags& common, std::vector<data::BadRecord> bad, uint64_t images,
                      const char* skipped = "left out");

// data::write_shards with progress, a summary line per split, and --on_bad_image; `list` produces all records without
// writing. `source` is data::ShardOptions::source. SIGINT and SIGTERM end the process after removing unfinished shards.
// Returns the exit code.
int write_set(const CommonFlags& common, const std::vector<data::Split>& splits, const std::string& source = "",
              const KeptWarnings& warnings = {});

// Writes data::kClassNamesFile beside the shards: `classes[i]` is the name of label first_label + i. Does nothing for
// `list`.
void write_class_names(const CommonFlags& common, const std::vector<std::string>& classes, int64_t first_label);

// Shuffled images of a tree, so that every part of a shard mixes the classes. `warnings` must outlive the split.
data::Split split_of_tree(const std::string& name, int64_t shards, std::vector<data::TreeImage> images, int64_t seed,
                          std::string (*make)(const data::TreeImage&, std::string& warning), KeptWarnings& warnings);

}  // namespace dtrain::dataset
