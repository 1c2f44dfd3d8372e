// Decodes MCU row by MCU row. Keeps samples of two MCU rows, since upsampling at their border reads both.
#include "data/jpeg_baseline.h"

#include <algorithm>
#include <cstring>

#include "data/jpeg_idct.h"
#include "data/jpeg_rows.h"

namespace dtrain::data {
namespace {

constexpr int kBlock = 8;
constexpr uint8_t kFirstRestart = 0xD0, kEndOfImage = 0xD9;

int divide_up(int a, int b) { return (a + b - 1) / b; }

// Component: its tables, and the needed sample columns of two MCU rows, alternating.
struct Plane {
  int h = 1, v = 1;  // blocks per MCU
  int down = 1;      // vertical upsampling factor
  int height = 0;    // in samples, of the whole image
  int first = 0;     // first sample column that is kept
  BlockCoder coder;
  alignas(32) std::array<int16_t, 64> factors{};
  Upsampler upsampler;
  std::vector<uint8_t> samples;
  ptrdiff_t stride = 0;

  uint8_t* row(int y) { return samples.data() + (y & (2 * kBlock * v - 1)) * stride; }
};

}  // namespace

struct BaselineDecoder::State {
  // MCUs of the image and of the window, and the upsampling margin.
  struct Grid {
    int mcu_width, mcu_height, columns, rows;
    int first_column, end_column, first_row, end_row;
    int margin;
  };

  std::array<Plane, 3> planes;
  int components = 0;
  Dct dct = Dct::accurate;
  Grid grid{};
  std::vector<uint8_t> data;        // of the current segment
  std::span<const std::byte> rest;  // bytes of the file after it
  Segment segment;
  BitReader reader;
  int restart_interval = 0, until_restart = 0;
  uint8_t next_restart = kFirstRestart;
  alignas(32) std::array<int16_t, kBlockRoom> block{};

  void lay_out(const BaselineFrame& frame, const Window& window, bool fancy);
  bool prepare(const BaselineFrame& frame, const DecodeOptions& options);
  void next_segment();
  bool restart();
  bool read_row(int row);
  bool read_mcu(int row, int column);
  bool skip_mcu();
  void write_rows(const Window& window, int begin, int end, uint8_t* rgb);
};

// Sets up tables and sizes; false for an invalid Huffman table.
bool BaselineDecoder::State::prepare(const BaselineFrame& frame, const DecodeOptions& options) {
  dct = options.fast_dct ? Dct::fast : Dct::accurate;
  components = frame.components;
  const int h_max = frame.component[0].h, v_max = frame.component[0].v;
  for (size_t i = 0; i < static_cast<size_t>(components); ++i) {
    const BaselineFrame::Component& from = frame.component[i];
    Plane& plane = planes[i];
    // A single component is not interleaved, whatever its sampling factors.
    plane.h = components == 1 ? 1 : from.h;
    plane.v = components == 1 ? 1 : from.v;
    plane.down = v_max / from.v;
    plane.height = divide_up(frame.height, plane.down);
    plane.upsampler.start(h_max / from.h, plane.down, options.fancy_upsampling, divide_up(frame.width, h_max / from.h));
    make_factors(dct, from.quantizers.data(), plane.factors.data());
    if (!plane.coder.dc.build(from.dc) || !plane.coder.ac.build(from.ac)) return false;
  }
  return true;
}

void BaselineDecoder::State::lay_out(const BaselineFrame& frame, const Window& window, bool fancy) {
  Grid& g = grid;
  g.mcu_width = kBlock * planes[0].h;
  g.mcu_height = kBlock * planes[0].v;
  g.columns = divide_up(frame.width, g.mcu_width);
  g.rows = divide_up(frame.height, g.mcu_height);
  // Upsampling reads the neighbouring samples of both adjacent pixels.
  g.margin = fancy && components > 1 && planes[0].h * planes[0].v > 1 ? 2 : 0;
  g.first_column = std::max(0, window.x - g.margin) / g.mcu_width;
  g.end_column = divide_up(std::min(frame.width, window.x + window.width + g.margin), g.mcu_width);
  g.first_row = std::max(0, window.y - g.margin) / g.mcu_height;
  g.end_row = divide_up(std::min(frame.height, window.y + window.height + g.margin), g.mcu_height);
  for (size_t i = 0; i < static_cast<size_t>(components); ++i) {
    Plane& plane = planes[i];
    const int width = kBlock * plane.h;
    plane.first = g.first_column * width;
    plane.stride = (g.end_column - g.first_column) * width + kRowSlack;
    const auto bytes = static_cast<size_t>(2 * kBlock * plane.v * plane.stride);
    if (plane.samples.size() < bytes) plane.samples.resize(bytes);
  }
}

void BaselineDecoder::State::next_segment() {
  segment = read_segment(rest, data.data());
  rest = rest.subspan(segment.taken);
  // libjpeg reads ahead and warns at the end of the file; it decodes the last bytes of truncated files.
  constexpr size_t kAhead = 16;
  reader.start(data.data(), segment.marker != 0 ? segment.size : segment.size - std::min(segment.size, kAhead));
  until_restart = restart_interval;
  for (Plane& plane : planes) plane.coder.last_dc = 0;
}

bool BaselineDecoder::State::restart() {
  if (reader.left() < 0 || reader.left() >= 8 || segment.marker != next_restart) return false;
  next_restart = next_restart == kFirstRestart + 7 ? kFirstRestart : static_cast<uint8_t>(next_restart + 1);
  next_segment();
  return true;
}

bool BaselineDecoder::State::skip_mcu() {
  BitReader bits = reader;  // local copy for register allocation
  for (size_t i = 0; i < static_cast<size_t>(components); ++i)
    for (int n = planes[i].h * planes[i].v; n > 0; --n)
      if (read_block<false>(bits, planes[i].coder, nullptr, nullptr) == 0) return false;
  reader = bits;
  return true;
}

bool BaselineDecoder::State::read_mcu(int row, int column) {
  BitReader bits = reader;
  const uint8_t* const order = block_order(dct).data();
  for (size_t i = 0; i < static_cast<size_t>(components); ++i) {
    Plane& plane = planes[i];
    uint8_t* out = plane.row(row * kBlock * plane.v) + (column - grid.first_column) * kBlock * plane.h;
    for (int y = 0; y < plane.v; ++y, out += kBlock * plane.stride)
      for (int x = 0; x < plane.h; ++x) {
        const int count = read_block<true>(bits, plane.coder, order, block.data());
        if (count == 1)
          inverse_dct_flat(dct, block[0], plane.factors[0], out + x * kBlock, plane.stride);
        else
          inverse_dct(dct, block.data(), plane.factors.data(), out + x * kBlock, plane.stride);
        if (count == 0) return false;
      }
  }
  reader = bits;
  return true;
}

bool BaselineDecoder::State::read_row(int row) {
  for (int column = 0; column < grid.columns; ++column) {
    if (restart_interval > 0 && until_restart-- == 0) {
      if (!restart()) return false;
      --until_restart;
    }
    const bool wanted = row >= grid.first_row && column >= grid.first_column && column < grid.end_column;
    if (!(wanted ? read_mcu(row, column) : skip_mcu())) return false;
  }
  return true;
}

// Outputs rows [begin, end) of the image.
void BaselineDecoder::State::write_rows(const Window& window, int begin, int end, uint8_t* rgb) {
  const int left = window.x, right = window.x + window.width;
  for (int y = begin; y < end; ++y) {
    std::array<const uint8_t*, 3> rows{};
    for (size_t i = 0; i < static_cast<size_t>(components); ++i) {
      Plane& plane = planes[i];
      const bool below = y % plane.down != 0;
      const int own = y / plane.down, other = std::clamp(below ? own + 1 : own - 1, 0, plane.height - 1);
      rows[i] = plane.upsampler.row(plane.row(own), plane.row(other), below, plane.first, left, right);
    }
    uint8_t* const out = rgb + (y - window.y) * int64_t{3} * window.width;
    if (components == 1)
      grey_to_rgb(rows[0], window.width, out);
    else
      ycc_to_rgb(rows[0], rows[1], rows[2], window.width, out);
  }
}

BaselineDecoder::BaselineDecoder() : state_(std::make_unique<State>()) {}
BaselineDecoder::~BaselineDecoder() = default;

bool suits_hardware(const BaselineFrame& frame, std::span<const std::byte> scan) {
  const BaselineFrame::Component& luma = frame.component[0];
  for (size_t i = frame.components == 1 ? 0 : 1; i < static_cast<size_t>(frame.components); ++i)
    if (frame.component[i].h != 1 || frame.component[i].v != 1) return false;
  const int64_t mcus = int64_t{divide_up(frame.width, kBlock * luma.h)} * divide_up(frame.height, kBlock * luma.v);
  const int64_t restarts = frame.restart_interval > 0 ? (mcus - 1) / frame.restart_interval : 0;
  const auto* const end = reinterpret_cast<const uint8_t*>(scan.data()) + scan.size();
  int64_t seen = 0;
  for (const auto* at = end - scan.size(); at < end;) {
    at = static_cast<const uint8_t*>(std::memchr(at, 0xFF, static_cast<size_t>(end - at)));
    if (at == nullptr || ++at == end) return false;
    if (*at == 0xFF) continue;  // fill byte
    const uint8_t marker = *at++;
    if (marker == kEndOfImage) return seen == restarts;
    if (marker == 0) continue;  // stuffed data byte
    if (seen == restarts || marker != kFirstRestart + seen % 8) return false;
    ++seen;
  }
  return false;
}

bool BaselineDecoder::supports(const BaselineFrame& frame) {
  if (frame.components == 1) return true;
  if (frame.components != 3) return false;
  int blocks = 0;
  const BaselineFrame::Component& first = frame.component[0];
  for (const auto& [h, v, quantizers, dc, ac] : frame.component) {
    blocks += h * v;
    if (h < 1 || h > first.h || v < 1 || v > first.v) return false;
  }
  constexpr int kMostBlocks = 10;  // per MCU: T.81, B.2.3
  return first.h <= 2 && first.v <= 2 && blocks <= kMostBlocks;
}

bool BaselineDecoder::decode(const BaselineFrame& frame, std::span<const std::byte> scan, const Window& window,
                             const DecodeOptions& options, uint8_t* rgb) {
  State& s = *state_;
  if (!s.prepare(frame, options)) return false;
  s.lay_out(frame, window, options.fancy_upsampling);
  if (s.data.size() < scan.size() + kSegmentPadding) s.data.resize(scan.size() + kSegmentPadding);
  s.rest = scan;
  s.restart_interval = frame.restart_interval;
  s.next_restart = kFirstRestart;
  s.next_segment();
  const int bottom = window.y + window.height;
  int next = window.y;
  for (int row = 0; row < s.grid.end_row; ++row) {
    if (!s.read_row(row)) return false;
    if (row < s.grid.first_row) continue;
    // The last pixel rows of an MCU row need samples of the next one.
    const int lag = s.grid.margin > 0 ? 1 : 0;
    const int ready = row + 1 == s.grid.rows ? frame.height : (row + 1) * s.grid.mcu_height - lag;
    s.write_rows(window, next, std::min(ready, bottom), rgb);
    next = std::max(next, std::min(ready, bottom));
  }
  if (bottom < frame.height) return s.reader.left() >= 0;
  return s.reader.left() >= 0 && s.reader.left() < 8 && s.segment.marker == kEndOfImage;
}

}  // namespace dtrain::data
