#include "data/index_file.h"

#include <cstdint>
#include <cstring>
#include <filesystem>

#include "dtrain/core/error.h"
#include "dtrain/data/cache.h"
#include "dtrain/io/atomic_file.h"
#include "dtrain/io/input_file.h"
#include "dtrain/io/remote_path.h"
#include "libdtrain/io/crc32c.h"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

// By its mode: root can write despite read-only modes.
bool is_read_only(const fs::path& folder) {
  using fs::perms;
  constexpr perms kWritable = perms::owner_write | perms::group_write | perms::others_write;
  std::error_code unknown;
  return (fs::status(folder, unknown).permissions() & kWritable) == perms::none;
}

void write_index(const std::string& place, const std::string& text) {
  make_directories(system_files(), directory_of(place));
  AtomicFile file(place);
  file.write(text);
  file.commit(/*durable=*/false);
}

}  // namespace

std::vector<std::string> index_places(const std::string& path, const std::string& cache_directory) {
  const fs::path indexed(path);
  std::vector<std::string> places;
  if (!is_remote(path)) places.push_back(indexed.parent_path() / concat(".", indexed.filename().string(), ".dtidx"));
  if (!cache_directory.empty()) places.push_back(cache_directory + "/index/" + cached_name(path) + ".dtidx");
  return places;
}

std::optional<std::string> load_index(const std::string& place, size_t limit) {
  uint32_t crc;
  std::string text;
  try {
    text = read_text(place, limit + sizeof crc);
  } catch (const Error&) {
    return std::nullopt;
  }
  if (text.size() < sizeof crc) return std::nullopt;
  const size_t body = text.size() - sizeof crc;
  std::memcpy(&crc, text.data() + body, sizeof crc);
  if (crc != crc32c(text.data(), body)) return std::nullopt;
  text.resize(body);
  return text;
}

void save_index(const std::string& path, const std::string& cache_directory, std::string body) {
  const uint32_t crc = crc32c(body.data(), body.size());
  body.append(reinterpret_cast<const char*>(&crc), sizeof crc);
  std::vector<std::string> places = index_places(path, cache_directory);
  if (!is_remote(path) && is_read_only(fs::absolute(path).parent_path())) places.erase(places.begin());
  for (const std::string& place : places) {
    try {
      write_index(place, body);
      return;
    } catch (const Error&) {
      // Read-only or full: the next place.
    }
  }
}

}  // namespace dtrain::data
