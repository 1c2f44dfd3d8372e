// What the commands share: the common flags, which files are read, and a thread per file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apps/cli/flags.h"
#include "apps/dataset/commands.h"
#include "libdtrain/core/error.h"

namespace dtrain::dataset {

// Calls work(i) for all i < count, on as many threads, 0: one per core. Progress counts `what`; it is silent where that
// is empty. After an exception no more calls begin, and it is rethrown once the others are done.
void for_each_index(size_t count, int64_t threads, const std::string& what, const std::function<void(size_t)>& work);

// The files that a command reads.
struct DataFiles {
  std::vector<std::string> paths;
  std::set<std::string> folders;  // those whose files are all among the paths
  int64_t threads = 0;            // that read them, a file each; 0: one per core

  // Calls work(i) for every file, with progress where there are several. Returns the Error of each file that had one.
  std::vector<std::optional<Error>> for_each(const std::function<void(size_t)>& work) const;
};

// From "DIR|FILE... [--threads N]": each place itself, or, of a folder, its files and those of its folders train,
// validation, val, valid and test, sorted by name: *-of-*, *.tfrecord(s) and *.record, with `idx` *-idx*-ubyte too,
// each also with .gz. None where help or the version was asked for, and printed. Throws Error where there are no files.
// `declare` adds flags of one command.
std::optional<DataFiles> parse_data_files(const Arguments& argv, const std::string& about, bool idx,
                                          const std::function<void(cli::FlagSet&)>& declare = {});

// Whether the name is that of a TFRecord file: *-of-*, *.tfrecord(s) or *.record, each also with .gz.
bool has_record_name(const std::string& name);

// Whether the file's name says that it is an IDX file.
bool is_idx_file(const std::string& path);

// A line on stderr for each; the exit code of the first.
int report(const std::vector<std::optional<Error>>& errors);

}  // namespace dtrain::dataset
