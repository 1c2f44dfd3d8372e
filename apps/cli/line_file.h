// A text file that lines are appended to, such as a log that outlives the terminal.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "libdtrain/io/atomic_file.h"

namespace dtrain::cli {

// Lines wait in memory until the file is opened: it may be in a folder that another process holds, which is not known
// at once. What is there already stays; a last line that was cut off gets its end.
class LineFile {
 public:
  // Throws Error(Fault::config) for a link or anything but a regular file, Error(Fault::resource) where it cannot be
  // written.
  void open(const std::string& path);
  // Throws Error(Fault::resource) where it cannot be written.
  void append(std::string_view line);

 private:
  std::string waiting_;
  std::optional<OutputFile> file_;
};

}  // namespace dtrain::cli
