#include "dtrain/data/record_index.h"

#include <cstring>
#include <filesystem>

#include "dtrain/data/cache.h"
#include "dtrain/io/atomic_file.h"
#include "libdtrain/io/crc32c.h"

namespace dtrain::data {
namespace {

// Layout of an index file: header, `count` + 1 offsets, CRC-32C of all before.
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
  const int64_t modified = modified_at(file.path());
  const std::filesystem::path path(file.path());
  std::vector<std::string> places{path.parent_path() / concat(".", path.filename().string(), ".dtidx")};
  if (!cache_directory.empty()) places.push_back(cache_directory + "/index/" + cached_name(file.path()) + ".dtidx");
  RecordIndex index;
  for (const std::string& place : places)
    if (index.load(place, file.size(), modified)) return index;
  index = scan(file);
  if (!index.fault_.empty()) return index;
  // Root can write despite read-only modes.
  using std::filesystem::perms;
  constexpr perms kWritable = perms::owner_write | perms::group_write | perms::others_write;
  std::error_code unknown;
  if ((std::filesystem::status(std::filesystem::absolute(path).parent_path(), unknown).permissions() & kWritable) ==
      perms::none)
    places.erase(places.begin());
  for (const std::string& place : places) {
    try {
      index.save(place, modified);
      break;
    } catch (const Error&) {
      // Read-only or full: try the next place. The index is only a cache.
    }
  }
  return index;
}

bool RecordIndex::load(const std::string& path, uint64_t file_bytes, int64_t modified) {
  std::string text;
  try {
    // Every record has at least its framing.
    const uint64_t records = file_bytes / (kRecordHeader + kRecordFooter);
    text = read_text(path, sizeof(IndexHeader) + (records + 1) * sizeof(uint64_t) + sizeof(uint32_t));
  } catch (const Error&) {
    return false;
  }
  IndexHeader header;
  const IndexHeader expected;
  if (text.size() < sizeof header + sizeof(uint64_t) + sizeof(uint32_t)) return false;
  std::memcpy(&header, text.data(), sizeof header);
  uint32_t crc;
  const size_t body = text.size() - sizeof crc;
  std::memcpy(&crc, text.data() + body, sizeof crc);
  if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0 || header.file_bytes != file_bytes ||
      header.modified != modified || header.count != (body - sizeof header) / sizeof(uint64_t) - 1 ||
      crc != crc32c(text.data(), body))
    return false;
  checksum_ = static_cast<uint32_t>(header.checksum);
  offsets_.resize(header.count + 1);
  std::memcpy(offsets_.data(), text.data() + sizeof header, offsets_.size() * sizeof(uint64_t));
  return true;
}

void RecordIndex::save(const std::string& path, int64_t modified) const {
  IndexHeader header;
  header.file_bytes = offsets_.back();
  header.modified = modified;
  header.count = size();
  header.checksum = checksum_;
  std::string text(reinterpret_cast<const char*>(&header), sizeof header);
  text.append(reinterpret_cast<const char*>(offsets_.data()), offsets_.size() * sizeof(uint64_t));
  const uint32_t crc = crc32c(text.data(), text.size());
  text.append(reinterpret_cast<const char*>(&crc), sizeof crc);
  make_directories(system_files(), directory_of(path));
  AtomicFile file(path);
  file.write(text);
  file.commit(/*durable=*/false);
}

}  // namespace dtrain::data
