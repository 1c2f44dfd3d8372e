// Raw image collections, a folder per class, as lists of labelled images, and the records that are made of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/shards.h"
#include "libdtrain/io/input_file.h"

namespace dtrain::data {

struct TreeImage {
  std::string path{};  // where it is, for messages at least
  std::string filename{};
  int64_t label = 0;
  std::string synset{};  // the class folder's name
  std::string split{};   // "train", "validation" or "test", where an archive holds several, or a folder beside these
  std::vector<Box> boxes{};
  // Where it lies in an archive: the file, and the bytes in it. Without one it is the file at `path`.
  std::shared_ptr<const InputFile> archive{};
  uint64_t offset = 0, bytes = 0;
};

// The images of <root>/<class>/*, ordered by class and name. `classes[i]` has the label first_label + i. Throws
// Error(Fault::data) naming a folder that is not among the classes, one within a class, a class without a folder
// (unless `partial`), and a root that is not there.
std::vector<TreeImage> list_image_tree(const std::string& root, const std::vector<std::string>& classes,
                                       int64_t first_label, bool partial);

// The images of one folder without subfolders, sorted by name, as ImageNet's validation set comes, with classes by
// label_by_lines(), see data/label_file.h. Throws Error(Fault::data) where the two do not fit.
std::vector<TreeImage> list_labelled_images(const std::string& folder, const std::vector<std::string>& classes,
                                            int64_t first_label, const std::string& labels_file);

// The label of each image by its class, as list_image_tree does it. `place` is where the images are. Throws
// Error(Fault::data) where they do not fit.
void label_by_class(std::vector<TreeImage>& images, const std::vector<std::string>& classes, int64_t first_label,
                    const std::string& place);

// Whether a file or folder of this name is never a class or an image: hidden ones, such as .DS_Store and the ._* files
// of macOS, and what macOS, Synology and Windows add to archives and disks.
bool is_left_out(const std::string& name);

// "train", "validation" or "test" for the name of a folder of a split, in letters of either case: train, training,
// validation, val, valid, test or testing; "" for others.
std::string split_of_folder(const std::string& name);

// Names of the folders in `root`, sorted.
std::vector<std::string> class_folders(const std::string& root);

// The bytes of the file, or of the member of an archive. Throws Error(Fault::data).
std::string bytes_of(const TreeImage& image);

// The file as a record. What a TFRecord consumer may not read is written anew as a JPEG of quality 100 with the image's
// orientation: all that is no JPEG, CMYK and YCCK. Everything else keeps its bytes. `warning` is what the decoder
// warned of although all pixels are there, or "". Throws BadRecordError naming the file where it cannot be read, does
// not decode or is damaged.
std::string tree_record(const TreeImage& image, std::string& warning);
// The same without the mending: all bytes stay.
std::string verbatim_record(const TreeImage& image, std::string& warning);

}  // namespace dtrain::data
