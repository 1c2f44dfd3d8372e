// Struct arrays of MAT-files of version 5, which MATLAB writes by default up to the option -v7.
//   file = header of 128 bytes | element...;  element = type, size (4 bytes each) | data | zeros up to 8 bytes
//   compressed element = a zlib stream of one element
// (MathWorks, "MAT-File Format", chapter 1)
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::data {

// A field of one struct: a text or numbers; neither for other types of values and for empty or long ones.
struct MatValue {
  std::string text{};  // UTF-8; other characters than ASCII are kept only where the file has them in UTF-8
  std::vector<double> numbers{};
};

// Values of the named fields, in this order, of each struct of the array `variable`, in column-major order. Memory is
// bounded, whatever the file says: 16 MiB of compressed data are unpacked, and a value has up to 64 numbers. Throws
// Error(Fault::data) with `name`, which identifies the file, for other formats, for damaged or truncated files, and
// where the variable or a field is missing.
std::vector<std::vector<MatValue>> read_mat_structs(std::string_view bytes, const std::string& name,
                                                    const std::string& variable, std::span<const std::string> fields);

}  // namespace dtrain::data
