// Opens and decodes an image as a loader worker does.
#pragma once

#include <vector>

#include "dtrain/data/image.h"
#include "tests/fuzz/fuzz.h"

namespace dtrain::fuzz {

// The first byte selects the whole image or a window.
inline int decode(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const int choice = data[0];
  // Exact size on the heap, for AddressSanitizer.
  const std::vector<std::byte> encoded(reinterpret_cast<const std::byte*>(data + 1),
                                       reinterpret_cast<const std::byte*>(data + size));
  static data::ImageDecoder decoder{{.limits = {.max_pixels = 1 << 17, .max_scans = 20}}};
  return expect(Fault::data, [&] {
    const data::ImageInfo info = decoder.open(encoded);
    data::Window window{0, 0, info.width, info.height};
    if (choice % 2 == 1) {
      window.x = choice * 31 % info.width;
      window.y = choice * 17 % info.height;
      window.width = 1 + choice * 7 % (info.width - window.x);
      window.height = 1 + choice * 5 % (info.height - window.y);
    }
    const data::ImageView view = decoder.decode(window);
    uint64_t sum = 0;
    for (int y = 0; y < view.height; ++y)
      for (int i = 0; i < 3 * view.width + data::ImageView::kRowPadding; ++i) sum += view.row(y)[i];
    if (view.width != window.width || view.height != window.height || sum == ~uint64_t{0}) std::abort();
  });
}

}  // namespace dtrain::fuzz
