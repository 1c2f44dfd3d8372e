// dtrain-data index: builds the indices that a first training run would build.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "apps/cli/options/cache.h"
#include "apps/dataset/files.h"
#include "data/unpacked_file.h"
#include "dtrain/data/record_index.h"
#include "dtrain/io/remote_cache.h"

namespace dtrain::dataset {

int index(const Arguments& argv) {
  cli::CacheFlags cache_flags;
  const auto files =
      parse_data_files(argv,
                       "Builds the missing or invalid indices of TFRecord files, beside the file or, if that is "
                       "read-only, in the cache folder ($XDG_CACHE_HOME/dtrain or ~/.cache/dtrain). Unpacks gzip files "
                       "into the cache folder. Training does the same at its start.",
                       false, [&](cli::FlagSet& flags) {
                         cache_flags.declare(flags);
                         cache_flags.declare_remote(flags);
                       });
  if (!files) return 0;
  const data::CacheOptions cache = cache_flags.options();
  set_remote_cache(cache_flags.remote_cache());

  std::vector<uint64_t> records(files->paths.size());
  const auto errors = files->for_each([&](size_t i) {
    const RecordFile file(data::plain_record_file(files->paths[i], cache));
    const data::RecordIndex found = data::RecordIndex::open(file, cache.directory);
    records[i] = found.size();
    if (!found.fault().empty()) throw Error(Fault::data, found.fault());
  });

  const int code = report(errors);
  const uint64_t total = std::accumulate(records.begin(), records.end(), uint64_t{0});
  const auto failed = std::count_if(errors.begin(), errors.end(), [](const auto& error) { return error.has_value(); });
  fmt::print("{} files, {} records, {} files with errors\n", files->paths.size(), total, failed);
  return code;
}

}  // namespace dtrain::dataset
