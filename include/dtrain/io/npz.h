// NumPy archives (.npz): a ZIP archive of NAME.npy members, each with a header in Python syntax before the data
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, versions 1 to 3).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dtrain/core/types.h"

namespace dtrain {

class ZipFile;

struct NpyHeader {
  std::string dtype{};   // "f4": a float, an integer or b1 (boolean) of 1 to 8 bytes
  bool fortran = false;  // column-major
  Shape shape{};
  size_t bytes_of_element() const { return static_cast<size_t>(dtype[1] - '0'); }
};

// Parses "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", keys in any order. Throws Error(fault) stating
// what was expected. Object arrays, structured types, big-endian and other types are refused.
NpyHeader parse_npy_header(std::string_view text, Fault fault = Fault::data);

struct NpzEntry {
  std::string name{};  // without ".npy"
  NpyHeader array{};
  uint64_t data = 0;  // offset of the elements in the member
  size_t member = 0;  // index in the archive
};

// Open file with validated headers and member sizes. Failures throw Error(fault) naming file and member.
class NpzFile {
 public:
  explicit NpzFile(const std::string& path, Fault fault = Fault::data);

  const std::string& path() const;
  const std::vector<NpzEntry>& entries() const { return entries_; }  // in file order
  const NpzEntry* find(const std::string& name) const;
  // Elements in row-major order, whatever their order in the file, rounded to nearest f32.
  std::vector<float> read(const NpzEntry& entry) const;
  // The same in the array's own type.
  std::string read_bytes(const NpzEntry& entry) const;

 private:
  NpzEntry read_header(size_t member) const;

  std::shared_ptr<const ZipFile> zip_;
  Fault fault_;
  std::vector<NpzEntry> entries_;
  std::map<std::string, size_t> by_name_;
};

}  // namespace dtrain
