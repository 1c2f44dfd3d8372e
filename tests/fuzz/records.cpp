// TFRecord files, plain and gzip: sequential reading past bad records, and by index.
#include "dtrain/data/record_index.h"
#include "dtrain/io/record_file.h"
#include "tests/checksums.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtrain;
  std::string bytes = fuzz::text_of(data, size);
  repair_record_headers(bytes);
  return fuzz::expect(Fault::data, [&] {
    const std::string path = fuzz::file_of("records", bytes);
    RecordReader reader(path, 1 << 20);
    for (;;) {
      try {
        if (!reader.next()) break;
      } catch (const RecordError&) {  // the next call goes on after it
      }
    }
    const RecordFile file(path, 1 << 20);
    const data::RecordIndex index = data::RecordIndex::scan(file);
    std::vector<std::byte> buffer;
    for (uint64_t i = 0; i < index.size(); ++i) file.read_record_at(index.offset(i), index.length(i), i, buffer);
  });
}
