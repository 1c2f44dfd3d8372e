// JpegDecoder: libjpeg-turbo parses the markers, and decodes whatever BaselineDecoder does not support or gives up on.
// For the rules of its calls see jpeg_errors.h.
#include "dtrain/data/jpeg.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "data/jpeg_baseline.h"
#include "data/jpeg_errors.h"
#include "data/jpeg_rows.h"
#include "dtrain/core/error.h"

namespace dtrain::data {
namespace {

// Whether there is an end marker; decoders that stop above the last row do not read it.
bool has_end(std::span<const std::byte> scan) {
  for (size_t i = scan.size(); i >= 2; --i)
    if (scan[i - 2] == std::byte{0xFF} && scan[i - 1] == std::byte{0xD9}) return true;
  return false;
}

// Limits the number of scans; libjpeg-turbo does not.
struct ScanLimit {
  jpeg_progress_mgr base;
  int max_scans;  // for the current image
};

int scan_limit_of(const ImageLimits& limits, int64_t pixels) {
  return static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(limits.max_scans, limits.max_scan_pixels / pixels)));
}

void check_scans(j_common_ptr codec) {
  const auto& limit = *reinterpret_cast<ScanLimit*>(codec->progress);
  const auto& image = *reinterpret_cast<j_decompress_ptr>(codec);
  if (image.input_scan_number <= limit.max_scans) return;
  JpegErrors& errors = errors_of(codec);
  std::snprintf(errors.error, sizeof errors.error, "more than %d scans of %ux%u pixels", limit.max_scans,
                image.image_width, image.image_height);
  std::longjmp(errors.jump, 1);
}

// Columns decoded beside a window and dropped: at the edge of the decoded region, fancy upsampling lacks a chroma
// neighbour.
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

// In place, inverted CMYK to RGB.
void cmyk_to_rgb(uint8_t* row, int width) {
  for (int x = 0; x < width; ++x) {
    const int k = row[4 * x + 3];
    for (int c = 0; c < 3; ++c) row[3 * x + c] = static_cast<uint8_t>((row[4 * x + c] * k + 127) / 255);
  }
}

HuffmanCode code_of(const JHUFF_TBL& table) {
  HuffmanCode code;
  std::copy_n(table.bits, code.counts.size(), code.counts.begin());
  std::copy_n(table.huffval, code.symbols.size(), code.symbols.begin());
  return code;
}

// Describes an image whose header has been read; false if BaselineDecoder does not support it.
bool describe(const jpeg_decompress_struct& codec, BaselineFrame& frame) {
  const bool sequential = codec.progressive_mode == 0 && codec.arith_code == 0 && codec.data_precision == 8;
  const bool whole_blocks = codec.Ss == 0 && codec.Se == DCTSIZE2 - 1 && codec.Ah == 0 && codec.Al == 0;
  const bool colors = codec.jpeg_color_space == (codec.num_components == 1 ? JCS_GRAYSCALE : JCS_YCbCr);
  if (!sequential || !whole_blocks || !colors || codec.comps_in_scan != codec.num_components) return false;
  frame.width = static_cast<int>(codec.image_width);
  frame.height = static_cast<int>(codec.image_height);
  frame.restart_interval = static_cast<int>(codec.restart_interval);
  frame.components = codec.num_components;
  for (size_t i = 0; i < frame.component.size() && i < static_cast<size_t>(codec.num_components); ++i) {
    const jpeg_component_info& from = *codec.cur_comp_info[i];
    const auto table = [](const auto& tables, int number) {
      return number >= 0 && number < static_cast<int>(std::size(tables)) ? tables[number] : nullptr;
    };
    const JQUANT_TBL* quantizers = table(codec.quant_tbl_ptrs, from.quant_tbl_no);
    const JHUFF_TBL* dc = table(codec.dc_huff_tbl_ptrs, from.dc_tbl_no);
    const JHUFF_TBL* ac = table(codec.ac_huff_tbl_ptrs, from.ac_tbl_no);
    if (&from != &codec.comp_info[i] || quantizers == nullptr || dc == nullptr || ac == nullptr) return false;
    BaselineFrame::Component& to = frame.component[i];
    to.h = from.h_samp_factor;
    to.v = from.v_samp_factor;
    std::copy_n(quantizers->quantval, to.quantizers.size(), to.quantizers.begin());
    to.dc = code_of(*dc);
    to.ac = code_of(*ac);
  }
  return BaselineDecoder::supports(frame);
}

}  // namespace

struct JpegDecoder::State {
  jpeg_decompress_struct codec{};
  BaselineDecoder baseline;
  BaselineFrame frame;
  JpegErrors errors;
  ScanLimit scan_limit{};
  DecodeOptions options;
  std::vector<uint8_t> buffer;
  std::string warning, damage;
  bool opened = false, used_libjpeg = false;

  // Decoded columns: whole rows, or the window with a margin, aligned by libjpeg.
  struct Columns {
    JDIMENSION x, width;
  };

  // Recreates the codec, which would reuse the previous image's tables if an image lacks them.
  void renew() {
    jpeg_destroy_decompress(&codec);
    codec.err = install(errors);
    run_or_throw(guarded(errors, [&] { jpeg_create_decompress(&codec); }));
    scan_limit.base.progress_monitor = check_scans;
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

  ImageView decode_by_libjpeg(const Window& window);

  // Bytes after the image's header, once it has been read.
  std::span<const std::byte> scan() const {
    return {reinterpret_cast<const std::byte*>(codec.src->next_input_byte), codec.src->bytes_in_buffer};
  }

  // Uses the built-in decoder; returns an empty view if it does not support the data.
  ImageView decode_baseline(const Window& window) {
    if (!describe(codec, frame)) return {};
    const size_t stride = size_t{3} * static_cast<size_t>(window.width);
    const size_t bytes = stride * static_cast<size_t>(window.height) + kRowSlack;
    if (buffer.size() < bytes) buffer.resize(bytes);
    if (!baseline.decode(frame, scan(), window, options, buffer.data())) return {};
    return {buffer.data(), window.width, window.height, static_cast<int64_t>(stride)};
  }

  // Decodes the rows of the window to `buffer`, `stride` bytes apart.
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

ImageView JpegDecoder::State::decode_by_libjpeg(const Window& window) {
  const bool cmyk = codec.num_components == 4;
  codec.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
  // The integer IDCT differs by one level in one of 70 samples, which YCCK's conversion amplifies to 3. The float IDCT
  // is exact except for ties, and ImageMagick, which made the tests' references, uses it.
  const J_DCT_METHOD accurate = codec.jpeg_color_space == JCS_YCCK ? JDCT_FLOAT : JDCT_ISLOW;
  codec.dct_method = options.fast_dct ? JDCT_IFAST : accurate;
  codec.do_fancy_upsampling = options.fancy_upsampling ? TRUE : FALSE;
  // With several scans all are read before the first row, so that a window saves little; block smoothing of incomplete
  // progressive images also reads neighbouring blocks.
  const bool whole = window == Window{0, 0, static_cast<int>(codec.image_width), static_cast<int>(codec.image_height)};
  const bool partial = !whole && jpeg_has_multiple_scans(&codec) == 0;
  const Columns columns = start(window, partial);
  const size_t channels = cmyk ? 4 : 3, stride = columns.width * channels;
  const size_t bytes = stride * static_cast<size_t>(window.height) + ImageView::kRowPadding;
  if (buffer.size() < bytes) buffer.resize(bytes);
  read(window, stride, partial);
  if (cmyk)
    for (int y = 0; y < window.height; ++y)
      cmyk_to_rgb(buffer.data() + static_cast<size_t>(y) * stride, static_cast<int>(columns.width));
  return {buffer.data() + 3 * (static_cast<size_t>(window.x) - columns.x), window.width, window.height,
          static_cast<int64_t>(stride)};
}

JpegDecoder::JpegDecoder(const DecodeOptions& options) : state_(std::make_unique<State>()) {
  state_->options = options;
}

JpegDecoder::~JpegDecoder() { jpeg_destroy_decompress(&state_->codec); }

ImageInfo JpegDecoder::open(std::span<const std::byte> encoded) {
  State& s = *state_;
  s.warning.clear();
  s.damage.clear();
  s.opened = false;
  s.renew();
  s.run_or_throw(guarded(s.errors, [&] {
    jpeg_mem_src(&s.codec, reinterpret_cast<const unsigned char*>(encoded.data()), encoded.size());
    jpeg_read_header(&s.codec, TRUE);
  }));
  const ImageInfo info{ImageFormat::jpeg, static_cast<int>(s.codec.image_width), static_cast<int>(s.codec.image_height),
                       s.codec.num_components, s.codec.progressive_mode != 0};
  check_limits(info, s.options.limits);
  s.scan_limit.max_scans = scan_limit_of(s.options.limits, int64_t{info.width} * info.height);
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
  const bool ends = has_end(s.scan());
  ImageView view = s.decode_baseline(window);
  s.used_libjpeg = view.pixels == nullptr;
  if (s.used_libjpeg) view = s.decode_by_libjpeg(window);
  s.warning = s.errors.warning;
  s.damage = s.errors.damage;
  if (!ends && s.damage.empty()) s.damage = "Premature end of JPEG file";
  if (s.warning.empty()) s.warning = s.damage;
  return view;
}

const std::string& JpegDecoder::warning() const { return state_->warning; }

const std::string& JpegDecoder::damage() const { return state_->damage; }

bool JpegDecoder::suits_hardware() const {
  State& s = *state_;
  DT_CHECK(s.opened, "JPEG: no image is open");
  return s.errors.warning[0] == '\0' && describe(s.codec, s.frame) && data::suits_hardware(s.frame, s.scan());
}

bool JpegDecoder::used_libjpeg() const { return state_->used_libjpeg; }

}  // namespace dtrain::data
