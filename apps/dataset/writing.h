// What the commands that write data sets share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "apps/cli/flags.h"
#include "apps/dataset/commands.h"
#include "data/image_tree.h"

namespace dtrain::dataset {

struct CommonFlags {
  std::string input, output;
  int64_t threads = 0, seed = 0;
  bool has_seed = true;  // whether the command draws or shuffles

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

// data::write_shards with progress and a line for each split at the end. `source` is data::ShardOptions::source. SIGINT
// and SIGTERM end the process once the unfinished shards are removed.
void write_set(const CommonFlags& common, const std::vector<data::Split>& splits, const std::string& source = "");

// The images of a tree, shuffled, so that any part of a shard is a mixture of the classes.
data::Split split_of_tree(const std::string& name, int64_t shards, std::vector<data::TreeImage> images, int64_t seed,
                          std::string (*make)(const data::TreeImage&));

// The folder in `root` of the first name that is there, or "".
std::string existing_folder(const std::string& root, std::initializer_list<const char*> names);

}  // namespace dtrain::dataset
