// Files of text, line by line.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "libdtrain/core/error.h"

namespace dtrain {

struct TextLine {
  uint64_t number = 0;   // from 1 on
  std::string text{};    // without its end
  bool is_long = false;  // it has more than 64 KiB, and `text` the first of them
  bool is_cut = false;   // the file ends without the end of the line
};

// Memory is needed for one line. Throws Error(fault) as InputFile does.
void for_each_line(const std::string& path, const std::function<void(const TextLine& line)>& take,
                   Fault fault = Fault::data);

// The first line, empty where there is none.
std::string first_line(const std::string& path);

}  // namespace dtrain
