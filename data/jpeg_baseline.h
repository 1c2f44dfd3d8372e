// A decoder of our own for what nearly all photographs are: baseline JPEGs, grey or YCbCr in one scan, and sound. About
// twice as fast as libjpeg-turbo, and equal to it bit for bit; all else is left to it. Private to data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/image.h"
#include "data/jpeg_huffman.h"

namespace dtrain::data {

// What the markers before the scan say.
struct BaselineFrame {
  struct Component {
    int h = 1, v = 1;                       // sampling factors
    std::array<uint16_t, 64> quantizers{};  // natural order
    HuffmanCode dc, ac;
  };
  int width = 0, height = 0;
  int restart_interval = 0;  // 0: none
  int components = 0;        // 1: grey, 3: YCbCr
  std::array<Component, 3> component;
};

// Whether decoders in hardware are made for such an image: its sampling is a usual one, and its scan has no markers but
// the restarts that belong there, down to the end marker. `scan` as below.
bool suits_hardware(const BaselineFrame& frame, std::span<const std::byte> scan);

class BaselineDecoder {
 public:
  BaselineDecoder();
  ~BaselineDecoder();

  // Sampling factors are 1 or 2, and those of the first component the largest.
  static bool supports(const BaselineFrame& frame);

  // Writes the pixels of `window` to `rgb`, in rows of 3 * window.width bytes; kRowSlack bytes after them may be
  // written too. `scan` is the file from the first entropy-coded byte on. Returns false where a table is not sound, or
  // the data is not, down to the last row that is needed; where that is the image's last row, down to the end marker.
  bool decode(const BaselineFrame& frame, std::span<const std::byte> scan, const Window& window,
              const DecodeOptions& options, uint8_t* rgb);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::data
