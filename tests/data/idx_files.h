// Synthetic IDX files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libdtrain/io/gzip.h"
#include "tests/files.h"

namespace dtrain {

inline std::string idx_header(const std::vector<uint32_t>& shape, unsigned type = 8) {
  std::string bytes = {0, 0, static_cast<char>(type), static_cast<char>(shape.size())};
  for (const uint32_t size : shape)
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(size >> shift);
  return bytes;
}

// `count` grey images of `side` x `side` pixels: the first pixel is the image's index, all others 25 times its label.
// Labels cycle from 0 to 9.
inline std::string idx_images(uint32_t count, uint32_t side = 28) {
  std::string bytes = idx_header({count, side, side});
  for (uint32_t i = 0; i < count; ++i) {
    bytes.append(size_t{side} * side, static_cast<char>(25 * (i % 10)));
    bytes[bytes.size() - size_t{side} * side] = static_cast<char>(i);
  }
  return bytes;
}
inline std::string idx_labels(uint32_t count) {
  std::string bytes = idx_header({count});
  for (uint32_t i = 0; i < count; ++i) bytes += static_cast<char>(i % 10);
  return bytes;
}

inline void write_gzip(const std::filesystem::path& path, const std::string& bytes) {
  AtomicFile file(path.string());
  GzipWriter writer(file);
  writer.write(bytes.data(), bytes.size());
  writer.finish();
  file.commit();
}

// Data set with MNIST's file names.
inline void write_mnist(const std::filesystem::path& folder, uint32_t training, uint32_t validation) {
  std::filesystem::create_directories(folder);
  write_file((folder / "train-images-idx3-ubyte").string(), idx_images(training));
  write_file((folder / "train-labels-idx1-ubyte").string(), idx_labels(training));
  write_gzip(folder / "t10k-images-idx3-ubyte.gz", idx_images(validation));
  write_gzip(folder / "t10k-labels-idx1-ubyte.gz", idx_labels(validation));
}

}  // namespace dtrain
