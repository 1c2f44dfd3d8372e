#include "apps/dataset/image_stats.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <set>

#include "apps/cli/options/cache.h"
#include "apps/cli/stop_signals.h"
#include "apps/dataset/files.h"
#include "data/labelled_source.h"
#include "dtrain/core/error.h"
#include "dtrain/data/image.h"
#include "libdtrain/io/digest.h"

namespace dtrain::dataset {
namespace {

struct MeasuredImage {
  bool is_readable = false;
  std::vector<int64_t> labels{};  // one, but in lists
  int width = 0, height = 0;
  std::string digest{};  // of the bytes
  std::array<double, 3> mean{}, mean_square{};
};

struct MeasuredSplit {
  std::string name;
  std::unique_ptr<const data::ImageSource> source;
  std::vector<MeasuredImage> images;
};

void measure_pixels(const data::ImageView& view, MeasuredImage& image) {
  std::array<uint64_t, 3> sum{}, squares{};
  for (int y = 0; y < view.height; ++y) {
    const uint8_t* const row = view.row(y);
    for (int x = 0; x < view.width; ++x)
      for (size_t c = 0; c < 3; ++c) {
        const uint64_t level = row[3 * static_cast<size_t>(x) + c];
        sum[c] += level;
        squares[c] += level * level;
      }
  }
  const double pixels = static_cast<double>(view.width) * view.height;
  for (size_t c = 0; c < 3; ++c) {
    image.mean[c] = static_cast<double>(sum[c]) / pixels / 255;
    image.mean_square[c] = static_cast<double>(squares[c]) / pixels / (255 * 255);
  }
}

MeasuredImage measured(const data::ImageSource& source, uint64_t index, bool pixels) {
  MeasuredImage image{.labels = source.labels(index)};
  std::vector<std::byte> buffer;
  const std::span<const std::byte> encoded = source.read(index, buffer);
  data::ImageDecoder decoder({.orientation = data::Orientation::apply});
  const data::ImageInfo info = decoder.open(encoded);
  image.width = info.width;
  image.height = info.height;
  Digest digest;
  digest.add(encoded.data(), encoded.size());
  image.digest = digest.hex();
  if (pixels) {
    measure_pixels(decoder.decode(), image);
    if (!decoder.damage().empty()) throw Error(Fault::data, data::damaged_image(decoder.damage()));
  }
  image.is_readable = true;
  return image;
}

MeasuredSplit measured_split(const std::string& data, bool training, bool pixels, int64_t threads,
                             std::vector<std::string>& faults) {
  MeasuredSplit split{
      training ? "train" : "validation", data::open_labelled_images({data, training, cli::CacheFlags().options()}), {}};
  split.images.resize(split.source->size());
  faults.insert(faults.end(), split.source->faults().begin(), split.source->faults().end());
  std::map<size_t, std::string> unreadable;
  std::mutex mutex;
  for_each_index(split.images.size(), threads, split.name + " images", [&](size_t i) {
    if (cli::stop_requested()) throw Error("stopped");
    try {
      split.images[i] = measured(*split.source, i, pixels);
    } catch (const Error& error) {
      if (error.fault() != Fault::data) throw;
      const std::lock_guard lock(mutex);
      unreadable[i] = concat(split.source->locate(i).text(), ": ", error.what());
    }
  });
  for (auto& [index, text] : unreadable) faults.push_back(std::move(text));
  return split;
}

void average_pixels(const std::vector<MeasuredImage>& images, bool pixels, ImageSplitStats& stats) {
  const uint64_t readable = stats.images - stats.unreadable;
  stats.mean.fill(std::numeric_limits<double>::quiet_NaN());
  stats.deviation = stats.mean;
  if (!pixels || readable == 0) return;
  for (size_t c = 0; c < 3; ++c) {
    double mean = 0, square = 0;
    for (const MeasuredImage& image : images) {
      if (!image.is_readable) continue;
      mean += image.mean[c];
      square += image.mean_square[c];
    }
    stats.mean[c] = mean /= static_cast<double>(readable);
    stats.deviation[c] = std::sqrt(std::max(0.0, square / static_cast<double>(readable) - mean * mean));
  }
}

ImageSplitStats stats_of_split(const MeasuredSplit& split, const data::ClassNames& names, bool pixels) {
  ImageSplitStats stats{.name = split.name, .images = split.images.size()};
  std::map<int64_t, uint64_t> counts;
  for (const auto& [label, name] : names) counts[label] = 0;
  std::vector<int64_t> widths, heights;
  for (const MeasuredImage& image : split.images) {
    if (!image.is_readable) {
      ++stats.unreadable;
      continue;
    }
    for (const int64_t label : image.labels) ++counts[label];
    widths.push_back(image.width);
    heights.push_back(image.height);
  }
  stats.width = side_lengths(std::move(widths));
  stats.height = side_lengths(std::move(heights));
  for (const auto& [label, images] : counts) {
    const auto name = names.find(label);
    stats.classes.push_back({label, name == names.end() ? "" : name->second, images});
  }
  average_pixels(split.images, pixels, stats);
  return stats;
}

// `are_files`: one image per file, as opposed to records and archive members.
std::vector<DuplicateImages> duplicates_of(const std::vector<MeasuredSplit>& splits, bool are_files) {
  using Place = std::pair<size_t, size_t>;  // split, image
  std::map<std::string, std::vector<Place>> places;
  for (size_t k = 0; k < splits.size(); ++k)
    for (size_t i = 0; i < splits[k].images.size(); ++i)
      if (splits[k].images[i].is_readable) places[splits[k].images[i].digest].emplace_back(k, i);
  std::vector<DuplicateImages> duplicates;
  for (const auto& [digest, equal] : places) {
    if (equal.size() < 2) continue;
    DuplicateImages group;
    std::set<std::vector<int64_t>> labels;
    for (const auto& [k, i] : equal) {
      const data::RecordLocation location = splits[k].source->locate(i);
      group.files.push_back(are_files ? location.file : location.text());
      group.in_several_splits |= k != equal.front().first;
      labels.insert(splits[k].images[i].labels);
    }
    group.in_several_classes = labels.size() > 1;
    duplicates.push_back(std::move(group));
  }
  sort_duplicates(duplicates);
  return duplicates;
}

}  // namespace

ImageStats image_stats(const std::string& data, bool pixels, int64_t threads) {
  ImageStats stats;
  std::vector<MeasuredSplit> splits;
  for (const bool training : {true, false})
    if (data::has_labelled_images(data, training))
      splits.push_back(measured_split(data, training, pixels, threads, stats.faults));
  const data::ClassNames names = data::stored_class_names(data);
  for (const MeasuredSplit& split : splits) stats.splits.push_back(stats_of_split(split, names, pixels));
  const data::LabelledFormat format = data::labelled_format(data);
  const bool are_files = format == data::LabelledFormat::folders || format == data::LabelledFormat::lists;
  stats.duplicates = duplicates_of(splits, are_files);
  return stats;
}

}  // namespace dtrain::dataset
