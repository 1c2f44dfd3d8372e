// Samples of a WebDataset archive: consecutive members KEY.jpg and KEY.cls, or KEY.json, as the package `webdataset`
// groups them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dtrain/io/input_file.h"

namespace dtrain::data {

struct TarSample {
  std::string key{};
  uint64_t offset = 0, bytes = 0;  // of the image in the archive
  uint32_t crc = 0;                // CRC-32C of the image
  int64_t label = 0;
  bool operator==(const TarSample&) const = default;
};

struct TarSamples {
  std::vector<TarSample> samples{};
  uint64_t without_image = 0;         // samples that have no image, such as texts
  uint64_t links = 0;                 // members that are links and are skipped
  std::vector<std::string> faults{};  // damage of the archive, samples without a valid label
};

// Key and lower-case extension of a member; nothing for members that are no part of a sample: hidden files, files
// without extension, and `webdataset`'s metadata __NAME__.
struct TarKey {
  std::string key{}, extension{};
};
std::optional<TarKey> tar_key(std::string_view name);

// Reads the samples of an archive, with the checksums of their images. The image has the extension jpg, jpeg, png,
// webp, gif, bmp, tif or tiff, the first of these if there are several; the label is the integer in .cls, or "label" of
// .json.
TarSamples read_tar_samples(const InputFile& file);

// Body of an index (data/index_file.h) of an archive without faults, and its parser; nothing for any other text, and if
// the archive has another size or modification time.
std::string tar_index_body(const TarSamples& samples, uint64_t file_bytes, int64_t modified);
std::optional<TarSamples> tar_index_from(std::string_view body, uint64_t file_bytes, int64_t modified);

// The same from the index kept between runs, or read and kept.
TarSamples open_tar_samples(const InputFile& file, const std::string& cache_directory);

}  // namespace dtrain::data
