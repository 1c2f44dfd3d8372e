// Small BMP, GIF, WebP and TIFF files, made by image_formats.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/testing.h"

namespace dtrain::data {

struct ImageFile {
  const char* name;
  int width, height, orientation;
  uint32_t crc;  // of the stored pixels
  const char* hex;
};

constexpr ImageFile kImageFiles[] = {
#include "tests/data/image_formats.inc"
};

inline std::vector<std::byte> file_of(const ImageFile& one) {
  const std::string_view hex = one.hex;
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

inline std::vector<std::byte> file_of(std::string_view name) {
  for (const ImageFile& one : kImageFiles)
    if (one.name == name) return file_of(one);
  ADD_FAILURE() << "there is no " << name;
  return {};
}

}  // namespace dtrain::data
