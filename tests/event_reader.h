// TensorBoard's event files, read without the engine: framing, checksums and protobuf by hand.
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

#include "tests/files.h"

namespace dtrain {

struct ReadEvent {
  double wall_time = 0;
  uint64_t step = 0;
  std::string version{};
  bool start = false;  // of a run
  std::vector<std::pair<std::string, float>> scalars{};
};

// Bit by bit, as the polynomial says.
inline uint32_t slow_masked_crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
  }
  crc = ~crc;
  return std::rotr(crc, 15) + 0xa282ead8u;
}

// The fields of a message by number: whole and floating-point numbers as their bits, texts and messages as bytes.
struct ReadField {
  uint64_t bits = 0;
  std::string bytes{};
};
inline std::multimap<uint64_t, ReadField> read_message(std::string_view message) {
  std::multimap<uint64_t, ReadField> fields;
  size_t at = 0;
  const auto byte = [&] { return static_cast<uint8_t>(std::string(message).at(at++)); };
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const uint64_t group = byte();
      value |= (group & 127) << shift;
      if (group < 128) return value;
    }
  };
  const auto fixed = [&](int size) {
    uint64_t value = 0;
    for (int i = 0; i < size; ++i) value |= uint64_t{byte()} << 8 * i;
    return value;
  };
  while (at < message.size()) {
    const uint64_t tag = varint();
    ReadField field;
    if (tag % 8 == 0) field.bits = varint();
    if (tag % 8 == 1) field.bits = fixed(8);
    if (tag % 8 == 5) field.bits = fixed(4);
    if (tag % 8 == 2) {
      const uint64_t size = varint();
      if (size > message.size() - at) throw std::runtime_error("a field beyond the end of its message");
      field.bytes = message.substr(at, size);
      at += size;
    }
    fields.emplace(tag / 8, field);
  }
  return fields;
}

inline ReadEvent read_event(std::string_view record) {
  ReadEvent event;
  for (const auto& [number, field] : read_message(record)) {
    if (number == 1) event.wall_time = std::bit_cast<double>(field.bits);
    if (number == 2) event.step = field.bits;
    if (number == 3) event.version = field.bytes;
    if (number == 7) event.start = read_message(field.bytes).find(1)->second.bits == 1;
    if (number != 5) continue;
    for (const auto& [one, value] : read_message(field.bytes)) {
      const auto parts = read_message(value.bytes);
      event.scalars.emplace_back(parts.find(1)->second.bytes,
                                 std::bit_cast<float>(static_cast<uint32_t>(parts.find(2)->second.bits)));
    }
  }
  return event;
}

// All whole records; a last one that is cut off is passed over, any other damage throws.
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

// The event files of a folder, in the order in which TensorBoard reads them.
inline std::vector<std::string> event_files_in(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().find("tfevents") != std::string::npos) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// What TensorBoard shows of a folder: values by tag and step, without those that a later run has begun anew.
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
