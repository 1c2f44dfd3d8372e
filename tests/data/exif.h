// JPEGs with EXIF blocks.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace dtrain {

// Adds an EXIF block with this orientation to `jpeg`, in either byte order.
inline std::vector<std::byte> with_orientation(const std::vector<std::byte>& jpeg, int orientation, bool big = false) {
  using namespace std::string_view_literals;
  constexpr std::string_view kLittle =
      "\xff\xe1\x00\x22"
      "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0?\0\0\0\0\0\0\0"sv;
  constexpr std::string_view kBig =
      "\xff\xe1\x00\x22"
      "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0?\0\0\0\0\0\0"sv;
  std::vector<std::byte> tagged(jpeg.begin(), jpeg.begin() + 2);
  for (const char c : big ? kBig : kLittle) tagged.push_back(static_cast<std::byte>(c == '?' ? orientation : c));
  tagged.insert(tagged.end(), jpeg.begin() + 2, jpeg.end());
  return tagged;
}

}  // namespace dtrain
