// Labelled images as they are stored: in shards of TFRecords, class folders, WebDataset archives, or listed files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "data/image_folder.h"
#include "dtrain/data/class_names.h"

namespace dtrain::data {

enum class LabelledFormat { folders, archives, lists, records };
// Format of the data set `data`, in this order of preference; records if it is no other.
LabelledFormat labelled_format(const std::string& data);

// Whether `data` has a split of labelled images.
bool has_labelled_images(const std::string& data, bool training);

// Names by stored label: the class folders, those of lists, else those of the file of class names.
ClassNames stored_class_names(const std::string& data);

// Outputs of a model for the class folders or the classes of lists, with `label_offset`; nothing for other data.
std::optional<int64_t> outputs_of_classes(const std::string& data, int64_t label_offset);

// Opens the split of has_labelled_images(). Throws Error(Fault::data) as the readers of these formats do.
std::unique_ptr<const ImageSource> open_labelled_images(const FolderOptions& options);

}  // namespace dtrain::data
