// Image folders, as torchvision's ImageFolder reads them: DIR/train/CLASS/... and DIR/validation/CLASS/...
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/image_source.h"

namespace dtrain::data {

// Folder of a split below `directory`: the one whose name split_of_folder() takes for the split, or for validation
// without one a folder of the split "test"; "" if there is none. Throws Error(Fault::data) if there are two.
std::string split_folder(const std::string& directory, bool training);

// Whether the images of `directory` are in class folders of a split, and not in shards. Throws
// Error(Fault::resource) if a server does not answer.
bool has_image_folders(const std::string& directory);

// Classes by label: the class folders of the training split, or of validation without one, sorted by bytes.
std::vector<std::string> classes_of_folders(const std::string& directory);

// Outputs of a model for these classes with `label_offset`, which is added to labels.
int64_t image_folder_outputs(const std::string& directory, int64_t label_offset);

struct FolderOptions {
  std::string directory{};
  bool training = true;
  CacheOptions cache{};
  std::function<void(const std::string&)> notice{};  // optional: counts of images, classes and files that are left out
};

// Images of a split, labelled from 0 in the order of classes_of_folders(), numbered as by ImageFolder. Throws
// Error(Fault::data) without images, and if the classes of validation and training differ.
std::unique_ptr<const ImageSource> open_image_folder(const FolderOptions& options);
// Their data set, for a model of `classes` outputs; 0: image_folder_outputs(). `multi_label`: with the layout
// multi_labelled_images. Also throws Error(Fault::data) if the labels do not fit the outputs.
std::shared_ptr<Dataset> open_image_folder(const FolderOptions& options, int64_t classes, int64_t label_offset,
                                           PreprocessorFactory preprocessors, bool multi_label = false);

}  // namespace dtrain::data
