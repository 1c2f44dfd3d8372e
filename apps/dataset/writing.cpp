#include "apps/dataset/writing.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "apps/cli/command_line.h"
#include "apps/cli/messages.h"
#include "apps/cli/progress.h"
#include "apps/cli/run_main.h"
#include "apps/dataset/files.h"
#include "data/shard_manifest.h"

namespace dtrain::dataset {

void CommonFlags::declare(cli::FlagSet& flags, const char* input_meaning, bool needs_input) {
  needs_input_ = input_meaning != nullptr && needs_input;
  if (input_meaning != nullptr) flags.add("input", input, input_meaning);
  flags.add("output", output, "folder for the data set, made if absent");
  flags.add("threads", threads, "worker threads; 0: one per core. The output does not depend on it", cli::kThreads);
  if (has_seed) flags.add("seed", seed, "seed of what is drawn, and of the order of records", {0, INT64_MAX});
}

bool CommonFlags::parse(cli::FlagSet& flags, const Arguments& argv) {
  if (!cli::read_flags(flags, argv)) return false;
  DT_CHECK(!needs_input_ || !input.empty(), "--input is missing; see --help");
  DT_CHECK(!output.empty(), "--output is missing; see --help");
  return true;
}

void until_stopped(const std::function<void()>& work) {
  cli::catch_stop_signals();
  try {
    work();
  } catch (const Error&) {
    if (cli::stop_requested()) cli::end_by_signal();
    throw;
  }
}

void write_set(const CommonFlags& common, const std::vector<data::Split>& splits, const std::string& source) {
  const std::string done = concat(common.output, "/", data::kNewShards);
  until_stopped([&] {
    std::optional<cli::Progress> progress;
    const data::Split* shown = nullptr;
    data::ShardOptions options{.directory = common.output, .threads = common.threads, .source = source};
    options.resumed = [&](size_t shards) {
      cli::print_message("note", fmt::format("{} shards are complete in {}: goes on after them", shards, done));
    };
    try {
      data::write_shards(options, splits, [&](const data::Split& split, uint64_t images) {
        if (&split != shown) progress.emplace(split.name + " images", split.count);
        shown = &split;
        progress->update(images);
        if (cli::stop_requested()) throw Error("stopped");
        if (images == split.count) progress->finish();
      });
    } catch (const Error&) {
      progress.reset();
      std::error_code unknown;
      if (std::filesystem::exists(done, unknown))
        cli::print_message(
            "note", concat("the shards that are complete stay in ", done, ": the same command goes on after them"));
      throw;
    }
  });
  for (const data::Split& split : splits)
    fmt::print("{0}: {1} images in {2} shards, {3}/{0}-*-of-{2:05}\n", split.name, split.count, split.shards,
               cli::escaped(common.output));
}

data::Split split_of_tree(const std::string& name, int64_t shards, std::vector<data::TreeImage> images, int64_t seed,
                          std::string (*make)(const data::TreeImage&)) {
  struct Tree {
    std::vector<data::TreeImage> images;
    std::vector<uint64_t> order;
  };
  const size_t count = images.size();
  const auto tree =
      std::make_shared<const Tree>(Tree{std::move(images), data::shuffled(count, static_cast<uint64_t>(seed))});
  return {name, shards, count, [make, tree](uint64_t i) { return make(tree->images[tree->order[i]]); }};
}

std::string existing_folder(const std::string& root, std::initializer_list<const char*> names) {
  std::error_code unreadable;
  for (const char* name : names)
    if (const std::filesystem::path folder = std::filesystem::path(root) / name;
        std::filesystem::is_directory(folder, unreadable))
      return folder.string();
  return "";
}

}  // namespace dtrain::dataset
