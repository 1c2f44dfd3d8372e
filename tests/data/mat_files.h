// Synthetic MAT-files of version 5 and archives of ImageNet's development kit.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/data/tar_files.h"
#include "tests/testing.h"

namespace dtrain {

template <class T>
std::string bytes_of_number(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Of up to 4 bytes in short form, as MATLAB writes them.
inline std::string mat_element(uint32_t type, const std::string& data, bool padded = true) {
  const auto size = static_cast<uint32_t>(data.size());
  if (size > 0 && size <= 4) return bytes_of_number(size << 16 | type) + data + std::string(4 - size, '\0');
  const std::string element = bytes_of_number(type) + bytes_of_number(size) + data;
  return padded ? element + std::string((8 - size % 8) % 8, '\0') : element;
}

inline std::string mat_array(uint32_t kind, uint32_t rows, uint32_t columns, const std::string& name,
                             const std::string& data) {
  return mat_element(14, mat_element(6, bytes_of_number(kind) + bytes_of_number(uint32_t{0})) +
                             mat_element(5, bytes_of_number(rows) + bytes_of_number(columns)) + mat_element(1, name) +
                             data);
}

// A number as MATLAB stores it: in the smallest type.
inline std::string mat_number(double value) {
  const bool small = value >= 0 && value < 256 && value == static_cast<uint8_t>(value);
  return mat_array(
      6, 1, 1, "",
      small ? mat_element(2, bytes_of_number(static_cast<uint8_t>(value))) : mat_element(9, bytes_of_number(value)));
}

// Text in 16-bit units, as MATLAB writes it.
inline std::string mat_text(const std::string& text) {
  std::string units;
  for (const char letter : text) units += std::string{letter, '\0'};
  return mat_array(4, 1, static_cast<uint32_t>(text.size()), "", mat_element(4, units));
}

// `values`: arrays, struct by struct.
inline std::string mat_structs(const std::string& name, const std::vector<std::string>& fields,
                               const std::vector<std::string>& values) {
  std::string names;
  for (const std::string& field : fields) names += field + std::string(32 - field.size(), '\0');
  std::string data = mat_element(5, bytes_of_number(uint32_t{32})) + mat_element(1, names);
  for (const std::string& value : values) data += value;
  return mat_array(2, static_cast<uint32_t>(values.size() / fields.size()), 1, name, data);
}

inline std::string mat_compressed(const std::string& element) {
  uLongf size = compressBound(element.size());
  std::string packed(size, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(element.data()),
           element.size());
  return mat_element(15, packed.substr(0, size), false);
}

inline std::string mat_file(const std::string& elements, const std::string& order = "IM") {
  std::string header = "MATLAB 5.0 MAT-file, Platform: GLNXA64";
  header.resize(124, ' ');
  return header + std::string("\0\1", 2) + order + elements;
}

inline std::string gzip_of(const std::string& bytes) {
  z_stream z{};
  deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&z, bytes.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  deflate(&z, Z_FINISH);
  packed.resize(packed.size() - z.avail_out);
  deflateEnd(&z);
  return packed;
}

// The development kit: 1000 classes, 2 inner nodes of the hierarchy, and 50,000 labels.
struct SyntheticDevkit {
  std::vector<std::pair<double, std::string>> synsets{};  // ILSVRC2012_ID and WNID
  std::string truth{}, meta_name = "data/meta.mat";
  bool compressed = true;

  SyntheticDevkit() {
    for (int id = 1002; id >= 1; --id) synsets.emplace_back(id, wordnet_id(id));
    for (int image = 0; image < 50'000; ++image) truth += std::to_string(class_of(image)) + "\n";
  }
  // A permutation without the order of the ids.
  static std::string wordnet_id(int id) { return fmt::format("n{:08}", (id * 7919) % 100'003); }
  // Of the i-th image: 50 of each class.
  static int class_of(int image) { return image * 37 % 1000 + 1; }

  std::string meta() const {
    std::vector<std::string> values;
    for (const auto& [id, name] : synsets)
      for (const std::string& value : {mat_number(id), mat_text(name), mat_text("tench, Tinca tinca"),
                                       mat_array(6, 1, 2, "", mat_element(4, std::string("\1\0\2\0", 4)))})
        values.push_back(value);
    const std::string array = mat_structs("synsets", {"ILSVRC2012_ID", "WNID", "words", "children"}, values);
    return mat_file(compressed ? mat_compressed(array) : array);
  }
  std::string archive() const { return archive(meta()); }
  std::string archive(const std::string& meta_bytes) const {
    const std::string root = "ILSVRC2012_devkit_t12/";
    return gzip_of(tar_of({{root + "readme.txt", "text"},
                           {root + meta_name, meta_bytes},
                           {root + "data/ILSVRC2012_validation_ground_truth.txt", truth}}));
  }
  std::vector<std::string> labels() const {
    std::vector<std::string> all;
    for (int image = 0; image < 50'000; ++image) all.push_back(wordnet_id(class_of(image)));
    return all;
  }
};

}  // namespace dtrain
