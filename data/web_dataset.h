// WebDataset: tar archives of images and labels, in folders or by a pattern of paths.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/image_source.h"

namespace dtrain::data {

// Whether `data` is a pattern of paths of .tar files, such as "train-{000..146}.tar", or a directory with .tar files
// and without shards and class folders. Throws Error(Fault::resource) if a server does not answer.
bool has_tars(const std::string& data);
// Whether it has one split only: a pattern, or a directory of .tar files whose names do not tell splits.
bool has_tars_of_one_split(const std::string& data);

// Archives of a split, sorted by name; of a pattern, in its order. In a directory: *.tar in the folder of the split,
// else files whose name has the split as a word ("imagenet-train-0001.tar"), else, in a directory of one split, all.
// Throws Error(Fault::data) if there are none, for a folder that cannot be listed, and for a remote path.
std::vector<std::string> find_tars(const std::string& data, bool training);

struct TarOptions {
  std::string data{};
  bool training = true;
  CacheOptions cache{};
  std::function<void(const std::string&)> notice{};  // optional: counts of samples
};

// Samples of the archives, numbered in their order (data/tar_samples.h). Throws Error(Fault::data) for a missing or
// unreadable archive.
std::unique_ptr<const ImageSource> open_web_dataset(const TarOptions& options);

}  // namespace dtrain::data
