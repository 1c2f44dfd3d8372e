// dtrain-data check: reports all problems of a data set in any supported format.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/cli/command_line.h"
#include "apps/cli/run_main.h"
#include "apps/cli/stop_signals.h"
#include "apps/dataset/file_checks.h"
#include "apps/dataset/files.h"
#include "apps/dataset/writing.h"
#include "data/file_tree.h"
#include "dtrain/core/error.h"
#include "dtrain/io/atomic_file.h"

namespace dtrain::dataset {
namespace {

namespace fs = std::filesystem;

struct FoundFile {
  std::string path;
  Found how;
};

// Files of all arguments; folders that cannot be listed are problems.
std::vector<FoundFile> files_of(const std::vector<std::string>& places, FileProblems& found) {
  std::vector<FoundFile> files;
  std::set<std::string> image_folders;
  for (const std::string& place : places) {
    std::error_code unknown;
    if (!fs::is_directory(place, unknown)) {
      files.push_back({place, Found::named});
      continue;
    }
    const size_t problems_before = found.problems.size();
    const std::vector<fs::path> inner = data::files_below(place, [&](const std::string& folder, const Error& error) {
      found.add("folder that cannot be listed", folder, error.what());
    });
    if (inner.empty() && found.problems.size() == problems_before) found.add("empty folder", place, "holds no file");
    for (const fs::path& file : inner) {
      files.push_back({(fs::path(place) / file).string(), Found::in_folder});
      if (data::has_image_name(file.string())) image_folders.insert(directory_of(files.back().path));
    }
  }
  for (FoundFile& file : files)
    if (file.how == Found::in_folder && image_folders.contains(directory_of(file.path)))
      file.how = Found::beside_images;
  return files;
}

// TFRecord files, and folders that are checked completely.
DataFiles records_among(const std::vector<FoundFile>& files) {
  DataFiles records;
  for (const FoundFile& file : files) {
    if (!has_record_name(fs::path(file.path).filename().string())) continue;
    records.paths.push_back(file.path);
    if (file.how != Found::named) records.folders.insert(directory_of(file.path));
  }
  return records;
}

CheckResult check_places(const std::vector<std::string>& places, int64_t threads, size_t examples) {
  std::vector<FileProblems> problems(1);
  const std::vector<FoundFile> files = files_of(places, problems.front());
  CheckContext context(records_among(files));
  for (const std::string& fault : context.sets.faults()) {
    const size_t colon = std::min(fault.find(": "), fault.size());
    problems.front().add("incomplete set of shards", fault.substr(0, colon), fault);
  }
  std::vector<Check> checks;
  for (const FoundFile& file : files)
    std::ranges::move(checks_of(file.path, file.how, context), std::back_inserter(checks));
  problems.resize(1 + checks.size());
  for_each_index(checks.size(), threads, "files", [&](size_t i) {
    if (cli::stop_requested()) throw Error("stopped");
    checks[i](problems[i + 1]);
  });
  return summarize(problems, files.size(), examples);
}

void write_page(const std::string& path, const std::string& page) {
  AtomicFile file(path);
  file.write(page);
  file.commit(/*durable=*/false);
}

}  // namespace

int check(const Arguments& argv) {
  int64_t threads = 0, examples = 20;
  std::string html;
  bool json = false;
  cli::FlagSet flags(
      argv.front(), "DIR|FILE... [flags]",
      "Checks all files: decodes every image, also in tar archives and TFRecord files, verifies checksums, and reads "
      "IDX files, label files, and COCO annotations with the headers of their images. Prints all problems, grouped by "
      "kind, with counts and the first examples. The exit code is 2 if there is a fault.");
  flags.add("threads", threads, "worker threads; 0: one per core", cli::kThreads);
  flags.add("examples", examples, "maximum number of examples per kind", {0, 1'000'000});
  flags.add("json", json,
            R"(print {"files", "images", "records", "faults", "kinds": [{"kind", "fault", "count", )"
            R"("examples": [{"file", "reason"}]}]} instead)");
  flags.add("html", html, "HTML file for a report with thumbnails of damaged images");
  const auto places = cli::read_command_line(flags, argv);
  if (!places) return 0;
  DT_CHECK(!places->empty(), "no folder or file given; see --help");
  CheckResult result;
  until_stopped([&] { result = check_places(*places, threads, static_cast<size_t>(examples)); });
  fmt::print("{}", json ? as_json(result) : as_text(result));
  if (!html.empty()) write_page(html, as_html(result, fmt::format("Check of {}", fmt::join(*places, ", "))));
  return result.faults() > 0 ? static_cast<int>(Fault::data) : 0;
}

}  // namespace dtrain::dataset
