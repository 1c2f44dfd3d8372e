// Rows of samples of a JPEG to rows of RGB: chroma brought to full size, colours converted. Bit for bit as
// libjpeg-turbo. Private to data.
#pragma once

#include <cstdint>
#include <vector>

namespace dtrain::data {

// Bytes after the wanted ones of a row that may be read, or written.
constexpr int kRowSlack = 64;

// Brings the rows of one component to full size.
class Upsampler {
 public:
  // The image is `across` times wider and `down` times higher than the component (1 or 2), whose rows have `width`
  // samples. `fancy`: by a triangle filter, else by replication.
  void start(int across, int down, bool fancy, int width);
  // Pixels [begin, end) of a row, from the row of samples that it lies in and the nearest of the others, which lies
  // below or above. Both begin with sample `first`, and go two samples beyond the pixels where the image does. Valid
  // until the next call.
  const uint8_t* row(const uint8_t* own, const uint8_t* other, bool other_below, int first, int begin, int end);

 private:
  int across_ = 1, down_ = 1, width_ = 0;
  bool fancy_ = false;
  std::vector<int16_t> sums_;
  std::vector<uint8_t> pixels_;
};

// [width] each to [width, 3].
void ycc_to_rgb(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, int width, uint8_t* rgb);
void grey_to_rgb(const uint8_t* grey, int width, uint8_t* rgb);

}  // namespace dtrain::data
