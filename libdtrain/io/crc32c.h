// CRC-32C (Castagnoli), the checksum of TFRecord files and of our manifests.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dtrain {

// CRC-32C of `size` bytes. `crc` is that of the bytes before them: crc32c(b, m, crc32c(a, n)) covers a, then b. Uses
// the processor's CRC instruction where it has one.
uint32_t crc32c(const void* data, size_t size, uint32_t crc = 0);

// The same by table lookup, on any processor.
uint32_t crc32c_portable(const void* data, size_t size, uint32_t crc = 0);

// TFRecord stores its checksums rotated and shifted, so that a CRC over bytes that hold a CRC stays meaningful.
constexpr uint32_t mask_crc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace dtrain
