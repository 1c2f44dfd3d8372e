#include "apps/report/read_run.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "apps/report/log_events.h"
#include "apps/report/metrics.h"
#include "apps/report/samples.h"
#include "apps/report/timelines.h"
#include "dtrain/core/error.h"
#include "libdtrain/io/text_lines.h"

namespace dtrain::report {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNotices = 500;  // per run

// Regular files and folders in it, sorted by name.
std::vector<std::string> entries_of(const std::string& folder, bool folders) {
  std::vector<std::string> names;
  try {
    for (const auto& entry : fs::directory_iterator(folder))
      if (folders ? entry.is_directory() : entry.is_regular_file()) names.push_back(entry.path().string());
  } catch (const fs::filesystem_error& error) {
    throw Error(Fault::resource, fmt::format("{}: {}", folder, error.code().message()));
  }
  std::ranges::sort(names);
  return names;
}

void read_metrics(const std::string& path, size_t pictures, RunData& run) {
  if (path.ends_with(".csv"))
    read_csv(path, run);
  else if (path.ends_with("stats.json"))
    read_stats(path, run);
  else if (is_prediction(first_line(path)))
    read_predictions(path, pictures, run);
  else
    read_json_lines(path, run);
}

void read_folder(const std::string& folder, size_t pictures, RunData& run) {
  const std::vector<std::string> files = entries_of(folder, false);
  for (const std::string& path : files)
    if (path.ends_with(".jsonl") || path.ends_with(".csv")) read_metrics(path, pictures, run);
  for (const std::string& path : files) {
    if (path.ends_with("/stats.json") && run.curves.empty())
      read_stats(path, run);
    else if (path.ends_with(".log"))
      read_log(path, run);
    else if (path.ends_with(".json") && !path.ends_with("/stats.json") && is_timeline(path))
      read_timeline(path, run);
  }
  read_state_files(folder, run);
  read_checkpoints(folder, run);
  for (const std::string& inner : entries_of(folder, true))
    if (fs::exists(inner + "/gallery.json")) read_gallery(inner, run);
}

bool is_empty(const RunData& run) {
  return run.curves.empty() && run.checkpoints.empty() && run.lanes.empty() && run.samples.empty() &&
         run.settings.empty();
}

}  // namespace

RunData read_run(const std::string& path, size_t pictures) {
  RunData run{.path = path};
  fs::path plain(path);
  if (plain.filename().empty()) plain = plain.parent_path();
  run.name = plain.filename().string();
  std::error_code failure;
  if (fs::is_directory(path, failure))
    read_folder(path, pictures, run);
  else
    read_metrics(path, pictures, run);
  if (is_empty(run))
    throw Error(Fault::data, path +
                                 ": no run, expected a folder with a metrics file (*.jsonl, *.csv), stats.json or "
                                 "checkpoints, or a metrics file");
  if (run.notices.size() > kMostNotices) {
    const size_t more = run.notices.size() - kMostNotices;
    run.notices.resize(kMostNotices);
    run.notices.push_back(fmt::format("{}: {} more notices are left out", path, more));
  }
  order_curves(run.curves);
  take_rank_lanes(run);
  return run;
}

}  // namespace dtrain::report
