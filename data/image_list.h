// Lists of images and labels, as comma- or tab-separated text: path,label[,label...]
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/image_source.h"

namespace dtrain::data {

struct ListedImage {
  std::string name{};  // as path_below() takes it
  uint64_t line = 0;
  std::vector<uint32_t> labels{};  // in ImageList::labels; without duplicates
};

struct ImageList {
  std::string path{};
  std::vector<ListedImage> images{};
  std::vector<std::string> labels{};  // different ones, in order of appearance; columns of 0 and 1 in their order
  std::vector<std::string> faults{};  // malformed rows: "FILE:LINE: reason"
  std::string columns{};              // how a header row was read, for a notice; "" without one
  uint64_t several = 0;               // line of the first image with several labels, 0: none
};

// Parses a list. The separator is a tab if the path ends with .tsv, else a comma. A header row is one whose first field
// neither has an image's extension nor names a file. Throws Error(Fault::data), also for more than 100,000 malformed
// rows or 2^20 different labels.
ImageList image_list_from(std::string_view text, const std::string& path);
// Reads it from a file of at most 1 GiB.
ImageList read_image_list(const std::string& path);

// Whether `data` is the path of a list (.csv, .tsv), or a directory with lists and without shards, class folders and
// archives. Throws Error(Fault::resource) if a server does not answer.
bool has_image_lists(const std::string& data);
// Whether it has one split only: a path of a list.
bool has_list_of_one_split(const std::string& data);
// The list of a split: the path itself, or the .csv or .tsv file of a directory whose name split_of_folder() takes for
// the split, or for validation without one, for "test". "" if there is none. Throws Error(Fault::data) if there are
// two.
std::string find_image_list(const std::string& data, bool training);

// Meaning of the labels of a data set.
struct ListLabels {
  std::vector<std::string> names{};  // by label; "" for unused ones; empty: labels have no names
  bool numbers = false;              // labels may be given as numbers
  int64_t count = 0;                 // labels lie in [0, count)
  uint64_t several = 0;              // ImageList::several of the training list, or of validation without one
  std::string list{};                // that list
};

// Labels are by name or number in the list and in classes.txt beside it, if there is one; else numbers if all are; else
// the names, sorted by bytes. Those of the training list, or of validation without one; numbers of both.
ListLabels labels_of_lists(const std::string& data);

struct ListOptions {
  std::string data{};
  bool training = true;
  bool multi_label = false;  // images have any number of labels, else exactly one
  CacheOptions cache{};
  std::function<void(const std::string&)> notice{};  // optional: counts of images and labels, and how they were read
};

// Images of a split in the order of the list. Malformed rows, unknown labels, and files that are missing or no images
// are faults. Throws Error(Fault::data) without images, and for several labels of an image without `multi_label`.
std::unique_ptr<const ImageSource> open_image_list(const ListOptions& options);

}  // namespace dtrain::data
