// Drives libjpeg-turbo. Its errors leave by longjmp, so every call to it is made inside guarded(), whose frames hold
// nothing with a destructor; what it needs allocated is allocated outside.
#include "data/jpeg.h"

#include <cstdio>
// jpeglib.h needs FILE.
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdlib>

#include "libdtrain/core/error.h"

namespace dtrain::data {
namespace {

// libjpeg hands back a pointer to `base`, from which its callbacks reach the rest.
struct Errors {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  char error[JMSG_LENGTH_MAX];
  char warning[JMSG_LENGTH_MAX];
};

Errors& errors_of(j_common_ptr codec) { return *reinterpret_cast<Errors*>(codec->err); }

[[noreturn]] void leave(j_common_ptr codec) {
  Errors& errors = errors_of(codec);
  codec->err->format_message(codec, errors.error);
  std::longjmp(errors.jump, 1);
}

// Level -1 is corrupt data that libjpeg goes on with; higher levels are traces.
void note(j_common_ptr codec, int level) {
  if (level >= 0) return;
  if (codec->err->num_warnings++ == 0) codec->err->format_message(codec, errors_of(codec).warning);
}

jpeg_error_mgr* install(Errors& errors) {
  jpeg_std_error(&errors.base);
  errors.base.error_exit = leave;
  errors.base.emit_message = note;
  errors.error[0] = errors.warning[0] = '\0';
  return &errors.base;
}

// Runs `step`, which calls libjpeg; false where that failed, with the reason in `errors`.
template <class Step>
bool guarded(Errors& errors, Step step) {
  if (setjmp(errors.jump) != 0) return false;
  step();
  return true;
}

// Counts scans: libjpeg-turbo itself goes through as many as there are.
struct ScanLimit {
  jpeg_progress_mgr base;
  int max_scans;
};

void check_scans(j_common_ptr codec) {
  const auto& limit = *reinterpret_cast<ScanLimit*>(codec->progress);
  const int scans = reinterpret_cast<j_decompress_ptr>(codec)->input_scan_number;
  if (scans <= limit.max_scans) return;
  Errors& errors = errors_of(codec);
  std::snprintf(errors.error, sizeof errors.error, "more than %d scans", limit.max_scans);
  std::longjmp(errors.jump, 1);
}

// Fancy upsampling computes a chroma sample at the edge of what is decoded without its neighbour: so many columns
// beside a window are decoded and dropped.
constexpr int kMargin = 2;

constexpr int kRowsPerRead = 16;

// Reads `count` rows of the current image into `first`, `stride` bytes apart. Called inside guarded().
void read_rows(jpeg_decompress_struct& codec, uint8_t* first, size_t stride, unsigned count) {
  std::array<JSAMPROW, kRowsPerRead> rows;
  while (count > 0) {
    const unsigned batch = std::min<unsigned>(count, kRowsPerRead);
    for (unsigned i = 0; i < batch; ++i) rows[i] = first + i * stride;
    const unsigned read = jpeg_read_scanlines(&codec, rows.data(), batch);
    first += read * stride;
    count -= read;
  }
}

// In place, from four inverted bytes to three.
void cmyk_to_rgb(uint8_t* row, int width) {
  for (int x = 0; x < width; ++x) {
    const int k = row[4 * x + 3];
    for (int c = 0; c < 3; ++c) row[3 * x + c] = static_cast<uint8_t>((row[4 * x + c] * k + 127) / 255);
  }
}

}  // namespace

struct JpegDecoder::State {
  jpeg_decompress_struct codec{};
  Errors errors;
  ScanLimit scan_limit{};
  DecodeOptions options;
  std::vector<uint8_t> buffer;
  std::string warning;
  bool opened = false;

  // What is decoded: whole rows, or the window's columns with a margin, as libjpeg aligns them.
  struct Columns {
    JDIMENSION x, width;
  };

  // A codec remembers the tables of the images before, and takes them where one has none.
  void renew() {
    jpeg_destroy_decompress(&codec);
    codec.err = install(errors);
    run_or_throw(guarded(errors, [&] { jpeg_create_decompress(&codec); }));
    scan_limit.base.progress_monitor = check_scans;
    scan_limit.max_scans = options.limits.max_scans;
    codec.progress = &scan_limit.base;
  }

  void run_or_throw(bool succeeded) {
    if (succeeded) return;
    jpeg_abort_decompress(&codec);
    opened = false;
    throw Error(Fault::data, concat("JPEG cannot be decoded: ", errors.error));
  }

  Columns start(const Window& window, bool partial) {
    Columns columns{0, codec.image_width};
    run_or_throw(guarded(errors, [&] {
      jpeg_start_decompress(&codec);
      if (!partial) return;
      const int left = std::max(0, window.x - kMargin);
      const int right = std::min(static_cast<int>(codec.image_width), window.x + window.width + kMargin);
      columns = {static_cast<JDIMENSION>(left), static_cast<JDIMENSION>(right - left)};
      jpeg_crop_scanline(&codec, &columns.x, &columns.width);
    }));
    return columns;
  }

  // The rows of the window into `buffer`, `stride` bytes apart.
  void read(const Window& window, size_t stride, bool partial) {
    run_or_throw(guarded(errors, [&] {
      const auto y = static_cast<JDIMENSION>(window.y);
      if (partial && y > 0)
        jpeg_skip_scanlines(&codec, y);
      else
        read_rows(codec, buffer.data(), 0, y);
      read_rows(codec, buffer.data(), stride, static_cast<unsigned>(window.height));
      if (codec.output_scanline == codec.output_height)
        jpeg_finish_decompress(&codec);
      else
        jpeg_abort_decompress(&codec);
    }));
  }
};

JpegDecoder::JpegDecoder(const DecodeOptions& options) : state_(std::make_unique<State>()) {
  state_->options = options;
}

JpegDecoder::~JpegDecoder() { jpeg_destroy_decompress(&state_->codec); }

ImageInfo JpegDecoder::open(std::span<const std::byte> encoded) {
  State& s = *state_;
  s.warning.clear();
  s.opened = false;
  s.renew();
  s.run_or_throw(guarded(s.errors, [&] {
    jpeg_mem_src(&s.codec, reinterpret_cast<const unsigned char*>(encoded.data()), encoded.size());
    jpeg_read_header(&s.codec, TRUE);
  }));
  const ImageInfo info{ImageFormat::jpeg, static_cast<int>(s.codec.image_width), static_cast<int>(s.codec.image_height),
                       s.codec.num_components, s.codec.progressive_mode != 0};
  check_limits(info, s.options.limits);
  s.opened = true;
  return info;
}

ImageView JpegDecoder::decode(const Window& window) {
  State& s = *state_;
  const int width = static_cast<int>(s.codec.image_width), height = static_cast<int>(s.codec.image_height);
  DT_CHECK(s.opened, "JPEG decode: no image is open, or it was decoded before");
  DT_CHECK(window.x >= 0 && window.y >= 0 && window.width > 0 && window.height > 0 &&
               window.x <= width - window.width && window.y <= height - window.height,
           "JPEG decode: window ", window.width, "x", window.height, " at (", window.x, ", ", window.y,
           ") is not inside the image of ", width, "x", height);
  s.opened = false;
  const bool cmyk = s.codec.num_components == 4;
  s.codec.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
  s.codec.dct_method = s.options.fast_dct ? JDCT_IFAST : JDCT_ISLOW;
  s.codec.do_fancy_upsampling = s.options.fancy_upsampling ? TRUE : FALSE;
  // Where all scans are read before the first row comes out, a window saves little; and the smoothing of incomplete
  // progressive images looks at neighbouring blocks.
  const bool whole = window == Window{0, 0, width, height};
  const bool partial = !whole && jpeg_has_multiple_scans(&s.codec) == 0;
  const State::Columns columns = s.start(window, partial);
  const size_t channels = cmyk ? 4 : 3, stride = columns.width * channels;
  const size_t bytes = stride * static_cast<size_t>(window.height) + ImageView::kRowPadding;
  if (s.buffer.size() < bytes) s.buffer.resize(bytes);
  s.read(window, stride, partial);
  s.warning = s.errors.warning;
  if (cmyk)
    for (int y = 0; y < window.height; ++y)
      cmyk_to_rgb(s.buffer.data() + static_cast<size_t>(y) * stride, static_cast<int>(columns.width));
  return {s.buffer.data() + 3 * (static_cast<size_t>(window.x) - columns.x), window.width, window.height,
          static_cast<int64_t>(stride)};
}

const std::string& JpegDecoder::warning() const { return state_->warning; }

namespace {

// Owns what libjpeg allocates while encoding.
struct Encoder {
  jpeg_compress_struct codec{};
  Errors errors;
  unsigned char* bytes = nullptr;
  unsigned long size = 0;

  Encoder() = default;
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
  ~Encoder() {
    jpeg_destroy_compress(&codec);
    std::free(bytes);
  }
};

std::array<int, 2> luma_factors(Sampling sampling) {
  switch (sampling) {
    case Sampling::s444:
      return {1, 1};
    case Sampling::s422:
      return {2, 1};
    case Sampling::s420:
      return {2, 2};
    case Sampling::s440:
      return {1, 2};
    case Sampling::s411:
      return {4, 1};
  }
  return {1, 1};
}

// Called inside guarded().
void encode(Encoder& e, const ImageView& image, const JpegEncodeOptions& options) {
  jpeg_create_compress(&e.codec);
  jpeg_mem_dest(&e.codec, &e.bytes, &e.size);
  e.codec.image_width = static_cast<JDIMENSION>(image.width);
  e.codec.image_height = static_cast<JDIMENSION>(image.height);
  e.codec.input_components = 3;
  e.codec.in_color_space = JCS_RGB;
  jpeg_set_defaults(&e.codec);
  jpeg_set_quality(&e.codec, options.quality, TRUE);
  if (options.grey) {
    jpeg_set_colorspace(&e.codec, JCS_GRAYSCALE);
  } else {
    const auto [horizontal, vertical] = luma_factors(options.sampling);
    e.codec.comp_info[0].h_samp_factor = horizontal;
    e.codec.comp_info[0].v_samp_factor = vertical;
  }
  if (options.progressive) jpeg_simple_progression(&e.codec);
  jpeg_start_compress(&e.codec, TRUE);
  for (int y = 0; y < image.height; ++y) {
    auto* row = const_cast<JSAMPROW>(image.row(y));  // libjpeg's type has no const; it does not write
    jpeg_write_scanlines(&e.codec, &row, 1);
  }
  jpeg_finish_compress(&e.codec);
}

}  // namespace

std::vector<std::byte> encode_jpeg(const ImageView& image, const JpegEncodeOptions& options) {
  DT_CHECK(image.width > 0 && image.height > 0 && image.width <= JPEG_MAX_DIMENSION &&
               image.height <= JPEG_MAX_DIMENSION && options.quality >= 1 && options.quality <= 100,
           "cannot encode a JPEG of ", image.width, "x", image.height, " pixels at quality ", options.quality, ": 1..",
           JPEG_MAX_DIMENSION, " a side and quality 1..100 are possible");
  Encoder e;
  e.codec.err = install(e.errors);
  if (!guarded(e.errors, [&] { encode(e, image, options); }))
    throw Error(Fault::resource,
                concat("JPEG of ", image.width, "x", image.height, " pixels cannot be encoded: ", e.errors.error));
  const auto* begin = reinterpret_cast<const std::byte*>(e.bytes);
  return {begin, begin + e.size};
}

}  // namespace dtrain::data
