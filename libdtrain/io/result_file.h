// Results where a user wants them: in a file, a FIFO, a device, or wherever a link leads.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "libdtrain/io/atomic_file.h"

namespace dtrain {

// What a user has named is written to and never replaced by something of another kind. A regular file, or one that is
// not there yet, is an AtomicFile in the place to which links lead, and the links stay. A FIFO, a device or a socket is
// written through as the bytes come, and so is a descriptor of this process, such as /dev/stdout; opening a FIFO waits
// for its reader. Throws Error(Fault::config) for a directory and for links in a circle, Error(Fault::resource) where
// it cannot be written.
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

// The regular file that ResultFile(path) would replace; empty where there is none.
std::string replaced_file(const std::string& path);

}  // namespace dtrain
