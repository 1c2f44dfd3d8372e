// IDX files: arrays of bytes as MNIST's images and labels come, plain or in gzip.
//   0, 0, 8 (unsigned bytes), number of dimensions | u32 size of each dimension, big endian | the bytes
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
  std::vector<uint32_t> shape{};  // of 1 to 4 dimensions; the first counts the items
  std::vector<uint8_t> bytes{};   // of all items, one after another

  uint64_t items() const { return shape[0]; }
  uint64_t item_bytes() const { return items() > 0 ? bytes.size() / items() : 0; }
  std::span<const uint8_t> item(uint64_t i) const {
    return std::span(bytes).subspan(static_cast<size_t>(i * item_bytes()), static_cast<size_t>(item_bytes()));
  }
  // Where an item begins in the file, or in what gzip packs.
  uint64_t offset_of(uint64_t i) const { return 4 + 4 * shape.size() + i * item_bytes(); }
};

// The whole array. Throws Error(Fault::data) naming file and offset where the file is of another kind, ends early or
// goes on after the array's end. Memory is taken only for bytes that are there.
IdxArray read_idx(const std::string& path);

// "60000 x 28 x 28"
std::string shape_text(const IdxArray& array);

// Whether a file of this name is one: *-idx3-ubyte, *.idx1-ubyte and the like, each also with .gz.
bool has_idx_name(const std::string& name);

}  // namespace dtrain::data
