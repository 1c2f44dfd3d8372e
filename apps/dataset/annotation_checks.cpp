#include "apps/dataset/annotation_checks.h"

#include <filesystem>
#include <span>

#include "apps/cli/stop_signals.h"
#include "apps/dataset/files.h"
#include "data/coco_images.h"
#include "data/coco_layout.h"
#include "data/orientation.h"
#include "dtrain/core/error.h"
#include "dtrain/data/coco/annotations.h"
#include "dtrain/data/image.h"
#include "dtrain/io/input_file.h"
#include "dtrain/io/record_file.h"

namespace dtrain::dataset {
namespace {

constexpr const char* kUnreadableListed = "image of annotations that cannot be read";

// Image folder of annotations: that of the split beside the folder of instances_NAME.json, or the file's own folder if
// it contains the images; "" if neither exists.
std::string image_folder_of(const std::string& path, Found how) {
  if (std::string name = std::filesystem::path(path).stem().string(); name.starts_with("instances_")) {
    name.erase(0, std::string_view("instances_").size());
    const std::string root = std::filesystem::path(path).parent_path().parent_path().string();
    const std::string folder = data::coco_images(root, name);
    if (!folder.empty()) return folder;
  }
  return how == Found::beside_images ? directory_of(path) : "";
}

void check_listed_image(const data::coco::AnnotatedImage& image, const std::string& file,
                        const std::string& annotations, FileProblems& found) {
  try {
    const std::string bytes = read_text(file, kMaxRecordBytes);
    data::ImageDecoder decoder;
    const data::ImageInfo info = decoder.open(std::as_bytes(std::span(bytes)));
    if ((info.width != image.width || info.height != image.height) &&
        !data::is_upright_size(info, image.width, image.height))
      found.add("image of another size than its annotations", file,
                concat("is ", info.width, "x", info.height, " pixels large, ", annotations, " has it as ", image.width,
                       "x", image.height));
  } catch (const Error& error) {
    found.add(kUnreadableListed, file, error.what());
  }
}

}  // namespace

bool has_annotations_name(const std::string& name) {
  return name.starts_with("instances_") || name.ends_with("coco.json");
}

void check_annotations(const std::string& path, Found how, FileProblems& found) {
  const std::string folder = image_folder_of(path, how);
  data::coco::AnnotationOptions options{.stop = cli::stop_requested};
  if (!folder.empty()) options.complete = data::complete_from(folder);
  const data::coco::Annotations annotations = data::coco::read_annotations(path, options);
  for (const data::coco::Finding& finding : annotations.findings.all()) {
    if (!folder.empty() && finding.kind == data::coco::kUnusableImages) continue;  // each is listed below
    found.add(finding.kind, path, concat("first: ", finding.first, ": ", finding.action), finding.is_fault);
    found.problems.back().count = finding.count;
  }
  if (folder.empty()) return;
  for (const data::coco::UnusableImage& image : annotations.unusable)
    found.add(kUnreadableListed, concat(folder, "/", image.name), image.reason);
  for (const data::coco::AnnotatedImage& image : annotations.images)
    check_listed_image(image, concat(folder, "/", image.file_name), path, found);
}

}  // namespace dtrain::dataset
