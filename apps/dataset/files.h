// Shared by the commands: common flags, input files, and a parallel loop over files.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apps/cli/flags.h"
#include "apps/dataset/commands.h"
#include "dtrain/core/error.h"

namespace dtrain::dataset {

// Parallel for: calls work(i) for all i < count on `threads` threads, 0: one per core. Shows progress in units of
// `what`, unless empty. After an exception no more calls begin; rethrows it when the others are done.
void for_each_index(size_t count, int64_t threads, const std::string& what, const std::function<void(size_t)>& work);

// Input files of a command.
struct DataFiles {
  std::vector<std::string> paths;
  std::set<std::string> folders;  // folders whose files are all among the paths
  int64_t threads = 0;            // worker threads, one file each; 0: one per core

  // Calls work(i) for every file, with progress if there are several. Returns the Errors by file.
  std::vector<std::optional<Error>> for_each(const std::function<void(size_t)>& work) const;
};

// Parses "DIR|FILE... [--threads N]". For a folder: its files and those of its subfolders train, validation, val, valid
// and test, sorted by name: *-of-*, *.tfrecord(s) and *.record, with `idx` also *-idx*-ubyte, each also with .gz. None
// after printing help or the version. Throws Error if there are no files. `declare` adds flags of one command.
std::optional<DataFiles> parse_data_files(const Arguments& argv, const std::string& about, bool idx,
                                          const std::function<void(cli::FlagSet&)>& declare = {});

// Whether the name is of a TFRecord file: *-of-*, *.tfrecord(s) or *.record, each also with .gz.
bool has_record_name(const std::string& name);

// Whether the name is of an IDX file.
bool is_idx_file(const std::string& path);

// The first of the names that exists as a folder in `root`, or "".
std::string existing_folder(const std::string& root, std::initializer_list<const char*> names);

// Prints each on stderr; returns the exit code of the first.
int report(const std::vector<std::optional<Error>>& errors);

}  // namespace dtrain::dataset
