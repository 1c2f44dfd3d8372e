// CRC-32C (Castagnoli), the checksum of TFRecord files and our manifests.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dtrain {

// CRC-32C of `size` bytes. `crc`: checksum of preceding bytes, so crc32c(b, m, crc32c(a, n)) covers a and b. Uses the
// CPU's CRC instruction if available.
uint32_t crc32c(const void* data, size_t size, uint32_t crc = 0);

// Table-driven version for any CPU.
uint32_t crc32c_portable(const void* data, size_t size, uint32_t crc = 0);

// TFRecord masks its checksums (rotate and add), so that CRCs of data that contains CRCs stay meaningful.
constexpr uint32_t mask_crc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace dtrain
