// IDX files: byte arrays in MNIST's format, plain or gzip-compressed.
//   0, 0, 8 (unsigned bytes), number of dimensions | u32 size of each dimension, big endian | data
// (Y. LeCun, C. Cortes and C. Burges, "The MNIST database of handwritten digits", file formats)
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dtrain::data {

struct IdxArray {
  std::string path{};
  bool gzip = false;
  std::vector<uint32_t> shape{};  // 1 to 4 dimensions; the first is the number of items
  std::vector<uint8_t> bytes{};   // of all items, one after another

  uint64_t items() const { return shape[0]; }
  uint64_t item_bytes() const { return items() > 0 ? bytes.size() / items() : 0; }
  std::span<const uint8_t> item(uint64_t i) const {
    return std::span(bytes).subspan(static_cast<size_t>(i * item_bytes()), static_cast<size_t>(item_bytes()));
  }
  // Byte offset of an item in the uncompressed file.
  uint64_t offset_of(uint64_t i) const { return 4 + 4 * shape.size() + i * item_bytes(); }
};

// Reads the whole array. Throws Error(Fault::data) with file and offset for another format, a truncated file and
// trailing bytes. Allocates only as much as the file holds.
IdxArray read_idx(const std::string& path);

// "60000 x 28 x 28"
std::string shape_text(const IdxArray& array);

// Whether the file name is that of an IDX file: *-idx3-ubyte, *.idx1-ubyte and so on, optionally with .gz.
bool has_idx_name(const std::string& name);

}  // namespace dtrain::data
