// Chroma upsampling and conversion from YCbCr to RGB, row by row. Bit-exact with libjpeg-turbo. Private to data.
#pragma once

#include <cstdint>
#include <vector>

namespace dtrain::data {

// Bytes after a row that may be read or written.
constexpr int kRowSlack = 64;

// Upsamples the rows of one component.
class Upsampler {
 public:
  // The image is `across` times wider and `down` times higher (1 or 2) than the component, whose rows have `width`
  // samples. `fancy`: triangle filter, else replication.
  void start(int across, int down, bool fancy, int width);
  // Pixels [begin, end) of a row, from its row of samples and the nearest neighbour row below or above. Both rows begin
  // with sample `first` and extend two samples beyond the pixels, as far as the image does. Valid until the next call.
  const uint8_t* row(const uint8_t* own, const uint8_t* other, bool other_below, int first, int begin, int end);

 private:
  int across_ = 1, down_ = 1, width_ = 0;
  bool fancy_ = false;
  std::vector<int16_t> sums_;
  std::vector<uint8_t> pixels_;
};

// [width] per channel -> [width, 3].
void ycc_to_rgb(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, int width, uint8_t* rgb);
void grey_to_rgb(const uint8_t* grey, int width, uint8_t* rgb);

}  // namespace dtrain::data
