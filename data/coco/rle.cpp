#include "dtrain/data/coco/rle.h"

#include <algorithm>
#include <numeric>

#include "data/coco/overlap.h"
#include "dtrain/core/error.h"

namespace dtrain::data::coco {
namespace {

// Iterator over the runs of a mask that has passed check().
class Cursor {
 public:
  explicit Cursor(const Rle& rle) : counts_(rle.counts), left_(rle.counts[0]) { skip_empty(); }

  bool set() const { return run_ % 2 == 1; }
  uint32_t left() const { return left_; }  // remaining pixels of this run; 0 at the end of the mask
  void advance(uint32_t pixels) {
    left_ -= pixels;
    skip_empty();
  }

 private:
  void skip_empty() {
    while (left_ == 0 && run_ + 1 < counts_.size()) left_ = counts_[++run_];
  }

  std::span<const uint32_t> counts_;
  size_t run_ = 0;
  uint32_t left_;
};

Rle merge(const Rle& first, const Rle& second, bool intersect) {
  Rle merged{first.height, first.width, {}};
  Cursor a(first), b(second);
  bool set = false;
  uint32_t run = 0;
  while (a.left() > 0) {
    if ((intersect ? a.set() && b.set() : a.set() || b.set()) != set) {
      merged.counts.push_back(run);
      run = 0;
      set = !set;
    }
    const uint32_t pixels = std::min(a.left(), b.left());
    run += pixels;
    a.advance(pixels);
    b.advance(pixels);
  }
  merged.counts.push_back(run);
  return merged;
}

// Variable-length number in groups of five bits, least significant first: bit 5 marks a continuation, bit 4 of the last
// group is the sign. Returns the position behind it.
size_t parse_number(std::string_view text, size_t at, int64_t& value) {
  value = 0;
  for (int shift = 0; shift < 35; shift += 5) {
    if (at == text.size()) throw Error(Fault::data, "RLE text ends within a number");
    const int group = text[at++] - '0';
    if (group < 0 || group > 63)
      throw Error(Fault::data, concat("RLE text has a character of code ", static_cast<int>(text[at - 1] & 0xff),
                                      " at ", at - 1, ", expected '0' to 'o'"));
    value |= static_cast<int64_t>(group & 31) << shift;
    if (group & 32) continue;
    if (group & 16) value -= int64_t{1} << (shift + 5);
    return at;
  }
  throw Error(Fault::data, concat("RLE text has a number of more than seven characters before ", at));
}

}  // namespace

void check_mask_size(int64_t height, int64_t width) {
  if (height < 1 || width < 1 || height > kMaxMaskSide || width > kMaxMaskSide || height * width > kMaxMaskPixels)
    throw Error(Fault::data, concat("a size of ", height, " x ", width, " pixels, expected sides of 1 to ",
                                    kMaxMaskSide, " and at most ", kMaxMaskPixels, " pixels"));
}

void check(const Rle& rle) {
  check_mask_size(rle.height, rle.width);
  const uint64_t sum = std::accumulate(rle.counts.begin(), rle.counts.end(), uint64_t{0});
  if (sum != static_cast<uint64_t>(rle.height * rle.width))
    throw Error(Fault::data, concat("RLE of ", sum, " pixels for a mask of ", rle.height, " x ", rle.width));
}

void check_same_size(const Rle& a, const Rle& b) {
  if (a.height != b.height || a.width != b.width)
    throw Error(Fault::data,
                concat("masks of different sizes: ", a.height, " x ", a.width, " and ", b.height, " x ", b.width));
}

Rle encode(std::span<const uint8_t> pixels, int64_t height, int64_t width) {
  check_mask_size(height, width);
  DT_CHECK(pixels.size() == static_cast<size_t>(height * width), "encode: ", pixels.size(), " pixels for a mask of ",
           height, " x ", width);
  Rle rle{height, width, {}};
  bool set = false;
  uint32_t run = 0;
  for (int64_t x = 0; x < width; ++x)
    for (int64_t y = 0; y < height; ++y) {
      if ((pixels[static_cast<size_t>(y * width + x)] != 0) != set) {
        rle.counts.push_back(run);
        run = 0;
        set = !set;
      }
      ++run;
    }
  rle.counts.push_back(run);
  return rle;
}

std::vector<uint8_t> decode(const Rle& rle) {
  const Shape shape(rle);
  std::vector<uint8_t> pixels(static_cast<size_t>(rle.height * rle.width), 0);
  const size_t height = static_cast<size_t>(rle.height), width = static_cast<size_t>(rle.width);
  for (const Shape::Span span : shape.spans) {
    size_t x = span.begin / height, y = span.begin % height;
    for (uint32_t i = span.begin; i < span.end; ++i) {
      pixels[y * width + x] = 1;
      if (++y == height) y = 0, ++x;
    }
  }
  return pixels;
}

std::string to_text(const Rle& rle) {
  std::string text;
  text.reserve(rle.counts.size() * 2);
  for (size_t i = 0; i < rle.counts.size(); ++i) {
    int64_t value = rle.counts[i];
    if (i > 2) value -= rle.counts[i - 2];
    for (bool more = true; more;) {
      const int group = static_cast<int>(value & 31);
      value >>= 5;
      more = value != (group & 16 ? -1 : 0);
      text.push_back(static_cast<char>('0' + (more ? group | 32 : group)));
    }
  }
  return text;
}

Rle parse(std::string_view text, int64_t height, int64_t width) {
  check_mask_size(height, width);
  Rle rle{height, width, {}};
  rle.counts.reserve(text.size() / 2 + 1);
  for (size_t at = 0; at < text.size();) {
    int64_t value = 0;
    at = parse_number(text, at, value);
    if (rle.counts.size() > 2) value += rle.counts[rle.counts.size() - 2];
    if (value < 0 || value > height * width)
      throw Error(Fault::data, concat("RLE text has a run of ", value, " pixels for a mask of ", height, " x ", width));
    rle.counts.push_back(static_cast<uint32_t>(value));
  }
  rle.counts.shrink_to_fit();
  check(rle);
  return rle;
}

uint64_t area(const Rle& rle) {
  uint64_t pixels = 0;
  for (size_t i = 1; i < rle.counts.size(); i += 2) pixels += rle.counts[i];
  return pixels;
}

BoundingBox bounds(const Rle& rle) { return Shape(rle).box; }

Rle merge(std::span<const Rle> masks, bool intersect) {
  DT_CHECK(!masks.empty(), "merge: no masks");
  check(masks[0]);
  Rle merged = masks[0];
  for (const Rle& mask : masks.subspan(1)) {
    check_same_size(merged, mask);
    check(mask);
    merged = merge(merged, mask, intersect);
  }
  return merged;
}

}  // namespace dtrain::data::coco
