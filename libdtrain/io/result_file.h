// ResultFile: output to a user-specified file, FIFO, device or link target.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "dtrain/io/atomic_file.h"

namespace dtrain {

// Never replaces the named object by one of another kind. A regular or new file is written by AtomicFile at the end of
// its links, which are kept. FIFOs, devices, sockets and descriptors of this process, such as /dev/stdout, are written
// directly; opening a FIFO waits for its reader. Throws Error(Fault::config) for a directory or a link cycle,
// Error(Fault::resource) if it cannot be written.
class ResultFile {
 public:
  explicit ResultFile(const std::string& path, FileSystem& files = system_files());

  void write(std::string_view text) { output().write(text); }
  void commit();

  OutputFile& output() { return through_ ? *through_ : replaced_->output(); }

 private:
  std::optional<AtomicFile> replaced_;
  std::optional<OutputFile> through_;
};

// Regular file that ResultFile(path) would replace; empty if there is none.
std::string replaced_file(const std::string& path);

}  // namespace dtrain
