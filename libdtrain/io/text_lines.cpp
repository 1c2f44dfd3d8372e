#include "libdtrain/io/text_lines.h"

#include <algorithm>
#include <vector>

#include "dtrain/io/input_file.h"

namespace dtrain {
namespace {

constexpr size_t kLongest = size_t{64} << 10;

// `take` returns whether to continue. It receives a long line before its remainder is read.
void read_lines(const std::string& path, Fault fault, const std::function<bool(const TextLine& line)>& take) {
  const InputFile file(path, fault);
  std::vector<char> buffer(size_t{1} << 20);
  TextLine line{.number = 1};
  bool begun = false;
  for (uint64_t at = 0; at < file.size();) {
    const size_t size = file.read_some(at, buffer.data(), buffer.size());
    if (size == 0) break;
    at += size;
    for (auto begin = buffer.begin(), last = begin + static_cast<std::ptrdiff_t>(size); begin != last;) {
      const auto end = std::find(begin, last, '\n');
      const auto room = static_cast<std::ptrdiff_t>(kLongest - line.text.size());
      const bool was_long = line.is_long;
      line.text.append(begin, begin + std::min(room, end - begin));
      line.is_long = was_long || end - begin > room;
      begun = end == last;
      if (line.is_long && !was_long && !take(line)) return;
      if (begun) break;
      if (!line.is_long && !take(line)) return;
      line = {.number = line.number + 1};
      begin = end + 1;
    }
  }
  line.is_cut = true;
  if (begun && !line.is_long) take(line);
}

}  // namespace

void for_each_line(const std::string& path, const std::function<void(const TextLine& line)>& take, Fault fault) {
  read_lines(path, fault, [&](const TextLine& line) {
    take(line);
    return true;
  });
}

std::string first_line(const std::string& path) {
  std::string first;
  read_lines(path, Fault::data, [&](const TextLine& line) {
    first = line.text;
    return false;
  });
  return first;
}

}  // namespace dtrain
