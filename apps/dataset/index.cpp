// dtrain-data index: what a first training run would do, ahead of time.
#include <fmt/format.h>

#include "apps/cli/environment.h"
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
  const auto places = parse(flags, argv);
  if (!places) return 0;

  const std::vector<std::string> files = record_files(*places);
  std::vector<uint64_t> records(files.size());
  const auto errors = for_each_file(files, threads, [&](size_t i) {
    const RecordFile file(data::plain_record_file(files[i], cli::cache_directory()));
    const data::RecordIndex found = data::RecordIndex::open(file, cli::cache_directory());
    records[i] = found.size();
    if (!found.fault().empty()) throw Error(Fault::data, found.fault());
  });

  uint64_t total = 0, failed = 0;
  int code = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    total += records[i];
    if (!errors[i]) continue;
    ++failed;
    fmt::print(stderr, "error: {}\n", errors[i]->what());
    if (code == 0) code = static_cast<int>(errors[i]->fault());
  }
  fmt::print("{} files, {} records, {} files with errors\n", files.size(), total, failed);
  return code;
}

}  // namespace dtrain::dataset
