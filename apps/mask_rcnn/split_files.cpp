#include "apps/mask_rcnn/split_files.h"

#include <string_view>

#include "apps/detection/splits.h"
#include "dtrain/io/remote_path.h"

namespace dtrain::mask_rcnn {
namespace {

// Name of a split's files: without TensorPack's prefix, unless they have it.
std::string file_split(const DataSettings& settings, const std::string& split) {
  if (!split.starts_with(kCocoPrefix) || file_exists(detection::annotations_in(settings.base_dir, split))) return split;
  return split.substr(std::string_view(kCocoPrefix).size());
}

// Splits whose images are in another split's folder, as in TensorPack.
std::string folder_of_split(const std::string& split) {
  if (split == "minival2014" || split == "valminusminival2014") return "val2014";
  if (split == "val2017_100") return "val2017";
  return split;
}

}  // namespace

std::string annotations_of(const DataSettings& settings, const std::string& split) {
  return detection::annotations_in(settings.base_dir, file_split(settings, split));
}

std::string images_of(const DataSettings& settings, const std::string& split) {
  const std::string name = file_split(settings, split), own = detection::images_in(settings.base_dir, name);
  if (folder_of_split(name) == name || folder_exists(settings.base_dir + "/" + name)) return own;
  return detection::images_in(settings.base_dir, folder_of_split(name));
}

}  // namespace dtrain::mask_rcnn
