// Independent reader of TensorBoard event files: framing, checksums and protobuf.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/event_values.h"
#include "tests/files.h"

namespace dtrain {

struct ReadEvent {
  double wall_time = 0;
  uint64_t step = 0;
  std::string version{};
  bool start = false;  // of a run
  std::vector<std::pair<std::string, float>> scalars{};
  std::map<std::string, ReadHistogram> histograms{};
  std::map<std::string, ReadImage> images{};
  std::map<std::string, std::string> texts{};
  std::map<std::string, std::string> sessions{};  // data of the HParams plugin, by tag
};

// Bitwise CRC from the polynomial.
inline uint32_t slow_masked_crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
  }
  crc = ~crc;
  return std::rotr(crc, 15) + 0xa282ead8u;
}

// A value of the plugin named in its metadata.
inline void read_plugin_value(const std::string& tag, const std::multimap<uint64_t, ReadField>& parts,
                              ReadEvent& event) {
  const auto data = read_message(read_message(parts.find(9)->second.bytes).find(1)->second.bytes);
  const std::string& plugin = data.find(1)->second.bytes;
  const auto tensor = read_message(parts.find(8)->second.bytes);
  const uint64_t type = tensor.find(1)->second.bits;
  if (plugin == "text" && type == 7) event.texts[tag] = tensor.find(8)->second.bytes;
  if (plugin == "hparams" && type == 1) event.sessions[tag] = data.find(2)->second.bytes;
}

inline void read_value(std::string_view message, ReadEvent& event) {
  const auto parts = read_message(message);
  const std::string& tag = parts.find(1)->second.bytes;
  if (const auto one = parts.find(2); one != parts.end())
    event.scalars.emplace_back(tag, std::bit_cast<float>(static_cast<uint32_t>(one->second.bits)));
  if (const auto one = parts.find(4); one != parts.end()) event.images[tag] = read_image(one->second.bytes);
  if (const auto one = parts.find(5); one != parts.end()) event.histograms[tag] = read_histogram(one->second.bytes);
  if (parts.contains(9)) read_plugin_value(tag, parts, event);
}

inline ReadEvent read_event(std::string_view record) {
  ReadEvent event;
  for (const auto& [number, field] : read_message(record)) {
    if (number == 1) event.wall_time = std::bit_cast<double>(field.bits);
    if (number == 2) event.step = field.bits;
    if (number == 3) event.version = field.bytes;
    if (number == 7) event.start = read_message(field.bytes).find(1)->second.bits == 1;
    if (number != 5) continue;
    for (const auto& [one, value] : read_message(field.bytes)) read_value(value.bytes, event);
  }
  return event;
}

// All complete records; skips a truncated last record, throws for any other damage.
inline std::vector<ReadEvent> read_events(const std::string& path) {
  const std::string file = read_file(path);
  std::vector<ReadEvent> events;
  for (size_t at = 0; at + 12 <= file.size();) {
    uint64_t length = 0;
    uint32_t crc = 0;
    std::memcpy(&length, &file[at], 8);
    std::memcpy(&crc, &file[at + 8], 4);
    if (crc != slow_masked_crc32c(std::string_view(file).substr(at, 8)))
      throw std::runtime_error("checksum of a length");
    if (length + 16 > file.size() - at) break;
    const std::string_view body = std::string_view(file).substr(at + 12, length);
    std::memcpy(&crc, &file[at + 12 + length], 4);
    if (crc != slow_masked_crc32c(body)) throw std::runtime_error("checksum of a record");
    events.push_back(read_event(body));
    at += length + 16;
  }
  return events;
}

// Event files of a folder, in TensorBoard's reading order.
inline std::vector<std::string> event_files_in(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().find("tfevents") != std::string::npos) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// TensorBoard's view of a folder: values by tag and step, without those purged by a later run.
inline std::map<std::string, std::map<uint64_t, float>> shown_scalars(const std::filesystem::path& folder) {
  std::map<std::string, std::map<uint64_t, float>> shown;
  for (const std::string& file : event_files_in(folder))
    for (const ReadEvent& event : read_events(file)) {
      if (event.start)
        for (auto& [tag, steps] : shown) steps.erase(steps.lower_bound(event.step), steps.end());
      for (const auto& [tag, value] : event.scalars) shown[tag][event.step] = value;
    }
  return shown;
}

}  // namespace dtrain
