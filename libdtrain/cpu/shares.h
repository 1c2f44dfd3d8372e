// How threads share the pixels and the panels of filters of a convolution, and what they bring into the caches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "libdtrain/cpu/kernels/upcoming.h"

namespace dtrain::cpu {

// What is larger does not stay in the caches until another op reads it.
inline constexpr int64_t kStreamed = int64_t{4} << 20;  // bytes
inline constexpr uintptr_t kVectorBytes = 64;           // of any instruction set

// Whether a result of rows of k elements is stored past the caches.
template <class T>
bool is_streamed(int64_t elements, int64_t k, int64_t columns, const T* y) {
  return elements * static_cast<int64_t>(sizeof(T)) >= kStreamed && k % columns == 0 &&
         reinterpret_cast<uintptr_t>(y) % kVectorBytes == 0;
}

// What a thread computes at a time: pixels by panels of filters.
struct Share {
  int64_t first_pixel, last_pixel, first_panel, last_panel;

  int64_t panels() const { return last_panel - first_panel; }
};

// Where `parts` parts of `count` begin, and the last one ends.
inline void begin_parts(int64_t count, int64_t parts, std::vector<int64_t>& begins) {
  begins.resize(static_cast<size_t>(parts + 1));
  for (int64_t i = 0; i <= parts; ++i) begins[static_cast<size_t>(i)] = count * i / parts;
}

// Memory that is read soon, in `count` equal parts of whole lines; those at the end may be short or empty. A division
// for each part would take as long as some parts' arithmetic: 64 bits take up to 90 cycles on processors before Ice
// Lake.
class Portions {
 public:
  Portions() = default;
  Portions(const Upcoming& all, int64_t count)
      : all_(all), step_(count > 0 ? (all.bytes / kLine + count) / count * kLine : 0) {}

  Upcoming operator[](int64_t i) const {
    const int64_t begin = std::min(i * step_, all_.bytes);
    return {static_cast<const char*>(all_.from) + begin, std::min(step_, all_.bytes - begin)};
  }

 private:
  static constexpr int64_t kLine = 64;

  Upcoming all_;
  int64_t step_ = 0;
};

// Memory in two places: parts from number `of_first` on are those of the second.
struct TwoPortions {
  Portions first, second;
  int64_t of_first = 0;

  Upcoming operator[](int64_t i) const { return i < of_first ? first[i] : second[i - of_first]; }
};

// Packed filters, the panels one after another.
struct FilterPanels {
  const void* data;
  int64_t bytes;  // of one, or of as many as a tile takes

  const void* at(int64_t panel) const { return static_cast<const char*>(data) + panel * bytes; }
};

// Tiles of up to `rows` output pixels, of which the kernel reads `at_once` together, by `columns` filters, those of
// `panels` panels.
struct TileSize {
  int64_t rows, at_once, columns, panels = 1;
  // Whether a tile can be computed in parts of the inner dimension, each added to what is there.
  bool adds = false;
};

// The tiles of a kernel, ProductKernels or ByteProductKernels, for k filters: as many panels at a time as it takes, or
// half as many until all threads have some.
template <class Kernels>
TileSize tile_size_of(int threads, const Kernels& product, int64_t k, bool adds) {
  int64_t panels = product.panels;
  while (panels > 1 && k < threads * panels * product.columns) panels /= 2;
  return {product.rows, product.rows / panels, panels * product.columns, panels, adds};
}

}  // namespace dtrain::cpu
