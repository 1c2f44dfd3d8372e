// What the commands that write data sets share.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "apps/cli/flags.h"
#include "apps/dataset/commands.h"
#include "data/bad_record.h"
#include "data/image_tree.h"
#include "data/shards.h"

namespace dtrain::dataset {

struct CommonFlags {
  std::string input, output;
  int64_t threads = 0, seed = 0;
  std::string on_bad_image = "fail";  // fail, skip or list
  bool has_seed = true;               // whether the command draws or shuffles
  bool reads_images = false;          // whether it has --on_bad_image

  // --input only where it has a meaning; where others may stand for it, it need not be given.
  void declare(cli::FlagSet& flags, const char* input_meaning, bool needs_input = true);
  // Reads argv, which holds flags only; false where help or the version was asked for, and printed. Throws Error where
  // --input or --output is missing.
  bool parse(cli::FlagSet& flags, const Arguments& argv);

 private:
  bool needs_input_ = false;
};

// Calls `work`, which shall throw an Error soon after cli::stop_requested(): then SIGINT and SIGTERM end the process
// once what `work` leaves unfinished is removed.
void until_stopped(const std::function<void()>& work);

// What the decoder warns of in images that are kept, since all their pixels are there. Any thread may add.
class KeptWarnings {
 public:
  void add(const std::string& file, const std::string& warning);  // which may be ""
  // A notice with their count and the first one, where there is any.
  void report() const;

 private:
  mutable std::mutex mutex_;
  uint64_t count_ = 0;
  std::string first_;
};

// Names images that cannot be used, sorted by file: each on stdout where they are only listed, in one notice where they
// are left out, or treated as `skipped` says, else each on stderr. Returns the exit code for `list`.
int report_bad_images(const CommonFlags& common, std::vector<data::BadRecord> bad, uint64_t images,
                      const char* skipped = "left out");

// data::write_shards with progress and a line for each split at the end, by the rules of --on_bad_image; with `list`
// all records are made and nothing is written. `source` is data::ShardOptions::source. SIGINT and SIGTERM end the
// process once the unfinished shards are removed. Returns the exit code.
int write_set(const CommonFlags& common, const std::vector<data::Split>& splits, const std::string& source = "",
              const KeptWarnings& warnings = {});

// Writes data::kClassNamesFile beside the shards: `classes[i]` is the name of the label first_label + i. Nothing where
// images are only listed.
void write_class_names(const CommonFlags& common, const std::vector<std::string>& classes, int64_t first_label);

// The images of a tree, shuffled, so that any part of a shard is a mixture of the classes. `warnings` has to be there
// as long as the split is.
data::Split split_of_tree(const std::string& name, int64_t shards, std::vector<data::TreeImage> images, int64_t seed,
                          std::string (*make)(const data::TreeImage&, std::string& warning), KeptWarnings& warnings);

// The folder in `root` of the first name that is there, or "".
std::string existing_folder(const std::string& root, std::initializer_list<const char*> names);

}  // namespace dtrain::dataset
