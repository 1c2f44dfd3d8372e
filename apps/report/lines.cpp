#include "apps/report/lines.h"

#include <algorithm>
#include <vector>

#include "libdtrain/io/input_file.h"

namespace dtrain::report {
namespace {

constexpr size_t kLongest = size_t{64} << 10;

// `take` returns whether to go on.
void read_lines(const std::string& path, const std::function<bool(const Line& line)>& take) {
  const InputFile file(path);
  std::vector<char> buffer(size_t{1} << 20);
  Line line{.number = 1};
  bool begun = false;
  for (uint64_t at = 0; at < file.size();) {
    const size_t size = file.read_some(at, buffer.data(), buffer.size());
    if (size == 0) break;
    at += size;
    for (auto begin = buffer.begin(), last = begin + static_cast<std::ptrdiff_t>(size); begin != last;) {
      const auto end = std::find(begin, last, '\n');
      const auto room = static_cast<std::ptrdiff_t>(kLongest - line.text.size());
      line.text.append(begin, begin + std::min(room, end - begin));
      begun = end == last;
      if (begun) break;
      if (!take(line)) return;
      line = {.number = line.number + 1};
      begin = end + 1;
    }
  }
  line.is_cut = true;
  if (begun) take(line);
}

}  // namespace

void for_each_line(const std::string& path, const std::function<void(const Line& line)>& take) {
  read_lines(path, [&](const Line& line) {
    take(line);
    return true;
  });
}

std::string first_line(const std::string& path) {
  std::string first;
  read_lines(path, [&](const Line& line) {
    first = line.text;
    return false;
  });
  return first;
}

}  // namespace dtrain::report
