// Decompressed copies of gzip files, for random access to their records.
//   <cache>/unpacked/<digest>.tfrecord       a copy, named by the content of the gzip file
//   <cache>/unpacked/<digest>.lock           held by the process that makes the copy
//   <cache>/unpacked/<name>-<hash>.source    size, modification time and digest of the gzip file at one path
#pragma once

#include <string>

#include "dtrain/data/cache.h"

namespace dtrain::data {

// Returns `path`, or for a gzip file the path of its decompressed copy in the cache. Files of equal content share a
// copy, whatever their path and modification time; it is made once, by one of the processes that need it. The copy ends
// after the last valid record. Making a copy also removes copies that were not read for 30 days, and leftovers of
// killed processes.
// Throws Error(Fault::data) for a broken gzip stream, and for a file that does not begin with a record, after
// decompressing at most that record. Throws Error(Fault::resource), with the command to decompress by hand, if there is
// no place for the copy or it would exceed the limit.
std::string plain_record_file(const std::string& path, const CacheOptions& cache);

}  // namespace dtrain::data
