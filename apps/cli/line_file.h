// A text file for appending lines, such as a log.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "dtrain/io/atomic_file.h"

namespace dtrain::cli {

// Buffers lines in memory until the file is opened, because its folder may be locked by another process. Appends to
// existing content, after terminating a truncated last line.
class LineFile {
 public:
  // Throws Error(Fault::config) for anything but a regular file, Error(Fault::resource) if it cannot be written.
  void open(const std::string& path);
  // Throws Error(Fault::resource) if it cannot be written.
  void append(std::string_view line);

 private:
  std::string waiting_;
  std::optional<OutputFile> file_;
};

}  // namespace dtrain::cli
