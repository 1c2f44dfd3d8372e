// Built-in decoder of valid baseline JPEGs, grey or YCbCr in one scan, as most photographs are. About twice as fast as
// libjpeg-turbo and bit-exact with it; libjpeg-turbo decodes everything else. Private to data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/jpeg_huffman.h"
#include "dtrain/data/image.h"

namespace dtrain::data {

// Frame parameters from the markers before the scan.
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

// Whether hardware decoders support the image: usual subsampling, and no markers in the scan except for the expected
// restarts, up to the end marker. `scan` as below.
bool suits_hardware(const BaselineFrame& frame, std::span<const std::byte> scan);

class BaselineDecoder {
 public:
  BaselineDecoder();
  ~BaselineDecoder();

  // Sampling factors of 1 or 2, the first component's being the largest.
  static bool supports(const BaselineFrame& frame);

  // Writes `window` to `rgb`, in rows of 3 * window.width bytes; may overwrite kRowSlack bytes behind them. `scan`
  // starts at the first entropy-coded byte. Returns false for an invalid table, or invalid data up to the last required
  // row (up to the end marker if that is the image's last row).
  bool decode(const BaselineFrame& frame, std::span<const std::byte> scan, const Window& window,
              const DecodeOptions& options, uint8_t* rgb);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::data
