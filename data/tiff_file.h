// First page of an in-memory TIFF opened by libtiff, with bounds on decoding work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "dtrain/data/image.h"

struct tiff;  // libtiff's TIFF

namespace dtrain::data {

// Storage blocks of a TIFF: strips or tiles.
struct TiffBlocks {
  bool tiles = false;
  int64_t width = 0, height = 0;  // per block, in pixels
};

struct TiffLayout {
  int width = 0, height = 0, orientation = 1;
  int samples = 0, bits = 0;  // channels per pixel; bits per channel
  int colors = 0;             // PHOTOMETRIC_*
  int compression = 0;
  bool separate = false;       // planar configuration: one plane per channel
  bool premultiplied = false;  // colours are premultiplied by alpha, the fourth channel
  TiffBlocks blocks{};
};

// All methods throw Error(Fault::data).
class TiffFile {
 public:
  // `encoded` must outlive the file.
  TiffFile(std::span<const std::byte> encoded, const ImageLimits& limits);
  TiffFile(const TiffFile&) = delete;
  TiffFile& operator=(const TiffFile&) = delete;
  ~TiffFile();

  tiff* get() const;
  const TiffLayout& layout() const { return layout_; }
  // Rejects more decoding work than the pixels justify: blocks of a hostile file may overlap or have many scans.
  // Returns false if some blocks are missing, which libtiff does not always report.
  bool check_work() const;
  // Validates the size of a row or tile buffer. Rejects more than memory_limit().
  size_t bounded(uint64_t bytes) const;
  // First message about lost pixels, and first warning, since the header was read.
  const char* error() const;
  const char* warning() const;

 private:
  struct State;

  int64_t memory_limit() const;
  void read_layout();
  void check_kind() const;

  ImageLimits limits_;
  std::unique_ptr<State> state_;
  TiffLayout layout_;
};

}  // namespace dtrain::data
