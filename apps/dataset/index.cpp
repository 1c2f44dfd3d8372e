// dtrain-data index: what a first training run would do, ahead of time.
#include <fmt/format.h>

#include "apps/cli/environment.h"
#include "apps/cli/flags.h"
#include "apps/dataset/commands.h"
#include "apps/dataset/files.h"
#include "data/record_index.h"

namespace dtrain::dataset {

int index(const Arguments& argv) {
  int64_t threads = 0;
  cli::FlagSet flags(argv.front(), "DIR|FILE... [flags]",
                     "Makes the index of each TFRecord file that has no valid one, beside the file or, where that is "
                     "read-only, in the cache folder; unpacks gzip files into the cache folder ($XDG_CACHE_HOME/dtrain "
                     "or ~/.cache/dtrain). Training does the same when it starts.");
  flags.add("threads", threads, "worker threads, a file each; 0: one per core", cli::kNotNegative);
  const std::vector<std::string> places = flags.parse(argv);
  if (flags.wants_help()) {
    fmt::print("{}", flags.help());
    return 0;
  }
  const std::vector<std::string> files = record_files(places);
  std::vector<uint64_t> records(files.size());
  std::vector<std::string> faults(files.size());
  for_each_file(files, threads, "files", [&](size_t i) {
    const RecordFile file(data::plain_record_file(files[i], cli::cache_directory()));
    const data::RecordIndex found = data::RecordIndex::open(file, cli::cache_directory());
    records[i] = found.size();
    faults[i] = found.fault();
  });
  uint64_t total = 0, damaged = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    total += records[i];
    damaged += !faults[i].empty();
    if (!faults[i].empty()) fmt::print(stderr, "error: {}\n", faults[i]);
  }
  fmt::print("{} files, {} records, {} damaged files\n", files.size(), total, damaged);
  return damaged ? static_cast<int>(Fault::data) : 0;
}

}  // namespace dtrain::dataset
