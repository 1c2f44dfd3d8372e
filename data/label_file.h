// Text files of class lists and of image labels.
#pragma once

#include <string>
#include <vector>

#include "data/image_tree.h"

namespace dtrain::data {

struct TextLine {
  size_t number = 0;  // 1-based
  std::string text{};
};

// Non-empty lines of a text file, without byte order mark and trailing blanks. Throws Error(Fault::data) with file and
// line for UTF-16 and non-text.
std::vector<TextLine> read_lines(const std::string& path);

// Classes of a file in its order: a name per line, or name and description as in "n01440764 tench" or Kaggle's
// LOC_synset_mapping.txt. The latter is detected if first words, but not whole lines, are in `known`, the classes with
// images. `titles`, unless null, receives the descriptions by class, if there are any. Throws Error(Fault::data) with
// file and line for a duplicate class and if no line names a known class.
std::vector<std::string> read_class_list(const std::string& path, const std::vector<std::string>& known,
                                         std::vector<std::string>* titles = nullptr);

// Assigns classes, labelled from `first_label` on, to images from a file with either one class per image, in the order
// of the images, or lines of image name (with or without extension) and class, as in Tiny ImageNet's
// val_annotations.txt and Kaggle's LOC_val_solution.csv, with an optional heading. Further words, separated by blanks
// or commas, are ignored. The file may be ImageNet's development kit, see devkit_labels(). `place`: location of the
// images, for messages. Throws Error(Fault::data) with file and line on a mismatch.
void label_by_lines(std::vector<TreeImage>& images, const std::vector<std::string>& classes, int64_t first_label,
                    const std::string& labels_file, const std::string& place);

}  // namespace dtrain::data
