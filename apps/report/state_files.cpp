#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/report/read_run.h"
#include "dtrain/core/error.h"
#include "dtrain/io/input_file.h"
#include "libdtrain/io/file_format.h"
#include "libdtrain/io/json_limits.h"
#include "libdtrain/io/text_lines.h"
#include "libdtrain/train/checkpoint_files.h"

namespace dtrain::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Json read_json(const std::string& path) {
  const JsonLimits limits{.values = 1'000'000};
  const std::string text = read_text(path, limits.bytes);
  return parse_json<Json>(text, path, Fault::data, limits);
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\""), end = text.find_last_not_of(" \t\r\"");
  return begin == text.npos ? "" : text.substr(begin, end - begin + 1);
}

// `name = value  # origin`; skips comments and table headers.
void read_config(const std::string& path, RunData& run) {
  for_each_line(path, [&](const TextLine& line) {
    const size_t equals = line.text.find('=');
    if (line.text.starts_with('#') || equals == line.text.npos) return;
    std::string value = line.text.substr(equals + 1);
    if (const size_t comment = value.rfind("  # "); comment != value.npos) value.resize(comment);
    run.settings["--" + trimmed(line.text.substr(0, equals))] = trimmed(value);
  });
}

// Member of an object, or null.
Json member_of(const Json& json, const char* key) { return json.is_object() ? json.value(key, Json()) : Json(); }

// {"evaluations": [{"step": N, "values": {NAME: number or null, ...}}, ...]}
void add_evaluations(const Json& json, const std::string& path, RunData& run) {
  const Json evaluations = member_of(json, "evaluations");
  const auto is_evaluation = [](const Json& one) {
    return member_of(one, "step").is_number() && member_of(one, "values").is_object();
  };
  if (!evaluations.is_array() || !std::ranges::all_of(evaluations, is_evaluation))
    throw Error(Fault::data, path + ": expected evaluations, each with a step and values");
  for (const Json& one : evaluations)
    for (const auto& [name, value] : one["values"].items()) {
      if (!value.is_number() && !value.is_null()) continue;
      if (value.is_null()) ++run.not_finite;
      run.curves["eval_" + name].push_back(
          {one["step"].get<double>(), value.is_null() ? std::nan("") : value.get<double>()});
    }
}

// {"checkpoint_step": N, "starts": COUNT, "error": TEXT}
void add_starts(const Json& marker, const std::string& path, RunData& run) {
  const Json step = member_of(marker, "checkpoint_step"), starts = member_of(marker, "starts"),
             error = member_of(marker, "error");
  if (!step.is_number_unsigned() || !starts.is_number_unsigned() || !error.is_string())
    throw Error(Fault::data, path + ": expected checkpoint_step, starts and error");
  if (starts.get<uint64_t>() == 0) return;  // the first start has made no step yet
  const auto text = error.get<std::string>();
  LogEvent event{.kind = EventKind::failure, .file = "starts.json", .step = step.get<uint64_t>()};
  event.text = fmt::format("{} starts from step {} without a checkpoint{}", starts.get<uint64_t>(), event.step,
                           text.empty() ? "" : "; the last one ended with: " + text);
  run.events.push_back(event);
}

// A damaged file does not prevent the report.
template <class Read>
void attempt(const std::string& path, RunData& run, const Read& read) {
  std::error_code failure;
  if (!fs::is_regular_file(path, failure)) return;
  try {
    read();
  } catch (const Error& error) {
    const std::string what = error.what();
    run.notices.push_back(what.find(path) == what.npos ? path + ": " + what : what);
  }
}

std::string time_of(const fs::path& path) {
  std::error_code failure;
  const fs::file_time_type time = fs::last_write_time(path, failure);
  if (failure) return "";
  return fmt::format("{:%Y-%m-%d %H:%M:%S}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::file_clock::to_sys(time))));
}

uint64_t bytes_of(const fs::path& folder) {
  uint64_t bytes = 0;
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure)) {
    const uintmax_t size = fs::file_size(at->path(), failure);
    if (!failure) bytes += size;
    failure.clear();
  }
  return bytes;
}

}  // namespace

void read_checkpoints(const std::string& folder, RunData& run) {
  const std::string checkpoints = folder + "/checkpoints";
  std::error_code failure;
  if (!fs::is_directory(checkpoints, failure)) return;
  for (const uint64_t step : list_checkpoints(checkpoints)) {
    const std::string path = checkpoint_path(checkpoints, step), manifest = path + "/MANIFEST.json";
    run.checkpoints.push_back({step, bytes_of(path), looks_complete(path), time_of(manifest)});
    if (run.checkpoints.back().complete) continue;
    try {
      require_known_format(path);
      run.notices.push_back(path + ": not all of its files are there with the sizes that its manifest has");
    } catch (const FormatError& error) {
      run.notices.emplace_back(error.what());
    }
  }
  if (run.checkpoints.empty()) return;
  const std::string state = checkpoint_path(checkpoints, run.checkpoints.back().step) + "/state.json";
  attempt(state, run, [&] {
    const TrainState recorded = train_state_from(read_text(state, JsonLimits{}.bytes, Fault::checkpoint), state);
    for (const auto* texts : {&recorded.identity, &recorded.settings})
      for (const auto& [key, value] : *texts) run.settings[key] = value;
  });
}

void read_state_files(const std::string& folder, RunData& run) {
  const std::string config = folder + "/config.toml", starts = folder + "/starts.json";
  const std::string evaluations = folder + "/evaluations.json";
  attempt(config, run, [&] { read_config(config, run); });
  attempt(evaluations, run, [&] { add_evaluations(read_json(evaluations), evaluations, run); });
  attempt(starts, run, [&] { add_starts(read_json(starts), starts, run); });
}

}  // namespace dtrain::report
