// Text files that say which classes there are, and of which class each image is.
#pragma once

#include <string>
#include <vector>

#include "data/image_tree.h"

namespace dtrain::data {

struct TextLine {
  size_t number = 0;  // counted from 1, as editors do
  std::string text{};
};

// The lines of a text file without a byte order mark and blanks at their ends; empty ones are left out. Throws
// Error(Fault::data) naming file and line for text in UTF-16 and for what is no text.
std::vector<TextLine> read_lines(const std::string& path);

// The classes that the file lists, in its order: a name per line, or name and description, as in "n01440764 tench" or
// Kaggle's LOC_synset_mapping.txt, where the first words and not the lines are among `known`, the classes that have
// images. `titles`, unless null, gets each class with its description, and nothing for a list without descriptions.
// Throws Error(Fault::data) naming file and line for a class listed twice, and where no line names a known one.
std::vector<std::string> read_class_list(const std::string& path, const std::vector<std::string>& known,
                                         std::vector<std::string>* titles = nullptr);

// Gives images their classes, which are labelled from `first_label` on, by a file of lines of one of two kinds: a class
// for each image, in the order of the images; or the name of an image, with or without its ending, and its class, as in
// Tiny ImageNet's val_annotations.txt and Kaggle's LOC_val_solution.csv, whose first line may be a heading. Either may
// have more words, separated by blanks or commas. `place` is where the images are. Throws Error(Fault::data) naming
// file and line where the two do not fit.
void label_by_lines(std::vector<TreeImage>& images, const std::vector<std::string>& classes, int64_t first_label,
                    const std::string& labels_file, const std::string& place);

}  // namespace dtrain::data
