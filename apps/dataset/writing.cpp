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

namespace dtrain::dataset {

void CommonFlags::declare(cli::FlagSet& flags, const char* input_meaning) {
  has_input_ = input_meaning != nullptr;
  if (has_input_) flags.add("input", input, input_meaning);
  flags.add("output", output, "folder for the data set, made if absent");
  flags.add("threads", threads, "worker threads; 0: one per core. The output does not depend on it", cli::kThreads);
  flags.add("seed", seed, "seed of what is drawn, and of the order of records", {0, INT64_MAX});
}

bool CommonFlags::parse(cli::FlagSet& flags, const Arguments& argv) {
  if (!cli::read_flags(flags, argv)) return false;
  DT_CHECK(!has_input_ || !input.empty(), "--input is missing; see --help");
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

void write_set(const CommonFlags& common, const std::vector<data::Split>& splits) {
  until_stopped([&] {
    std::optional<cli::Progress> progress;
    data::write_shards({common.output, common.threads}, splits, [&](const data::Split& split, uint64_t done) {
      if (done == 1) progress.emplace(split.name + " images", split.count);
      progress->update(done);
      if (cli::stop_requested()) throw Error("stopped");
      if (done == split.count) progress->finish();
    });
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
