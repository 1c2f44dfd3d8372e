#include "dtrain/data/record_index.h"

#include <cstring>
#include <optional>

#include "data/index_file.h"
#include "dtrain/data/cache.h"
#include "libdtrain/io/crc32c.h"

namespace dtrain::data {
namespace {

// Body of an index file: header, `count` + 1 offsets.
struct IndexHeader {
  char magic[8] = {'D', 'T', 'I', 'D', 'X', '0', '0', '2'};
  uint64_t file_bytes = 0;
  int64_t modified = 0;
  uint64_t count = 0;
  uint64_t checksum = 0;
};

}  // namespace

RecordIndex RecordIndex::scan(const RecordFile& file) {
  RecordIndex index;
  uint64_t offset = 0;
  try {
    while (offset < file.size()) {
      const uint64_t length = file.length_at(offset, index.size());
      const uint32_t crc = file.stated_crc_at(offset, length);
      index.checksum_ = crc32c(&crc, sizeof crc, crc32c(&length, sizeof length, index.checksum_));
      offset += kRecordHeader + length + kRecordFooter;
      index.offsets_.push_back(offset);
    }
  } catch (const RecordError& error) {
    index.fault_ = error.what();
  }
  return index;
}

RecordIndex RecordIndex::open(const RecordFile& file, const std::string& cache_directory) {
  const int64_t modified = file.revision();
  RecordIndex index;
  for (const std::string& place : index_places(file.path(), cache_directory))
    if (index.load(place, file.size(), modified)) return index;
  index = scan(file);
  if (index.fault_.empty()) save_index(file.path(), cache_directory, index.body(modified));
  return index;
}

bool RecordIndex::load(const std::string& path, uint64_t file_bytes, int64_t modified) {
  // Every record has at least its framing.
  const uint64_t records = file_bytes / (kRecordHeader + kRecordFooter);
  const std::optional<std::string> body = load_index(path, sizeof(IndexHeader) + (records + 1) * sizeof(uint64_t));
  IndexHeader header;
  const IndexHeader expected;
  if (!body || body->size() < sizeof header + sizeof(uint64_t)) return false;
  std::memcpy(&header, body->data(), sizeof header);
  if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0 || header.file_bytes != file_bytes ||
      header.modified != modified || header.count != (body->size() - sizeof header) / sizeof(uint64_t) - 1)
    return false;
  checksum_ = static_cast<uint32_t>(header.checksum);
  offsets_.resize(header.count + 1);
  std::memcpy(offsets_.data(), body->data() + sizeof header, offsets_.size() * sizeof(uint64_t));
  return true;
}

std::string RecordIndex::body(int64_t modified) const {
  IndexHeader header;
  header.file_bytes = offsets_.back();
  header.modified = modified;
  header.count = size();
  header.checksum = checksum_;
  std::string text(reinterpret_cast<const char*>(&header), sizeof header);
  text.append(reinterpret_cast<const char*>(offsets_.data()), offsets_.size() * sizeof(uint64_t));
  return text;
}

}  // namespace dtrain::data
