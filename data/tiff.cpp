// TIFF: converts strips or tiles, as decompressed by libtiff, to RGB. libtiff's converter premultiplies alpha, which
// PIL does not; it is used for YCbCr only.
#include <tiffio.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "data/image_formats.h"
#include "data/tiff_file.h"
#include "dtrain/core/error.h"

namespace dtrain::data {
namespace {

// PIL: a * b / 255, rounded.
uint8_t times_255th(int a, int b) {
  const int product = a * b + 128;
  return static_cast<uint8_t>(((product >> 8) + product) >> 8);
}

class TiffDecoding {
 public:
  TiffDecoding(const TiffFile& file, Image& image) : file_(file), layout_(file.layout()), image_(image) {
    used_ = layout_.colors == PHOTOMETRIC_SEPARATED || layout_.premultiplied ? 4
            : layout_.colors == PHOTOMETRIC_RGB                              ? 3
                                                                             : 1;
    samples_.resize(static_cast<size_t>(pixels()) * static_cast<size_t>(used_));
  }

  // Returns false if nothing could be decompressed. Sets `lost` if some blocks could not.
  bool run(bool& lost) {
    for (int plane = 0; plane < (layout_.separate ? used_ : 1); ++plane)
      layout_.blocks.tiles ? unpack_tiles(plane) : unpack_rows(plane);
    lost = lost || lost_any_;
    if (!unpacked_any_) return false;
    switch (layout_.colors) {
      case PHOTOMETRIC_RGB:
        layout_.premultiplied ? write_divided() : write_rgb();
        return true;
      case PHOTOMETRIC_PALETTE:
        write_palette();
        return true;
      case PHOTOMETRIC_SEPARATED:
        write_cmyk();
        return true;
      default:
        write_grey();
        return true;
    }
  }

 private:
  int64_t pixels() const { return int64_t{layout_.width} * layout_.height; }

  // Compressed rows must be read in order; after an error decoding resumes with the next strip.
  void unpack_rows(int plane) {
    std::vector<uint8_t> row(file_.bounded(TIFFScanlineSize64(file_.get())));
    const auto strip = static_cast<int>(layout_.blocks.height);
    for (int y = 0; y < layout_.height; ++y) {
      if (TIFFReadScanline(file_.get(), row.data(), static_cast<uint32_t>(y), static_cast<uint16_t>(plane)) >= 0) {
        store(row.data(), 0, y, layout_.width, plane);
        continue;
      }
      lost_any_ = true;
      y += strip - 1 - y % strip;
    }
  }

  void unpack_tiles(int plane) {
    const uint64_t row = TIFFTileRowSize64(file_.get());
    std::vector<uint8_t> tile(file_.bounded(TIFFTileSize64(file_.get())));
    const int64_t width = layout_.blocks.width, height = layout_.blocks.height;
    for (int64_t y = 0; y < layout_.height; y += height)
      for (int64_t x = 0; x < layout_.width; x += width) {
        const auto left = static_cast<int>(x), top = static_cast<int>(y);
        if (TIFFReadTile(file_.get(), tile.data(), static_cast<uint32_t>(x), static_cast<uint32_t>(y), 0,
                         static_cast<uint16_t>(plane)) < 0) {
          lost_any_ = true;
          continue;
        }
        const auto columns = static_cast<int>(std::min(width, layout_.width - x));
        for (int64_t r = 0; r < std::min(height, layout_.height - y); ++r)
          store(tile.data() + static_cast<uint64_t>(r) * row, left, top + static_cast<int>(r), columns, plane);
      }
  }

  // Stores the used channels of a row of `count` pixels as 8 bits: the upper bits of 16; fewer bits are scaled to
  // levels, unless they are palette indices.
  void store(const uint8_t* row, int x, int y, int count, int plane) {
    unpacked_any_ = true;
    const int stored = layout_.separate ? 1 : layout_.samples, kept = layout_.separate ? 1 : used_, bits = layout_.bits;
    const unsigned most = (1u << bits) - 1, scale = layout_.colors == PHOTOMETRIC_PALETTE || bits > 8 ? 1 : 255 / most;
    uint8_t* to = samples_.data() + (int64_t{y} * layout_.width + x) * used_ + plane;
    for (int64_t i = 0; i < count; ++i, to += used_)
      for (int64_t s = 0; s < kept; ++s) {
        const int64_t at = i * stored + s;
        if (bits == 8) {
          to[s] = row[at];
        } else if (bits == 16) {
          uint16_t value;
          std::memcpy(&value, row + 2 * at, sizeof value);
          to[s] = static_cast<uint8_t>(value >> 8);
        } else {
          to[s] = static_cast<uint8_t>((row[at * bits / 8] >> (8 - bits - at * bits % 8) & most) * scale);
        }
      }
  }

  void write_grey() {
    const uint8_t flip = layout_.colors == PHOTOMETRIC_MINISWHITE ? 255 : 0;
    for (int64_t i = 0; i < pixels(); ++i) std::fill_n(rgb() + 3 * i, 3, sample(i) ^ flip);
  }

  void write_rgb() { std::ranges::copy(samples_, rgb()); }

  // Fully transparent pixels are black, as in PIL.
  void write_divided() {
    for (int64_t i = 0; i < pixels(); ++i)
      for (int c = 0; c < 3; ++c) {
        const int alpha = sample(4 * i + 3), color = sample(4 * i + c);
        rgb()[3 * i + c] = static_cast<uint8_t>(alpha == 0 ? 0 : std::min(255, color * 255 / alpha));
      }
  }

  void write_cmyk() {
    for (int64_t i = 0; i < pixels(); ++i)
      for (int c = 0; c < 3; ++c) {
        const int light = 255 - sample(4 * i + 3);
        rgb()[3 * i + c] = static_cast<uint8_t>(light - times_255th(sample(4 * i + c), light));
      }
  }

  void write_palette() {
    std::array<uint16_t*, 3> map{};
    if (!TIFFGetField(file_.get(), TIFFTAG_COLORMAP, map.data(), map.data() + 1, map.data() + 2))
      throw Error(Fault::data, "TIFF cannot be decoded: it has no colours for its palette");
    for (int64_t i = 0; i < pixels(); ++i)
      for (size_t c = 0; c < 3; ++c)
        rgb()[3 * i + static_cast<int64_t>(c)] = static_cast<uint8_t>(map[c][sample(i)] >> 8);
  }

  uint8_t sample(int64_t i) const { return samples_[static_cast<size_t>(i)]; }
  uint8_t* rgb() { return image_.pixels.data(); }

  const TiffFile& file_;
  const TiffLayout& layout_;
  Image& image_;
  int used_ = 0;  // used channels per pixel
  std::vector<uint8_t> samples_;
  bool unpacked_any_ = false, lost_any_ = false;
};

// Uses libtiff's converter with the file's orientation as target, so that nothing is rotated.
bool write_ycbcr(const TiffFile& file, Image& image) {
  std::vector<uint32_t> raster(static_cast<size_t>(image.width) * static_cast<size_t>(image.height));
  if (!TIFFReadRGBAImageOriented(file.get(), static_cast<uint32_t>(image.width), static_cast<uint32_t>(image.height),
                                 raster.data(), file.layout().orientation, /*stopOnError=*/0))
    return false;
  uint8_t* to = image.pixels.data();
  for (const uint32_t pixel : raster) {
    *to++ = static_cast<uint8_t>(TIFFGetR(pixel));
    *to++ = static_cast<uint8_t>(TIFFGetG(pixel));
    *to++ = static_cast<uint8_t>(TIFFGetB(pixel));
  }
  return true;
}

}  // namespace

ImageInfo read_tiff_info(std::span<const std::byte> encoded, const ImageLimits& limits) {
  const TiffFile file(encoded, limits);
  const TiffLayout& layout = file.layout();
  return {ImageFormat::tiff, layout.width, layout.height, layout.samples, false, layout.orientation};
}

void decode_tiff(std::span<const std::byte> encoded, const ImageLimits& limits, DecodedImage& decoded) {
  const TiffFile file(encoded, limits);
  bool lost = !file.check_work();
  decoded = {.image = Image(file.layout().width, file.layout().height)};
  const bool is_decoded = file.layout().colors == PHOTOMETRIC_YCBCR ? write_ycbcr(file, decoded.image)
                                                                    : TiffDecoding(file, decoded.image).run(lost);
  if (!is_decoded)
    throw Error(Fault::data,
                concat("TIFF cannot be decoded: ", file.error()[0] != '\0' ? file.error() : "its pixels are damaged"));
  decoded.damage = file.error();
  if (decoded.damage.empty() && lost) decoded.damage = "strips or tiles of the TIFF file are missing";
  decoded.warning = file.warning();
}

}  // namespace dtrain::data
