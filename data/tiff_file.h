// The first page of a TIFF in memory, opened by libtiff: what it holds, and whether decoding it is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "data/image.h"

struct tiff;  // libtiff's TIFF

namespace dtrain::data {

// Strips or tiles, in which the samples of a TIFF are stored.
struct TiffBlocks {
  bool tiles = false;
  int64_t width = 0, height = 0;  // of each, in pixels
};

struct TiffLayout {
  int width = 0, height = 0, orientation = 1;
  int samples = 0, bits = 0;  // of a pixel; of a sample
  int colors = 0;             // PHOTOMETRIC_*
  int compression = 0;
  bool separate = false;       // each sample in a plane of its own
  bool premultiplied = false;  // colours are multiplied by alpha, the fourth sample
  TiffBlocks blocks{};
};

// Throws Error(Fault::data) by all members.
class TiffFile {
 public:
  // `encoded` outlives the file.
  TiffFile(std::span<const std::byte> encoded, const ImageLimits& limits);
  TiffFile(const TiffFile&) = delete;
  TiffFile& operator=(const TiffFile&) = delete;
  ~TiffFile();

  tiff* get() const;
  const TiffLayout& layout() const { return layout_; }
  // Blocks may overlap in a hostile file, or have many scans: refuses more work than the pixels account for. False
  // where some of the blocks are not in the file, of which libtiff does not always tell.
  bool check_work() const;
  // Bytes that a row or a tile needs. Refuses more than memory_limit().
  size_t bounded(uint64_t bytes) const;
  // The first line by which libtiff has said that pixels were lost, and the first warning, since the header was read.
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
