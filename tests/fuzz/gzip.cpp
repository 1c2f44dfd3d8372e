// gzip streams.
#include "libdtrain/io/gzip.h"

#include <vector>

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtrain;
  const InputFile file(fuzz::file_of("stream.gz", fuzz::text_of(data, size)));
  GzipReader reader(file);
  std::vector<char> buffer(1 << 16);
  for (size_t total = 0; total < 1 << 24;) {  // 16 MiB are enough to see
    const size_t got = reader.read(buffer.data(), buffer.size());
    total += got;
    if (got < buffer.size()) break;
  }
  return 0;
}
