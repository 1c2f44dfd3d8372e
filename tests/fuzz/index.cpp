// Index files beside shards.
#include <cstring>

#include "dtrain/data/record_index.h"
#include "dtrain/io/record_file.h"
#include "libdtrain/io/crc32c.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtrain;
  static const RecordFile file = [] {
    const std::string path = fuzz::folder() / "records";
    RecordWriter writer(path, Compression::none);
    for (const char* record : {"first", "", "third"}) writer.append(std::string_view(record));
    writer.finish();
    return RecordFile(path);
  }();
  std::string bytes = fuzz::text_of(data, size);
  if (bytes.size() >= 4) {
    const uint32_t crc = crc32c(bytes.data(), bytes.size() - 4);
    std::memcpy(bytes.data() + bytes.size() - 4, &crc, sizeof crc);
  }
  return fuzz::expect(Fault::data, [&] {
    write_file(fuzz::folder() / ".records.dtidx", bytes);
    const data::RecordIndex index = data::RecordIndex::open(file, "");
    std::vector<std::byte> buffer;
    for (uint64_t i = 0; i < index.size(); ++i) file.read_record_at(index.offset(i), index.length(i), i, buffer);
  });
}
