// Line-by-line reading of text files.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "dtrain/core/error.h"

namespace dtrain {

struct TextLine {
  uint64_t number = 0;   // from 1
  std::string text{};    // without line terminator
  bool is_long = false;  // longer than 64 KiB; `text` holds the first 64 KiB
  bool is_cut = false;   // the file ends without a line terminator
};

// Memory for one line only. Throws Error(fault) as InputFile does.
void for_each_line(const std::string& path, const std::function<void(const TextLine& line)>& take,
                   Fault fault = Fault::data);

// First line, empty if there is none.
std::string first_line(const std::string& path);

}  // namespace dtrain
