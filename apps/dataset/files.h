// What the commands that read data sets share: which files, and a thread per file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace dtrain::dataset {

// Each place itself, or, of a folder, its TFRecord files sorted by name: *-of-* and *.tfrecord(s), *.record. Throws
// Error where there is none.
std::vector<std::string> record_files(const std::vector<std::string>& places);

// Calls work(i) for every file, on `threads` threads (0: one per core), with progress in `what`. Rethrows the first
// failure.
void for_each_file(const std::vector<std::string>& files, int64_t threads, const std::string& what,
                   const std::function<void(size_t)>& work);

}  // namespace dtrain::dataset
