// WebP decoder of still images and first frames of animations, based on libwebp.
#include <webp/decode.h>
#include <webp/demux.h>

#include <memory>

#include "data/image_formats.h"
#include "data/orientation.h"
#include "dtrain/core/error.h"

namespace dtrain::data {
namespace {

[[noreturn]] void refuse_webp(const char* why) { throw Error(Fault::data, concat("WebP cannot be decoded: ", why)); }

// Canvas and first frame of a file, whose bytes must outlive it.
class WebpFile {
 public:
  WebpFile(std::span<const std::byte> encoded, const ImageLimits& limits) {
    const WebPData data{reinterpret_cast<const uint8_t*>(encoded.data()), encoded.size()};
    demuxer_.reset(WebPDemux(&data));
    if (!demuxer_) refuse_webp("the file is truncated or damaged");
    info_ = {ImageFormat::webp, canvas(WEBP_FF_CANVAS_WIDTH), canvas(WEBP_FF_CANVAS_HEIGHT)};
    check_limits(info_, limits);
    if (!WebPDemuxGetFrame(demuxer_.get(), 1, &frame_)) refuse_webp("it holds no image");
    WebPBitstreamFeatures features{};
    if (WebPGetFeatures(frame_.fragment.bytes, frame_.fragment.size, &features) != VP8_STATUS_OK)
      refuse_webp("the header of its image is damaged");
    if (features.width != frame_.width || features.height != frame_.height)
      refuse_webp("its headers state different sizes");
    info_.components = features.has_alpha ? 4 : 3;
    WebPChunkIterator chunk{};
    if (WebPDemuxGetChunk(demuxer_.get(), "EXIF", 1, &chunk))
      info_.orientation = exif_block_orientation(std::as_bytes(std::span(chunk.chunk.bytes, chunk.chunk.size)));
    WebPDemuxReleaseChunkIterator(&chunk);
  }
  WebpFile(const WebpFile&) = delete;
  WebpFile& operator=(const WebpFile&) = delete;
  ~WebpFile() { WebPDemuxReleaseIterator(&frame_); }

  const ImageInfo& info() const { return info_; }
  const WebPIterator& frame() const { return frame_; }

 private:
  struct Closer {
    void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
  };
  // Sides have 24 bits.
  int canvas(WebPFormatFeature side) const { return static_cast<int>(WebPDemuxGetI(demuxer_.get(), side)); }

  std::unique_ptr<WebPDemuxer, Closer> demuxer_;
  WebPIterator frame_{};
  ImageInfo info_;
};

}  // namespace

ImageInfo read_webp_info(std::span<const std::byte> encoded, const ImageLimits& limits) {
  return WebpFile(encoded, limits).info();
}

void decode_webp(std::span<const std::byte> encoded, const ImageLimits& limits, DecodedImage& decoded) {
  const WebpFile file(encoded, limits);
  const WebPIterator& frame = file.frame();
  decoded = {.image = Image(file.info().width, file.info().height)};
  const int64_t stride = int64_t{3} * file.info().width, first = frame.y_offset * stride + int64_t{3} * frame.x_offset,
                end = stride * file.info().height;
  if (first >= end || WebPDecodeRGBInto(frame.fragment.bytes, frame.fragment.size, decoded.image.pixels.data() + first,
                                        static_cast<size_t>(end - first), static_cast<int>(stride)) == nullptr)
    refuse_webp("its pixels are damaged");
}

}  // namespace dtrain::data
