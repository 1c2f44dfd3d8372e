#include "apps/report/metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "dtrain/core/error.h"
#include "dtrain/io/input_file.h"
#include "libdtrain/io/json_limits.h"
#include "libdtrain/io/text_lines.h"

namespace dtrain::report {
namespace {

using Json = nlohmann::json;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

void add(RunData& run, const std::string& name, double step, double value) {
  if (!std::isfinite(value)) {
    value = kNaN;
    ++run.not_finite;
  }
  run.curves[name].push_back({step, value});
}

// False if it is not an object of numbers with a step.
bool add_object(const Json& object, const char* step_key, RunData& run) {
  if (!object.is_object() || !object.contains(step_key) || !object[step_key].is_number()) return false;
  const auto step = object[step_key].get<double>();
  if (!(step >= 0)) return false;
  for (const auto& [key, value] : object.items()) {
    if (key == step_key || key == "epoch_num") continue;
    if (value.is_number() || value.is_null()) add(run, key, step, value.is_null() ? kNaN : value.get<double>());
  }
  return true;
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"')
      fields.back() += line[i++];
    else if (line[i] == '"')
      quoted = !quoted;
    else if (line[i] == ',' && !quoted)
      fields.emplace_back();
    else if (line[i] != '\r')
      fields.back() += line[i];
  }
  return fields;
}

bool to_number(const std::string& text, double& number) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() && end == text.data() + text.size();
}

bool add_row(const std::vector<std::string>& names, const std::string& line, RunData& run) {
  const std::vector<std::string> fields = fields_of(line);
  std::vector<double> numbers(fields.size(), kNaN);
  if (fields.size() != names.size() || fields[0].empty()) return false;
  for (size_t i = 0; i < fields.size(); ++i)
    if (!fields[i].empty() && !to_number(fields[i], numbers[i])) return false;
  for (size_t i = 1; i < fields.size(); ++i)
    if (!fields[i].empty()) add(run, names[i], numbers[0], numbers[i]);
  return numbers[0] >= 0;
}

[[noreturn]] void refuse(const std::string& path, uint64_t line, const char* expected) {
  throw Error(Fault::data, fmt::format("{}, line {}: no line of a metrics file, expected {}", path, line, expected));
}

}  // namespace

void read_json_lines(const std::string& path, RunData& run) {
  for_each_line(path, [&](const TextLine& line) {
    if (line.text.empty()) return;
    if (add_object(parse_json_line<Json>(line.text), "step", run)) return;
    if (!line.is_cut) refuse(path, line.number, "a JSON object with the number step");
    run.notices.push_back(fmt::format("{}: skipped the truncated last line, as of a killed run", path));
  });
}

void read_csv(const std::string& path, RunData& run) {
  std::vector<std::string> names;
  for_each_line(path, [&](const TextLine& line) {
    if (line.text.empty()) return;
    if (line.text.starts_with("step,") && !line.is_cut) {
      names = fields_of(line.text);
    } else if (line.is_cut) {  // a number may be truncated
      run.notices.push_back(fmt::format("{}: skipped the truncated last line, as of a killed run", path));
    } else if (names.empty() || !add_row(names, line.text, run)) {
      refuse(path, line.number, "numbers below a header line that begins with step");
    }
  });
}

void read_stats(const std::string& path, RunData& run) {
  constexpr JsonLimits kLimits{.bytes = size_t{256} << 20, .values = 20'000'000};
  const std::string text = read_text(path, kLimits.bytes);
  const auto rows = parse_json<Json>(text, path, Fault::data, kLimits);
  const auto is_row = [&](const Json& row) { return add_object(row, "global_step", run); };
  if (!rows.is_array() || !std::ranges::all_of(rows, is_row))
    throw Error(Fault::data, path + ": expected an array of objects with the number global_step");
}

void order_curves(Curves& curves) {
  for (auto& [name, points] : curves) {
    std::ranges::stable_sort(points, {}, &Point::step);
    size_t kept = 0;
    for (size_t i = 0; i < points.size(); ++i)
      if (i + 1 == points.size() || points[i + 1].step != points[i].step) points[kept++] = points[i];
    points.resize(kept);
  }
}

}  // namespace dtrain::report
