// GIF decoder of the first frame, based on giflib.
#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "data/image_formats.h"
#include "dtrain/core/error.h"

namespace dtrain::data {
namespace {

struct GifCloser {
  void operator()(GifFileType* gif) const { DGifCloseFile(gif, nullptr); }
};
using Gif = std::unique_ptr<GifFileType, GifCloser>;

int take_gif_bytes(GifFileType* gif, GifByteType* to, int count) {
  auto& left = *static_cast<std::span<const std::byte>*>(gif->UserData);
  const size_t taken = std::min(left.size(), static_cast<size_t>(count));
  std::memcpy(to, left.data(), taken);
  left = left.subspan(taken);
  return static_cast<int>(taken);
}

std::string gif_error(int code) {
  const char* text = GifErrorString(code);
  return text != nullptr ? text : "unknown error";
}

[[noreturn]] void refuse_gif(const std::string& why) { throw Error(Fault::data, "GIF cannot be decoded: " + why); }

// Reads an extension; sets `transparent` if it declares a transparent colour.
void read_gif_extension(GifFileType* gif, int& transparent) {
  int kind = 0;
  GifByteType* block = nullptr;
  bool good = DGifGetExtension(gif, &kind, &block) == GIF_OK;
  if (good && block != nullptr && kind == GRAPHICS_EXT_FUNC_CODE) {
    GraphicsControlBlock control;
    if (DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK && control.TransparentColor != NO_TRANSPARENT_COLOR)
      transparent = control.TransparentColor;
  }
  while (good && block != nullptr) good = DGifGetExtensionNext(gif, &block) == GIF_OK;
  if (!good) refuse_gif(gif_error(gif->Error));
}

struct GifFrame {
  Gif gif;                    // positioned at its pixels
  int width = 0, height = 0;  // of the canvas
  int x = 0, y = 0, columns = 0, rows = 0;
  bool interlaced = false;
  int outside = 0;  // colour of uncovered pixels
};

// Reads up to the pixels of the first frame. `left` must outlive the result.
GifFrame open_gif(std::span<const std::byte>& left, const ImageLimits& limits) {
  int error = 0;
  GifFrame frame{.gif = Gif(DGifOpen(&left, take_gif_bytes, &error))};
  GifFileType* gif = frame.gif.get();
  if (gif == nullptr) refuse_gif(gif_error(error));
  for (GifRecordType type = UNDEFINED_RECORD_TYPE; type != IMAGE_DESC_RECORD_TYPE;) {
    if (DGifGetRecordType(gif, &type) == GIF_ERROR) refuse_gif(gif_error(gif->Error));
    if (type == TERMINATE_RECORD_TYPE) refuse_gif("it holds no image");
    if (type == EXTENSION_RECORD_TYPE) read_gif_extension(gif, frame.outside);
  }
  if (DGifGetImageDesc(gif) == GIF_ERROR) refuse_gif(gif_error(gif->Error));
  const GifImageDesc& image = gif->Image;
  frame.x = image.Left;
  frame.y = image.Top;
  frame.columns = image.Width;
  frame.rows = image.Height;
  frame.interlaced = image.Interlace;
  // A canvas smaller than its frame is enlarged, as in PIL.
  frame.width = std::max(gif->SWidth, image.Left + image.Width);
  frame.height = std::max(gif->SHeight, image.Top + image.Height);
  check_limits({ImageFormat::gif, frame.width, frame.height}, limits);
  if (frame.columns <= 0 || frame.rows <= 0) refuse_gif("its first frame has no pixels");
  return frame;
}

using GifColors = std::array<std::array<uint8_t, 3>, 256>;

// Grey levels if the file has no palette; missing entries are black.
GifColors colors_of(const GifFileType& gif) {
  const ColorMapObject* map = gif.Image.ColorMap != nullptr ? gif.Image.ColorMap : gif.SColorMap;
  GifColors colors{};
  for (size_t i = 0; i < colors.size(); ++i) {
    if (map == nullptr)
      colors[i].fill(static_cast<uint8_t>(i));
    else if (i < static_cast<size_t>(map->ColorCount))
      colors[i] = {map->Colors[i].Red, map->Colors[i].Green, map->Colors[i].Blue};
  }
  return colors;
}

// Row indices of a frame in storage order.
std::vector<int> gif_rows(int rows, bool interlaced) {
  struct Pass {
    int first, step;
  };
  constexpr Pass kPasses[] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}}, kWhole[] = {{0, 1}};
  std::vector<int> order;
  for (const Pass& pass : interlaced ? std::span<const Pass>(kPasses) : std::span<const Pass>(kWhole))
    for (int row = pass.first; row < rows; row += pass.step) order.push_back(row);
  return order;
}

}  // namespace

ImageInfo read_gif_info(std::span<const std::byte> encoded, const ImageLimits& limits) {
  const GifFrame frame = open_gif(encoded, limits);
  return {ImageFormat::gif, frame.width, frame.height, 1, frame.interlaced};
}

void decode_gif(std::span<const std::byte> encoded, const ImageLimits& limits, DecodedImage& decoded) {
  const GifFrame frame = open_gif(encoded, limits);
  const GifColors colors = colors_of(*frame.gif);
  decoded = {.image = Image(frame.width, frame.height)};
  uint8_t* pixels = decoded.image.pixels.data();
  for (int64_t i = 0; i < int64_t{frame.width} * frame.height; ++i)
    std::ranges::copy(colors[static_cast<size_t>(frame.outside)], pixels + 3 * i);
  std::vector<GifByteType> line(static_cast<size_t>(frame.columns));
  int read = 0;
  for (const int row : gif_rows(frame.rows, frame.interlaced)) {
    if (DGifGetLine(frame.gif.get(), line.data(), frame.columns) == GIF_ERROR) {
      const std::string why = gif_error(frame.gif->Error);
      if (read == 0) refuse_gif(why);
      decoded.damage = concat("GIF file has ", read, " of ", frame.rows, " rows: ", why);
      return;
    }
    ++read;
    uint8_t* to = pixels + 3 * (int64_t{frame.y + row} * frame.width + frame.x);
    for (const GifByteType index : line) to = std::ranges::copy(colors[index], to).out;
  }
}

}  // namespace dtrain::data
