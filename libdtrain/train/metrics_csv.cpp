#include "libdtrain/train/metrics_csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "dtrain/core/error.h"
#include "libdtrain/io/text_lines.h"

namespace dtrain {
namespace {

constexpr std::string_view kStepColumn = "step";

std::string csv_quoted(const std::string& name) {
  if (name.find_first_of(",\"\r\n") == name.npos) return name;
  std::string text = "\"";
  for (const char letter : name) text += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return text + "\"";
}

// Removes the first cell and its comma from `rest`.
std::string take_cell(std::string_view& rest) {
  std::string cell;
  bool inside = false;
  size_t at = 0;
  for (; at < rest.size() && (inside || rest[at] != ','); ++at) {
    if (rest[at] != '"') {
      cell += rest[at];
      continue;
    }
    const bool doubled = inside && at + 1 < rest.size() && rest[at + 1] == '"';
    if (doubled)
      cell += rest[at++];
    else
      inside = !inside;
  }
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return cell;
}

bool begins_as_header(std::string_view text) {
  return kStepColumn.starts_with(text.substr(0, kStepColumn.size())) &&
         (text.size() <= kStepColumn.size() || text[kStepColumn.size()] == ',');
}

[[noreturn]] void refuse_csv_line(const std::string& path, size_t number) {
  throw Error(Fault::data, concat("metrics file ", path, ", line ", number,
                                  ": not comma-separated values whose first column is the step; move the file away to "
                                  "start a new one"));
}

uint64_t csv_step_of(const std::string& line, const std::string& path, size_t number) {
  uint64_t step = 0;
  const char* const end = line.data() + line.size();
  const auto [stopped, problem] = std::from_chars(line.data(), end, step);
  if (problem != std::errc() || (stopped != end && *stopped != ',')) refuse_csv_line(path, number);
  return step;
}

}  // namespace

bool CsvColumns::read(std::string_view header) {
  names_.clear();
  if (take_cell(header) != kStepColumn) return false;
  while (!header.empty()) names_.push_back(take_cell(header));
  return true;
}

size_t CsvColumns::add(const Fields& fields) {
  const size_t before = names_.size();
  for (const auto& [name, value] : fields)
    if (std::ranges::find(names_, name) == names_.end()) names_.push_back(name);
  return names_.size() - before;
}

std::string CsvColumns::header() const {
  std::string text(kStepColumn);
  for (const std::string& name : names_) text += "," + csv_quoted(name);
  return text;
}

std::string CsvColumns::line(uint64_t step, const Fields& fields) const {
  std::string text = std::to_string(step);
  for (const std::string& name : names_) {
    text += ',';
    const auto field = std::ranges::find(fields, name, &Fields::value_type::first);
    if (field != fields.end() && std::isfinite(field->second)) text += nlohmann::json(field->second).dump();
  }
  return text;
}

std::string widened_csv(std::string_view text, const std::string& header, size_t more) {
  std::string wide = header + "\n";
  for (size_t at = text.find('\n'); at != text.npos && at + 1 < text.size();) {
    const size_t begin = at + 1;
    at = text.find('\n', begin);
    wide += text.substr(begin, at == text.npos ? text.npos : at - begin);
    wide += std::string(more, ',') + "\n";
  }
  return wide;
}

uintmax_t csv_length_to_keep(const std::string& path, uint64_t last_step, CsvColumns& columns) {
  uintmax_t kept = 0;
  bool keeps = true;
  const auto take = [&](const TextLine& line) {
    const bool is_header = line.number == 1;
    // The last line may be partial, e.g. after a full disk.
    const bool is_sound =
        !line.is_long && (!is_header || (line.is_cut ? begins_as_header(line.text) : columns.read(line.text)));
    if (!is_sound) refuse_csv_line(path, line.number);
    if (line.is_cut) return;
    keeps = (is_header || csv_step_of(line.text, path, line.number) <= last_step) && keeps;
    if (keeps) kept += line.text.size() + 1;
  };
  for_each_line(path, take, Fault::resource);
  if (last_step > 0) return kept;
  columns.clear();
  return 0;
}

}  // namespace dtrain
