// PNG decoding and encoding by libpng, whose errors longjmp, as libjpeg's do: every call is made inside guarded().
#include "dtrain/data/png.h"

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "dtrain/core/error.h"

namespace dtrain::data {
namespace {

struct PngErrors {
  std::jmp_buf jump;
  char text[160];
};

[[noreturn]] void leave(png_structp png, png_const_charp message) {
  auto& errors = *static_cast<PngErrors*>(png_get_error_ptr(png));
  std::snprintf(errors.text, sizeof errors.text, "%s", message);
  std::longjmp(errors.jump, 1);
}

// libpng's warnings concern metadata (profiles, text); damaged pixels are errors.
void ignore(png_structp, png_const_charp) {}

template <class Step>
bool guarded(PngErrors& errors, Step step) {
  if (setjmp(errors.jump) != 0) return false;
  step();
  return true;
}

struct Source {
  const std::byte* data;
  size_t left;
};

void take(png_structp png, png_bytep out, size_t count) {
  auto& source = *static_cast<Source*>(png_get_io_ptr(png));
  if (count > source.left) png_error(png, "premature end of file");
  std::memcpy(out, source.data, count);
  source.data += count;
  source.left -= count;
}

// Requests RGB bytes: expands palette and grey, strips alpha and the low byte of 16 bits.
void request_rgb(png_structp png) {
  png_set_palette_to_rgb(png);
  png_set_expand_gray_1_2_4_to_8(png);
  png_set_strip_16(png);
  png_set_gray_to_rgb(png);
  png_set_strip_alpha(png);
}

}  // namespace

struct PngDecoder::State {
  png_structp png = nullptr;
  png_infop info = nullptr;
  PngErrors errors;
  Source source{};
  ImageLimits limits;
  int width = 0, height = 0;
  std::vector<uint8_t> buffer;

  void close() { png_destroy_read_struct(&png, &info, nullptr); }

  void run_or_throw(bool succeeded) {
    if (succeeded) return;
    close();
    throw Error(Fault::data, concat("PNG cannot be decoded: ", errors.text));
  }
};

PngDecoder::PngDecoder(const ImageLimits& limits) : state_(std::make_unique<State>()) { state_->limits = limits; }
PngDecoder::~PngDecoder() { state_->close(); }

ImageInfo PngDecoder::open(std::span<const std::byte> encoded) {
  State& s = *state_;
  s.close();
  s.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &s.errors, leave, ignore);
  s.info = s.png ? png_create_info_struct(s.png) : nullptr;
  if (!s.info) throw Error(Fault::resource, "cannot make a PNG decoder: out of memory");
  s.source = {encoded.data(), encoded.size()};
  s.run_or_throw(guarded(s.errors, [&] {
    png_set_read_fn(s.png, &s.source, take);
    // Skips all chunks but IHDR, PLTE, tRNS, IDAT and IEND: they do not affect pixels, and may decompress to a thousand
    // times their size.
    png_set_keep_unknown_chunks(s.png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_read_info(s.png, s.info);
  }));
  s.width = static_cast<int>(png_get_image_width(s.png, s.info));
  s.height = static_cast<int>(png_get_image_height(s.png, s.info));
  const ImageInfo info{ImageFormat::png, s.width, s.height, png_get_channels(s.png, s.info),
                       png_get_interlace_type(s.png, s.info) != PNG_INTERLACE_NONE};
  check_limits(info, s.limits);
  return info;
}

ImageView PngDecoder::decode(const Window& window) {
  State& s = *state_;
  DT_CHECK(s.png, "PNG decode: no image is open, or it was decoded before");
  DT_CHECK(window.x >= 0 && window.y >= 0 && window.width > 0 && window.height > 0 &&
               window.x <= s.width - window.width && window.y <= s.height - window.height,
           "PNG decode: window ", window.width, "x", window.height, " at (", window.x, ", ", window.y,
           ") is not inside the image of ", s.width, "x", s.height);
  const size_t stride = size_t{3} * static_cast<size_t>(s.width);
  const size_t bytes = stride * static_cast<size_t>(s.height) + ImageView::kRowPadding;
  if (s.buffer.size() < bytes) s.buffer.resize(bytes);
  s.run_or_throw(guarded(s.errors, [&] {
    request_rgb(s.png);
    const int passes = png_set_interlace_handling(s.png);
    png_read_update_info(s.png, s.info);
    if (png_get_rowbytes(s.png, s.info) != stride) png_error(s.png, "unexpected row size");
    // Interlaced images need all rows; otherwise rows below the window are not read.
    const int rows = passes > 1 ? s.height : window.y + window.height;
    for (int pass = 0; pass < passes; ++pass)
      for (int y = 0; y < rows; ++y) png_read_row(s.png, s.buffer.data() + static_cast<size_t>(y) * stride, nullptr);
  }));
  s.close();
  return {s.buffer.data() + static_cast<size_t>(window.y) * stride + size_t{3} * static_cast<size_t>(window.x),
          window.width, window.height, static_cast<int64_t>(stride)};
}

std::vector<uint8_t> PngDecoder::decode_values() {
  State& s = *state_;
  DT_CHECK(s.png, "PNG decode: no image is open, or it was decoded before");
  const int color = png_get_color_type(s.png, s.info);
  if ((color != PNG_COLOR_TYPE_PALETTE && color != PNG_COLOR_TYPE_GRAY) || png_get_bit_depth(s.png, s.info) > 8)
    return {};
  const auto stride = static_cast<size_t>(s.width);
  std::vector<uint8_t> values(stride * static_cast<size_t>(s.height));
  s.run_or_throw(guarded(s.errors, [&] {
    png_set_packing(s.png);
    const int passes = png_set_interlace_handling(s.png);
    png_read_update_info(s.png, s.info);
    if (png_get_rowbytes(s.png, s.info) != stride) png_error(s.png, "unexpected row size");
    for (int pass = 0; pass < passes; ++pass)
      for (int y = 0; y < s.height; ++y) png_read_row(s.png, values.data() + static_cast<size_t>(y) * stride, nullptr);
  }));
  s.close();
  return values;
}

namespace {

struct Sink {
  PngErrors errors;
  std::vector<std::byte> bytes;
  bool out_of_memory = false;
};

// Must not throw through libpng: a failed allocation is recorded, and further output dropped.
void append(png_structp png, png_bytep data, size_t count) {
  auto& sink = *static_cast<Sink*>(png_get_io_ptr(png));
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  try {
    if (!sink.out_of_memory) sink.bytes.insert(sink.bytes.end(), begin, begin + count);
  } catch (const std::bad_alloc&) {
    sink.out_of_memory = true;
  }
}

struct Writer {
  png_structp png = nullptr;
  png_infop info = nullptr;
  Writer() = default;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { png_destroy_write_struct(&png, &info); }
};

struct Rows {
  const uint8_t* first;
  int64_t stride;
  int width, height;
  int color_type;
  bool flat;  // large constant areas, for which filters and high compression levels waste time
};

std::vector<std::byte> encode(const Rows& image) {
  DT_CHECK(image.width > 0 && image.height > 0, "cannot encode a PNG of ", image.width, "x", image.height, " pixels");
  Sink sink;
  Writer writer;
  writer.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &sink.errors, leave, ignore);
  writer.info = writer.png ? png_create_info_struct(writer.png) : nullptr;
  if (!writer.info) throw Error(Fault::resource, "cannot make a PNG encoder: out of memory");
  const bool written = guarded(sink.errors, [&] {
    png_set_write_fn(writer.png, &sink, append, nullptr);
    png_set_IHDR(writer.png, writer.info, static_cast<png_uint_32>(image.width), static_cast<png_uint_32>(image.height),
                 8, image.color_type, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (image.flat) {
      png_set_filter(writer.png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
      png_set_compression_level(writer.png, 1);
    }
    png_write_info(writer.png, writer.info);
    for (int y = 0; y < image.height; ++y) png_write_row(writer.png, image.first + y * image.stride);
    png_write_end(writer.png, writer.info);
  });
  if (!written || sink.out_of_memory)
    throw Error(Fault::resource, concat("PNG of ", image.width, "x", image.height,
                                        " pixels cannot be encoded: ", written ? "out of memory" : sink.errors.text));
  return std::move(sink.bytes);
}

}  // namespace

std::vector<std::byte> encode_png(const ImageView& image) {
  return encode({image.pixels, image.stride, image.width, image.height, PNG_COLOR_TYPE_RGB, false});
}

std::vector<std::byte> encode_grey_png(std::span<const uint8_t> pixels, int width, int height) {
  DT_CHECK(pixels.size() == static_cast<size_t>(width) * static_cast<size_t>(height), pixels.size(),
           " bytes as a grey image of ", width, "x", height, " pixels");
  return encode({pixels.data(), width, width, height, PNG_COLOR_TYPE_GRAY, true});
}

}  // namespace dtrain::data
