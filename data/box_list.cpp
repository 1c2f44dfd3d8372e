#include "data/box_list.h"

#include <array>
#include <charconv>
#include <string_view>

#include "dtrain/core/error.h"
#include "dtrain/io/input_file.h"

namespace dtrain::data {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 30;

bool read_fraction(std::string_view text, float& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0 && value <= 1;
}

// Returns false for a malformed line.
bool read_line(std::string_view line, std::string& name, NormalizedBox& box) {
  std::array<std::string_view, 5> parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t comma = line.find(',');
    if ((comma == std::string_view::npos) != (i + 1 == parts.size())) return false;
    parts[i] = line.substr(0, comma);
    line.remove_prefix(comma == std::string_view::npos ? line.size() : comma + 1);
  }
  name = parts[0];
  return !name.empty() && read_fraction(parts[1], box.xmin) && read_fraction(parts[2], box.ymin) &&
         read_fraction(parts[3], box.xmax) && read_fraction(parts[4], box.ymax) && box.xmin <= box.xmax &&
         box.ymin <= box.ymax;
}

}  // namespace

std::map<std::string, std::vector<NormalizedBox>> read_box_list(const std::string& path) {
  const std::string text = read_text(path, kMaxBytes);
  std::map<std::string, std::vector<NormalizedBox>> lists;
  std::string name;
  size_t number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    NormalizedBox box;
    if (!read_line(line, name, box))
      throw Error(Fault::data, concat(path, ": line ", number, ": '", line.substr(0, 80),
                                      "', expected FILE,xmin,ymin,xmax,ymax with 0 <= min <= max <= 1"));
    lists[name].push_back(box);
  }
  return lists;
}

}  // namespace dtrain::data
