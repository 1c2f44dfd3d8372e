#include "apps/dataset/writing.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "apps/cli/command_line.h"
#include "apps/cli/messages.h"
#include "apps/cli/progress.h"
#include "apps/cli/stop_signals.h"
#include "apps/dataset/files.h"
#include "data/shard_manifest.h"
#include "dtrain/data/class_names.h"
#include "dtrain/io/atomic_file.h"

namespace dtrain::dataset {

void CommonFlags::declare(cli::FlagSet& flags, const char* input_meaning, bool needs_input) {
  needs_input_ = input_meaning != nullptr && needs_input;
  if (input_meaning != nullptr) flags.add("input", input, input_meaning);
  flags.add("output", output, "folder for the data set, created if absent");
  flags.add("threads", threads, "worker threads; 0: one per core. The output does not depend on the number",
            cli::kThreads);
  if (reads_images)
    flags.add_choice("on_bad_image", on_bad_image, {"fail", "skip", "list"},
                     "handling of damaged and unreadable images. fail: all images are checked, the damaged ones are "
                     "listed, nothing is written, and the exit code is 2; skip: they are left out and listed in "
                     "OUTPUT/skipped.json; list: only check, as fail, and never write");
  if (has_seed) flags.add("seed", seed, "seed of the images and of the order of records", {0, INT64_MAX});
}

bool CommonFlags::parse(cli::FlagSet& flags, const Arguments& argv) {
  if (takes_folder) {
    const auto places = cli::read_command_line(flags, argv);
    if (!places) return false;
    DT_CHECK(places->size() + (input.empty() ? 0 : 1) <= 1, "several folders are given, expected one");
    if (!places->empty()) input = places->front();
  } else if (!cli::read_flags(flags, argv)) {
    return false;
  }
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

void KeptWarnings::add(const std::string& file, const std::string& warning) {
  if (warning.empty()) return;
  const std::lock_guard lock(mutex_);
  if (count_++ == 0) first_ = file + ": " + warning;
}

void KeptWarnings::report() const {
  if (count_ > 0)
    cli::print_message("note",
                       fmt::format("{} images decode with a warning and are kept; the first: {}", count_, first_));
}

int report_bad_images(const CommonFlags& common, std::vector<data::BadRecord> bad, uint64_t images,
                      const char* skipped) {
  std::ranges::sort(bad, {}, &data::BadRecord::file);
  if (common.on_bad_image == "list") {
    for (const data::BadRecord& one : bad) fmt::print("{}: {}\n", cli::escaped(one.file), cli::escaped(one.reason));
    fmt::print("{} images, {} of them cannot be used\n", images, bad.size());
    return bad.empty() ? 0 : static_cast<int>(Fault::data);
  }
  if (bad.empty()) return 0;
  if (common.on_bad_image == "skip") {
    cli::print_message(
        "note", fmt::format("{} of {} images {}, listed in {}/{}; the first: {}: {}", bad.size(), images, skipped,
                            common.output, data::kSkippedFile, bad.front().file, bad.front().reason));
    return 0;
  }
  for (const data::BadRecord& one : bad) cli::print_message("error", one.file + ": " + one.reason);
  return static_cast<int>(Fault::data);
}

namespace {

uint64_t images_in(const std::vector<data::Split>& splits) {
  uint64_t images = 0;
  for (const data::Split& split : splits) images += split.count;
  return images;
}

// Produces all records without writing them.
int list_bad_images(const CommonFlags& common, const std::vector<data::Split>& splits) {
  std::vector<data::BadRecord> bad;
  std::mutex mutex;
  for (const data::Split& split : splits)
    for_each_index(split.count, common.threads, split.name + " images", [&](size_t i) {
      if (cli::stop_requested()) throw Error("stopped");
      try {
        split.make(i);
      } catch (const data::BadRecordError& error) {
        const std::lock_guard lock(mutex);
        bad.push_back(error.record());
      }
    });
  return report_bad_images(common, std::move(bad), images_in(splits));
}

}  // namespace

int write_set(const CommonFlags& common, const std::vector<data::Split>& splits, const std::string& source,
              const KeptWarnings& warnings) {
  if (common.on_bad_image == "list") {
    int code = 0;
    until_stopped([&] { code = list_bad_images(common, splits); });
    warnings.report();
    return code;
  }
  data::SkippedRecords skipped;
  const std::string done = concat(common.output, "/", data::kNewShards);
  until_stopped([&] {
    std::optional<cli::Progress> progress;
    const data::Split* shown = nullptr;
    data::ShardOptions options{.directory = common.output,
                               .threads = common.threads,
                               .source = source,
                               .skips_bad_records = common.on_bad_image == "skip"};
    options.resumed = [&](size_t shards) {
      cli::print_message("note", fmt::format("{} shards are complete in {}: resuming after them", shards, done));
    };
    try {
      skipped = data::write_shards(options, splits, [&](const data::Split& split, uint64_t images) {
        if (&split != shown) progress.emplace(split.name + " images", split.count);
        shown = &split;
        progress->update(images);
        if (cli::stop_requested()) throw Error("stopped");
        if (images == split.count) progress->finish();
      });
    } catch (const Error& error) {
      progress.reset();
      if (const auto* bad = dynamic_cast<const data::BadRecordsError*>(&error))
        report_bad_images(common, bad->records(), images_in(splits));
      std::error_code unknown;
      if (std::filesystem::exists(done, unknown))
        cli::print_message(
            "note", concat("the shards that are complete stay in ", done, ": the same command resumes after them"));
      if (const auto* bad = dynamic_cast<const data::BadRecordsError*>(&error))
        throw Error(Fault::data, fmt::format("{} of {} images cannot be used, and no set is written; repair or remove "
                                             "them, or skip them with --on_bad_image=skip",
                                             bad->records().size(), images_in(splits)));
      throw;
    }
  });
  for (const data::Split& split : splits) {
    uint64_t images = split.count;
    for (const auto& [shard, records] : skipped)
      if (data::split_of_shard(shard) == split.name) images -= records.size();
    fmt::print("{0}: {1} images in {2} shards, {3}/{0}-*-of-{2:05}\n", split.name, images, split.shards,
               cli::escaped(common.output));
  }
  warnings.report();
  return report_bad_images(common, data::all_of(skipped), images_in(splits));
}

void write_class_names(const CommonFlags& common, const std::vector<std::string>& classes, int64_t first_label) {
  if (common.on_bad_image == "list") return;
  data::ClassNames names;
  for (size_t i = 0; i < classes.size(); ++i) names[first_label + static_cast<int64_t>(i)] = cli::escaped(classes[i]);
  AtomicFile file(concat(common.output, "/", data::kClassNamesFile));
  file.write(data::to_text(names));
  file.commit();
}

data::Split split_of_tree(const std::string& name, int64_t shards, std::vector<data::TreeImage> images, int64_t seed,
                          std::string (*make)(const data::TreeImage&, std::string& warning), KeptWarnings& warnings) {
  struct Tree {
    std::vector<data::TreeImage> images;
    std::vector<uint64_t> order;
  };
  const size_t count = images.size();
  const auto tree =
      std::make_shared<const Tree>(Tree{std::move(images), data::shuffled(count, static_cast<uint64_t>(seed))});
  return {name, shards, count, [make, tree, &warnings](uint64_t i) {
            const data::TreeImage& image = tree->images[tree->order[i]];
            std::string warning, record = make(image, warning);
            warnings.add(image.path, warning);
            return record;
          }};
}

}  // namespace dtrain::dataset
