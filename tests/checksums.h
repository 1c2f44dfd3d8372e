// Recomputes checksums of modified bytes, so that tests reach the code behind the check.
#pragma once

#include <cstring>
#include <string>

#include "dtrain/io/record_file.h"
#include "libdtrain/io/crc32c.h"

namespace dtrain {

// Recomputes the length checksum of each TFRecord.
inline void repair_record_headers(std::string& bytes) {
  for (uint64_t at = 0; bytes.size() - at >= kRecordHeader;) {
    const uint32_t crc = mask_crc32c(crc32c(bytes.data() + at, 8));
    std::memcpy(bytes.data() + at + 8, &crc, sizeof crc);
    uint64_t length;
    std::memcpy(&length, bytes.data() + at, sizeof length);
    const uint64_t left = bytes.size() - at - kRecordHeader;
    if (left < kRecordFooter || length > left - kRecordFooter) return;
    at += kRecordHeader + length + kRecordFooter;
  }
}

inline uint32_t crc32(const char* data, size_t size) {
  uint32_t crc = ~0u;
  for (size_t i = 0; i < size; ++i) {
    crc ^= static_cast<uint8_t>(data[i]);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

// Recomputes the checksum of each PNG chunk.
inline void repair_png_chunks(std::string& png) {
  for (size_t at = 8; at + 12 <= png.size();) {
    uint32_t length;
    std::memcpy(&length, png.data() + at, sizeof length);
    length = __builtin_bswap32(length);
    if (length > png.size() - at - 12) return;
    const uint32_t crc = __builtin_bswap32(crc32(png.data() + at + 4, length + 4));
    std::memcpy(png.data() + at + 8 + length, &crc, sizeof crc);
    at += 12 + length;
  }
}

}  // namespace dtrain
