// What the commands share: the common flags, which files are read, and a thread per file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/flags.h"
#include "apps/dataset/commands.h"
#include "libdtrain/core/error.h"

namespace dtrain::dataset {

// The positional arguments; none where help or the version was asked for, and printed.
std::optional<Arguments> parse(cli::FlagSet& flags, const Arguments& argv);

// Each place itself, or, of a folder, its TFRecord files sorted by name: *-of-*, *.tfrecord(s) and *.record, each also
// with .gz. Throws Error where there is none.
std::vector<std::string> record_files(const std::vector<std::string>& places);

// Calls work(i) for every file, on `threads` threads (0: one per core), with progress where there are several. Returns
// the Error of each file that had one.
std::vector<std::optional<Error>> for_each_file(const std::vector<std::string>& files, int64_t threads,
                                                const std::function<void(size_t)>& work);

}  // namespace dtrain::dataset
