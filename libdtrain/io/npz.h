// NumPy's archives of arrays: a ZIP archive whose members NAME.npy have a header in Python's notation before their data
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, versions 1 to 3).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "libdtrain/core/types.h"
#include "libdtrain/io/zip.h"

namespace dtrain {

struct NpyHeader {
  std::string dtype{};   // "f2", "f4", "f8", "i4", "i8" or "u1"
  bool fortran = false;  // the first dimension varies fastest
  Shape shape{};
  size_t bytes_of_element() const { return static_cast<size_t>(dtype[1] - '0'); }
};

// "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", in any order. Throws Error(fault) saying what was
// expected; pickled objects, records, big-endian numbers and other types are refused.
NpyHeader parse_npy_header(std::string_view text, Fault fault = Fault::data);

struct NpzEntry {
  std::string name{};  // without ".npy"
  NpyHeader array{};
  uint64_t data = 0;  // where the elements begin in the member
  size_t member = 0;  // in the archive
};

// An open file whose headers have been checked against the sizes of their members. Failures throw Error(fault) naming
// the file and the member.
class NpzFile {
 public:
  explicit NpzFile(const std::string& path, Fault fault = Fault::data);

  const std::string& path() const { return zip_.path(); }
  const std::vector<NpzEntry>& entries() const { return entries_; }  // in the order of the file
  const NpzEntry* find(const std::string& name) const;
  // The elements, row-major, whatever their order in the file; each is rounded to the nearest float.
  std::vector<float> read(const NpzEntry& entry) const;

 private:
  NpzEntry read_header(size_t member) const;

  ZipFile zip_;
  Fault fault_;
  std::vector<NpzEntry> entries_;
  std::map<std::string, size_t> by_name_;
};

}  // namespace dtrain
