#include "data/tiff_file.h"

#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "dtrain/core/error.h"

namespace dtrain::data {
namespace {

constexpr int kMostSamples = 8;  // per pixel: four colours and extra channels

template <class... Parts>
[[noreturn]] void refuse_tiff(const Parts&... what) {
  throw Error(Fault::data, concat("TIFF cannot be decoded: ", what...));
}

template <class T>
T tiff_field(TIFF* tiff, uint32_t tag, T otherwise) {
  T value{};
  return TIFFGetFieldDefaulted(tiff, tag, &value) ? value : otherwise;
}

// Supported compressions, without old-style JPEG and other rare ones with a history of vulnerabilities.
bool is_known_compression(int compression) {
  constexpr int kKnown[] = {COMPRESSION_NONE,      COMPRESSION_CCITTRLE,      COMPRESSION_CCITTFAX3,
                            COMPRESSION_CCITTFAX4, COMPRESSION_LZW,           COMPRESSION_JPEG,
                            COMPRESSION_DEFLATE,   COMPRESSION_ADOBE_DEFLATE, COMPRESSION_PACKBITS,
                            COMPRESSION_ZSTD,      COMPRESSION_WEBP};
  return std::ranges::find(kKnown, compression) != std::end(kKnown) &&
         TIFFIsCODECConfigured(static_cast<uint16_t>(compression));
}

// Upper bound on the scans of a JPEG: SOS markers. 0xff in data is never followed by this byte.
uint64_t scans_in(std::span<const std::byte> jpeg) {
  const std::string_view text(reinterpret_cast<const char*>(jpeg.data()), jpeg.size());
  uint64_t scans = 0;
  for (size_t at = text.find("\xff\xda"); at != text.npos; at = text.find("\xff\xda", at + 2)) ++scans;
  return scans;
}

struct TiffLog {
  char error[200] = "", warning[200] = "";
  bool is_open = false;
};

struct TiffSource {
  std::span<const std::byte> bytes;
  uint64_t at = 0;
};

int note_tiff_error(TIFF*, void* log, const char*, const char* format, va_list arguments) {
  auto& text = static_cast<TiffLog*>(log)->error;
  if (text[0] == '\0') std::vsnprintf(text, sizeof text, format, arguments);
  return 1;
}

// Warnings about the header do not concern pixels; JPEG and fax decoders warn about lost pixels.
int note_tiff_warning(TIFF* tiff, void* user, const char* module, const char* format, va_list arguments) {
  auto& log = *static_cast<TiffLog*>(user);
  if (!log.is_open) return 1;
  const std::string_view from = module != nullptr ? module : "";
  if (from.starts_with("JPEGLib") || from.starts_with("Fax"))
    return note_tiff_error(tiff, user, module, format, arguments);
  if (log.warning[0] == '\0') std::vsnprintf(log.warning, sizeof log.warning, format, arguments);
  return 1;
}

tmsize_t read_tiff(thandle_t handle, void* to, tmsize_t count) {
  TiffSource& source = *static_cast<TiffSource*>(handle);
  if (count <= 0 || source.at >= source.bytes.size()) return 0;
  const auto taken = std::min<uint64_t>(static_cast<uint64_t>(count), source.bytes.size() - source.at);
  std::memcpy(to, source.bytes.data() + source.at, taken);
  source.at += taken;
  return static_cast<tmsize_t>(taken);
}

toff_t seek_tiff(thandle_t handle, toff_t offset, int whence) {
  TiffSource& source = *static_cast<TiffSource*>(handle);
  source.at = offset + (whence == SEEK_CUR ? source.at : whence == SEEK_END ? source.bytes.size() : 0);
  return source.at;
}

// libtiff reads the mapping and never writes to it.
int map_tiff(thandle_t handle, void** base, toff_t* size) {
  const TiffSource& source = *static_cast<TiffSource*>(handle);
  *base = const_cast<std::byte*>(source.bytes.data());
  *size = source.bytes.size();
  return 1;
}

struct TiffCloser {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};

}  // namespace

struct TiffFile::State {
  TiffSource source;
  TiffLog log{};
  std::unique_ptr<TIFF, TiffCloser> tiff{};
};

TiffFile::TiffFile(std::span<const std::byte> encoded, const ImageLimits& limits)
    : limits_(limits), state_(new State{{encoded}}) {
  struct FreeOptions {
    void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
  };
  const std::unique_ptr<TIFFOpenOptions, FreeOptions> options(TIFFOpenOptionsAlloc());
  if (!options) throw Error(Fault::resource, "cannot make a TIFF decoder: out of memory");
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), memory_limit());
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), note_tiff_error, &state_->log);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), note_tiff_warning, &state_->log);
  state_->tiff.reset(TIFFClientOpenExt(
      "image", "r", &state_->source, read_tiff, [](thandle_t, void*, tmsize_t) -> tmsize_t { return 0; }, seek_tiff,
      [](thandle_t) { return 0; },
      [](thandle_t source) -> toff_t { return static_cast<TiffSource*>(source)->bytes.size(); }, map_tiff,
      [](thandle_t, void*, toff_t) {}, options.get()));
  if (!state_->tiff) refuse_tiff(state_->log.error[0] != '\0' ? state_->log.error : "its header is damaged");
  read_layout();
  check_kind();
  state_->log = {.is_open = true};
}

TiffFile::~TiffFile() = default;

TIFF* TiffFile::get() const { return state_->tiff.get(); }

const char* TiffFile::error() const { return state_->log.error; }

const char* TiffFile::warning() const { return state_->log.warning; }

// Limit per allocation of libtiff: four bytes per pixel of the image.
int64_t TiffFile::memory_limit() const { return std::max<int64_t>(16 << 20, 4 * limits_.max_pixels); }

size_t TiffFile::bounded(uint64_t bytes) const {
  if (bytes == 0 || bytes > static_cast<uint64_t>(memory_limit()))
    refuse_tiff("rows or tiles of ", bytes, " bytes; expected at most ", memory_limit());
  return bytes;
}

void TiffFile::read_layout() {
  TIFF* tiff = get();
  TiffLayout& l = layout_;
  l.width = static_cast<int>(std::min<uint32_t>(tiff_field<uint32_t>(tiff, TIFFTAG_IMAGEWIDTH, 0), INT32_MAX));
  l.height = static_cast<int>(std::min<uint32_t>(tiff_field<uint32_t>(tiff, TIFFTAG_IMAGELENGTH, 0), INT32_MAX));
  check_limits({ImageFormat::tiff, l.width, l.height}, limits_);
  l.samples = tiff_field<uint16_t>(tiff, TIFFTAG_SAMPLESPERPIXEL, 1);
  l.bits = tiff_field<uint16_t>(tiff, TIFFTAG_BITSPERSAMPLE, 1);
  l.compression = tiff_field<uint16_t>(tiff, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
  const bool is_fax = l.compression == COMPRESSION_CCITTRLE || l.compression == COMPRESSION_CCITTFAX3 ||
                      l.compression == COMPRESSION_CCITTFAX4;
  // Default for a missing tag, as in libtiff's converter.
  const uint16_t guess = l.samples >= 3 ? PHOTOMETRIC_RGB : is_fax ? PHOTOMETRIC_MINISWHITE : PHOTOMETRIC_MINISBLACK;
  l.colors = tiff_field(tiff, TIFFTAG_PHOTOMETRIC, guess);
  l.separate = l.samples > 1 && tiff_field<uint16_t>(tiff, TIFFTAG_PLANARCONFIG, 0) == PLANARCONFIG_SEPARATE;
  const int orientation = tiff_field<uint16_t>(tiff, TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
  l.orientation = orientation >= 1 && orientation <= 8 ? orientation : 1;
  uint16_t extra = 0;
  const uint16_t* kinds = nullptr;
  if (TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &extra, &kinds) && extra > 0 && l.samples == 3 + extra)
    l.premultiplied = l.colors == PHOTOMETRIC_RGB && kinds[0] == EXTRASAMPLE_ASSOCALPHA;
  l.blocks.tiles = TIFFIsTiled(tiff) != 0;
  if (l.blocks.tiles)
    l.blocks = {true, tiff_field<uint32_t>(tiff, TIFFTAG_TILEWIDTH, 0),
                tiff_field<uint32_t>(tiff, TIFFTAG_TILELENGTH, 0)};
  else
    l.blocks = {false, l.width, std::min<int64_t>(tiff_field<uint32_t>(tiff, TIFFTAG_ROWSPERSTRIP, 0), l.height)};
}

void TiffFile::check_kind() const {
  const TiffLayout& l = layout_;
  const bool is_grey = l.colors == PHOTOMETRIC_MINISBLACK || l.colors == PHOTOMETRIC_MINISWHITE;
  int needed = 1, most_bits = 16;
  if (l.colors == PHOTOMETRIC_PALETTE)
    most_bits = 8;
  else if (l.colors == PHOTOMETRIC_RGB)
    needed = 3;
  else if (l.colors == PHOTOMETRIC_SEPARATED)
    needed = 4;
  else if (l.colors == PHOTOMETRIC_YCBCR)
    needed = 3, most_bits = 8;
  else if (!is_grey)
    refuse_tiff("colours of kind ", l.colors, "; expected grey, RGB, palette, CMYK or YCbCr");
  if (!is_known_compression(l.compression)) refuse_tiff("compression ", l.compression, " is not supported");
  const uint16_t format = tiff_field<uint16_t>(get(), TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT);
  if (format != SAMPLEFORMAT_UINT && format != SAMPLEFORMAT_VOID)
    refuse_tiff("samples are signed or floating-point; expected unsigned integers");
  const int b = l.bits;
  if ((b != 1 && b != 2 && b != 4 && b != 8 && b != 16) || b > most_bits)
    refuse_tiff(b, " bits per sample; expected 1, 2, 4, 8 or 16, and at most 8 of palettes and YCbCr");
  if (l.samples < needed || l.samples > kMostSamples)
    refuse_tiff(l.samples, " samples per pixel; expected ", needed, " to ", kMostSamples);
  if (l.blocks.width <= 0 || l.blocks.height <= 0) refuse_tiff("strips or tiles without pixels");
}

bool TiffFile::check_work() const {
  constexpr int64_t kSmall = 1 << 24, kBlockHead = 1024;  // pixels of tiles at the edge; bytes of a JPEG's tables
  const TiffLayout& l = layout_;
  const uint32_t blocks = l.blocks.tiles ? TIFFNumberOfTiles(get()) : TIFFNumberOfStrips(get());
  const int planes = l.separate ? l.samples : 1;
  const double area = static_cast<double>(l.blocks.width) * static_cast<double>(l.blocks.height);
  if (area * blocks / planes > static_cast<double>(std::max(kSmall, 2 * int64_t{l.width} * l.height)))
    refuse_tiff(blocks, " tiles of ", l.blocks.width, "x", l.blocks.height, " for ", l.width, "x", l.height, " pixels");
  const double unpacked = area * blocks / planes * l.samples * std::max(l.bits, 8) / 8;  // fax may make bits bytes
  const uint64_t size = state_->source.bytes.size();
  double packed = 0, scan_pixels = 0;
  bool is_complete = true;
  for (uint32_t i = 0; i < blocks; ++i) {
    const uint64_t at = std::min<uint64_t>(TIFFGetStrileOffset(get(), i), size),
                   stated = TIFFGetStrileByteCount(get(), i), bytes = std::min<uint64_t>(stated, size - at);
    is_complete = is_complete && bytes == stated && bytes > 0;
    packed += static_cast<double>(bytes);
    if (packed > 2 * unpacked + static_cast<double>(kBlockHead) * blocks)
      refuse_tiff("its strips or tiles have more bytes together than its pixels account for");
    if (l.compression == COMPRESSION_JPEG)
      scan_pixels += area * static_cast<double>(scans_in(state_->source.bytes.subspan(at, bytes)));
  }
  if (scan_pixels > std::max(static_cast<double>(limits_.max_scan_pixels), 2.0 * kSmall))
    refuse_tiff("its JPEGs have more scans than ", limits_.max_scan_pixels, " pixels in all of them");
  return is_complete;
}

}  // namespace dtrain::data
