#include "apps/dataset/imagenet_images.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/cli/messages.h"
#include "apps/dataset/files.h"
#include "data/image_tar.h"
#include "data/label_file.h"
#include "dtrain/core/error.h"

namespace dtrain::dataset {

void ImagenetFlags::declare(cli::FlagSet& flags) {
  common.reads_images = true;
  common.declare(flags, "folder with train/ and validation/, val/ or valid/", false);
  flags.add("train_tar", train_tar,
            "instead of --input: ILSVRC2012_img_train.tar, an archive of <class>.tar archives or of class folders");
  flags.add("val_tar", val_tar, "instead of --input: ILSVRC2012_img_val.tar, with --validation_labels");
  flags.add("labels", labels,
            "text file with one class folder name per line, optionally followed by a description, as in "
            "LOC_synset_mapping.txt; default: the folders in train/ or the classes in --train_tar, sorted");
  flags.add("validation_labels", validation_labels,
            "labels of a validation set without class folders: a text file with the class of the i-th image (sorted by "
            "name) in line i, or with an image name and its class per line, as in LOC_val_solution.csv; or ImageNet's "
            "development kit, ILSVRC2012_devkit_t12.tar.gz");
  flags.add("bounding_boxes", bounding_boxes,
            "text file with one FILE,xmin,ymin,xmax,ymax per line, as fractions: bounding boxes for training crops");
  flags.add("shards", shards, "train shards", {1, data::kMaxShards});
  flags.add("validation_shards", validation_shards, "validation shards; 0: an eighth of --shards",
            {0, data::kMaxShards});
}

void ImagenetFlags::take_kaggle_layout() {
  namespace fs = std::filesystem;
  const fs::path inner = fs::path("ILSVRC") / "Data" / "CLS-LOC";
  std::error_code unknown;
  fs::path root = common.input;
  if (common.input.empty()) return;
  if (!fs::is_directory(root / inner / "train", unknown)) {
    root = fs::absolute(root / ".." / ".." / "..").lexically_normal();
    if (!fs::equivalent(root / inner, common.input, unknown)) return;
  }
  common.input = (root / inner).string();
  for (const auto& [flag, file] :
       {std::pair(&labels, "LOC_synset_mapping.txt"), std::pair(&validation_labels, "LOC_val_solution.csv")})
    if (flag->empty() && fs::exists(root / file, unknown)) *flag = (root / file).string();
  cli::print_message("note", fmt::format("Kaggle's folders: images in {}, labels in {} and {}", common.input,
                                         labels.empty() ? "the folders' names" : labels,
                                         validation_labels.empty() ? "no file" : validation_labels));
}

void ImagenetFlags::check() const {
  cli::refuse({{common.input.empty() && !has_tars(), "--input is missing, or --train_tar; see --help"},
               {!common.input.empty() && has_tars(), "--input and archives exclude each other"},
               {!val_tar.empty() && train_tar.empty() && labels.empty(),
                "--val_tar without --train_tar needs --labels: which classes there are"}});
}

namespace {

// Folder of a split in `root`: the first of its usual names, or a name that differs in case; "" if there is none.
std::string folder_of_split(const std::string& root, const std::string& split,
                            std::initializer_list<const char*> names) {
  if (const std::string usual = existing_folder(root, names); !usual.empty()) return usual;
  for (const std::string& name : data::class_folders(root))
    if (data::split_of_folder(name) == split) return (std::filesystem::path(root) / name).string();
  return "";
}

// Notices about splits with other names, and about folders that are no split.
void note_other_folders(const std::string& input, Splits& found) {
  std::vector<std::string> left;
  for (const std::string& name : data::class_folders(input)) {
    const std::string folder = (std::filesystem::path(input) / name).string();
    if (folder == found.train_place || folder == found.validation_place) continue;
    if (data::split_of_folder(name) == "test" && found.validation_place.empty() &&
        !data::class_folders(folder).empty()) {
      found.validation_place = folder;
      cli::print_message("note", folder + ": used as validation data, because there is no folder validation");
    } else {
      left.push_back(name);
    }
  }
  if (!left.empty())
    cli::print_message(
        "note", fmt::format("{}: skipped, because only train and validation (or val, valid) are converted: {}", input,
                            fmt::join(left, ", ")));
}

// Classes from --labels, instead of from the images.
void take_labels(const ImagenetFlags& flags, Splits& found) {
  if (!flags.labels.empty()) found.classes = data::read_class_list(flags.labels, found.classes, &found.titles);
}

Splits list_folders(const ImagenetFlags& flags) {
  const std::string& input = flags.common.input;
  Splits found{folder_of_split(input, "train", {"train"}),
               folder_of_split(input, "validation", {"validation", "val", "valid"})};
  if (found.train_place.empty()) throw Error(Fault::data, input + ": no folder train in it");
  note_other_folders(input, found);
  if (found.validation_place.empty() && !flags.validation_labels.empty())
    throw Error(Fault::data, input + ": --validation_labels given, but no folder validation, val or valid in it");
  found.classes = data::class_folders(found.train_place);
  take_labels(flags, found);
  found.train = data::list_image_tree(found.train_place, found.classes, 1, true);
  if (!flags.validation_labels.empty())
    found.validation = data::list_labelled_images(found.validation_place, found.classes, 1, flags.validation_labels);
  else if (!found.validation_place.empty() && data::class_folders(found.validation_place).empty())
    throw Error(Fault::data, found.validation_place +
                                 ": no class folders in it; give the classes of its images by "
                                 "--validation_labels FILE, or move it away");
  else if (!found.validation_place.empty())
    found.validation = data::list_image_tree(found.validation_place, found.classes, 1, true);
  return found;
}

// None for images outside of class folders.
void require_classes(const Images& images, const std::string& advice) {
  if (images.front().synset.empty())
    throw Error(Fault::data, concat(images.front().path, ": in no archive or folder of a class", advice));
  // In archives with split folders, class folders may have any names.
  const auto lies_in_split = [](const data::TreeImage& image) {
    return image.split.empty() && !data::split_of_folder(image.synset).empty();
  };
  if (std::ranges::all_of(images, lies_in_split))
    throw Error(Fault::data, concat(images.front().path, ": in the folder ", images.front().synset,
                                    " of a split, without a folder of a class, as all others", advice));
}

// An archive may contain train/ and val/: its validation data is used without --val_tar. Other images are skipped.
void take_splits_apart(const ImagenetFlags& flags, Splits& found) {
  std::map<std::string, Images> splits;
  for (data::TreeImage& image : found.train)
    splits[image.split.empty() ? "train" : image.split].push_back(std::move(image));
  found.train = std::move(splits["train"]);
  splits.erase("train");
  for (auto& [split, images] : splits) {
    const bool is_taken = split == "validation" && flags.val_tar.empty();
    cli::print_message("note", fmt::format("{}: holds {} {} images beside train/: they are {}", flags.train_tar,
                                           images.size(), split, is_taken ? "the validation data" : "left out"));
    if (!is_taken) continue;
    found.validation = std::move(images);
    found.validation_place = flags.train_tar;
  }
}

Splits list_tars(const ImagenetFlags& flags) {
  Splits found{flags.train_tar, flags.val_tar};
  if (!flags.train_tar.empty()) {
    found.train = data::images_of_tar(flags.train_tar);
    take_splits_apart(flags, found);
    require_classes(found.train, "");
  }
  found.classes = data::classes_of(found.train);
  take_labels(flags, found);
  data::label_by_class(found.train, found.classes, 1, flags.train_tar);
  if (!flags.val_tar.empty()) found.validation = data::images_of_tar(flags.val_tar);
  if (found.validation.empty()) return found;
  if (!flags.validation_labels.empty()) {
    data::label_by_lines(found.validation, found.classes, 1, flags.validation_labels, found.validation_place);
  } else {
    require_classes(found.validation, "; give the classes of the images by --validation_labels FILE");
    data::label_by_class(found.validation, found.classes, 1, found.validation_place);
  }
  return found;
}

}  // namespace

Splits list_images(const ImagenetFlags& flags) { return flags.has_tars() ? list_tars(flags) : list_folders(flags); }

}  // namespace dtrain::dataset
