// Plain copies of gzip files, for random access to their records.
//   <cache>/unpacked/<digest>.tfrecord       a copy, named by the content of the gzip file
//   <cache>/unpacked/<digest>.lock           held by the process that makes the copy
//   <cache>/unpacked/<name>-<hash>.source    size, time of change and digest of the gzip file at one path
#pragma once

#include <string>

#include "data/cache.h"

namespace dtrain::data {

// `path` itself, or where it is a gzip file the path of its plain copy in the cache. There is one copy of equal files,
// wherever they lie and however often they are touched; it is made once, by one of the processes that want it. A copy
// ends where no further record can be found. When a copy is made, those that nobody has read for 30 days are removed,
// and what killed processes left.
// Throws Error(Fault::data) for a broken gzip stream and for what does not begin with a record, before more than that
// record is unpacked. Throws Error(Fault::resource), with the command to unpack it by hand, where there is no place for
// the copy or it would exceed the limit.
std::string plain_record_file(const std::string& path, const CacheOptions& cache);

}  // namespace dtrain::data
