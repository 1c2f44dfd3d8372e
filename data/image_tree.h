// Image folders with one subfolder per class, as lists of labelled images and as records.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/shards.h"
#include "dtrain/io/input_file.h"

namespace dtrain::data {

struct TreeImage {
  std::string path{};  // for messages; the file itself without `archive`
  std::string filename{};
  int64_t label = 0;
  std::string synset{};  // name of the class folder
  std::string split{};   // "train", "validation", "test" or a folder, in an archive with several splits
  std::vector<NormalizedBox> boxes{};
  // Archive and byte range in it; without an archive the file at `path`.
  std::shared_ptr<const InputFile> archive{};
  uint64_t offset = 0, bytes = 0;
};

// Images <root>/<class>/*, sorted by class and name. `classes[i]` has label first_label + i. Throws Error(Fault::data)
// for an unknown class folder, a folder inside a class, a class without a folder (unless `partial`), and a missing
// root.
std::vector<TreeImage> list_image_tree(const std::string& root, const std::vector<std::string>& classes,
                                       int64_t first_label, bool partial);

// Images of one flat folder, such as ImageNet's validation set, sorted by name, with classes from label_by_lines() of
// data/label_file.h. Throws Error(Fault::data) on a mismatch.
std::vector<TreeImage> list_labelled_images(const std::string& folder, const std::vector<std::string>& classes,
                                            int64_t first_label, const std::string& labels_file);

// Labels images by their class, as list_image_tree does. `place`: location of the images, for messages. Throws
// Error(Fault::data) on a mismatch.
void label_by_class(std::vector<TreeImage>& images, const std::vector<std::string>& classes, int64_t first_label,
                    const std::string& place);

// Whether a file or folder is neither a class nor an image: hidden files such as .DS_Store and ._* of macOS, and other
// files that macOS, Synology and Windows add.
bool is_left_out(const std::string& name);

// Split of a folder name, case-insensitively: "train", "validation" or "test" for train, training, validation, val,
// valid, test and testing; else "".
std::string split_of_folder(const std::string& name);

// Names of the subfolders of `root`, sorted.
std::vector<std::string> class_folders(const std::string& root);

// Reads the file or archive member. Throws Error(Fault::data).
std::string bytes_of(const TreeImage& image);

// Makes a record of an image. Re-encodes what TFRecord consumers may not support (not JPEG, CMYK, YCCK) as a JPEG of
// quality 100 with the same orientation; other files keep their bytes. `warning`: the decoder's warning if no pixels
// are lost, or "". Throws BadRecordError for a file that is unreadable, undecodable or damaged.
std::string tree_record(const TreeImage& image, std::string& warning);
// The same without re-encoding.
std::string verbatim_record(const TreeImage& image, std::string& warning);

}  // namespace dtrain::data
