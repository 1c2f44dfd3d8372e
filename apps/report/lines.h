// Files of text, line by line.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace dtrain::report {

struct Line {
  uint64_t number = 0;  // from 1 on
  std::string text{};   // without its end
  bool is_cut = false;  // the file ends without the end of the line
};

// Memory is needed for one line. Of a line of more than 64 KiB the rest is left out. Throws Error as InputFile does.
void for_each_line(const std::string& path, const std::function<void(const Line& line)>& take);

// The first line, empty where there is none.
std::string first_line(const std::string& path);

}  // namespace dtrain::report
