#include "dtrain/data/catalog.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "data/coco_layout.h"
#include "data/image_folder.h"
#include "data/image_list.h"
#include "data/image_source.h"
#include "data/shard_files.h"
#include "data/web_dataset.h"
#include "data/whole_image.h"
#include "dtrain/core/error.h"
#include "dtrain/data/cifar10.h"
#include "dtrain/data/example.h"
#include "dtrain/data/imagenet.h"
#include "dtrain/data/mnist.h"
#include "dtrain/io/record_file.h"
#include "dtrain/io/remote_path.h"
#include "libdtrain/core/lower_case.h"

namespace dtrain::data {
namespace {

// [0, 255] -> [-1, 1].
constexpr PixelScale kToPlusMinusOne{{127.5f, 127.5f, 127.5f}, {1 / 127.5f, 1 / 127.5f, 1 / 127.5f}};
// Subtracts ImageNet's mean colour.
constexpr PixelScale kLessMean{{123.68f, 116.78f, 103.94f}, {1, 1, 1}};
// torchvision's mean and standard deviation of ImageNet.
constexpr PixelScale kStandard{{255 * 0.485f, 255 * 0.456f, 255 * 0.406f},
                               {1 / (255 * 0.229f), 1 / (255 * 0.224f), 1 / (255 * 0.225f)}};
// AWS's mean and standard deviation.
constexpr PixelScale kAws{{121, 115, 100}, {1 / 70.0f, 1 / 68.0f, 1 / 71.0f}};

PreprocessorFactory make_cifar(const PreprocessOptions& options) {
  return make_cifar_preprocess({options.training, options.height, options.width, options.orientation});
}

PreprocessorFactory make_whole(const PreprocessOptions& options) {
  return make_whole_image_preprocess(options.height, options.width, options.orientation);
}

// Lists that are not read because class folders are.
void note_unread_lists(const SplitOptions& options) {
  if (!options.notice) return;
  try {
    if (const std::string list = find_image_list(options.directory, options.training); !list.empty())
      options.notice(concat(list, ": is not read, because there are class folders; --data_dir=", list, " reads it"));
  } catch (const Error& error) {
    options.notice(concat(error.what(), "; class folders are read instead"));
  }
}

std::shared_ptr<Dataset> open_folder(const SplitOptions& options, const Pixels& pixels) {
  note_unread_lists(options);
  return open_image_folder({options.directory, options.training, options.cache, options.notice}, options.classes,
                           options.label_offset, pixels.make(options.augments), options.multi_label);
}

std::shared_ptr<Dataset> open_tars(const DatasetInfo& info, const SplitOptions& options, const Pixels& pixels) {
  return std::make_shared<ImageSourceDataset>(
      open_web_dataset({options.directory, options.training, options.cache, options.notice}),
      options.classes > 0 ? options.classes : info.classes, options.label_offset, options.cache,
      pixels.make(options.augments), options.multi_label);
}

std::shared_ptr<Dataset> open_list(const SplitOptions& options, const Pixels& pixels) {
  const int64_t count = labels_of_lists(options.directory).count, needed = count + options.label_offset;
  const int64_t classes = options.classes > 0 ? options.classes : needed;
  if (needed > classes)
    throw Error(Fault::data,
                concat(options.directory, ": labels below ", count, " and label offset ", options.label_offset,
                       " do not fit a model of ", classes,
                       " classes; leave --num_classes and --label_offset out, or give at least ", needed, " classes"));
  return std::make_shared<ImageSourceDataset>(
      open_image_list({options.directory, options.training, options.multi_label, options.cache, options.notice}),
      classes, options.label_offset, options.cache, pixels.make(options.augments), options.multi_label);
}

std::shared_ptr<Dataset> open_imagenet(const DatasetInfo& info, const SplitOptions& options, const Pixels& pixels) {
  if (has_image_folders(options.directory)) return open_folder(options, pixels);
  if (has_tars(options.directory)) return open_tars(info, options, pixels);
  if (has_image_lists(options.directory)) return open_list(options, pixels);
  const std::string split = options.training ? "train" : "validation";
  if (!has_shards(options.directory, split))
    throw Error(Fault::data,
                concat(options.directory, ": no ", split, "-*-of-* files in it or in its folder ", split,
                       ", no class folders ", split, "/CLASS, and no list ", options.training ? "train.csv" : "val.csv",
                       "; make shards with dtrain-data, put images into class folders, or list them"));
  if (options.multi_label)
    throw Error(concat(options.directory,
                       ": --loss=bce takes class folders, archives and lists of images; the records ",
                       "of shards have one label"));
  const ImagenetOptions files{.directory = options.directory,
                              .split = split,
                              .classes = options.classes > 0 ? options.classes : info.classes,
                              .label_offset = options.label_offset,
                              .cache = options.cache};
  return std::make_shared<ImagenetDataset>(files, pixels.make(options.augments));
}

std::shared_ptr<Dataset> open_cifar(const DatasetInfo& info, const SplitOptions& options, const Pixels& pixels) {
  if (!has_shards(options.directory, options.training ? "train" : "validation") &&
      !has_image_folders(options.directory) && !has_tars(options.directory) && !has_image_lists(options.directory))
    if (const std::string form = other_cifar_form(options.directory); !form.empty())
      throw Error(Fault::data, options.directory + ": holds " + form);
  return open_imagenet(info, options, pixels);
}

std::shared_ptr<Dataset> open_mnist(const DatasetInfo& info, const SplitOptions& options, const Pixels& pixels) {
  DT_CHECK(!options.multi_label, "--loss=bce: the images of ", info.name, " have one label");
  return std::make_shared<MnistDataset>(MnistOptions{.directory = options.directory,
                                                     .training = options.training,
                                                     .classes = options.classes > 0 ? options.classes : info.classes,
                                                     .label_offset = options.label_offset,
                                                     .size = pixels.size});
}

// MNIST and Fashion-MNIST have equal file names and formats.
DatasetInfo mnist_like(const std::string& name, const std::string& path_part) {
  return {.name = name,
          .path_part = path_part,
          .files = FilesKind::idx,
          .training = 60'000,
          .validation = 10'000,
          .classes = 10,
          .preprocessings = {{.name = "tf_cnn",
                              .preset = Preset::tf_cnn,
                              .scale = kToPlusMinusOne,
                              .make = make_whole,
                              .host_only = "MNIST's images are grey levels and need no decoder"}},
          .open = open_mnist};
}

std::shared_ptr<Dataset> refuse_labels(const DatasetInfo& info, const SplitOptions&, const Pixels&) {
  throw Error(concat("the images of ", info.name, " have objects and no labels: they are for detectors"));
}

DatasetInfo coco() {
  Preprocessing whole{.name = "tf_cnn", .preset = Preset::tf_cnn, .scale = kStandard};
  whole.host_only = "images with objects are cropped on the host";
  return {.name = "coco",
          .path_part = "coco",
          .files = FilesKind::objects,
          .training = 118'287,
          .validation = 5'000,
          .classes = 81,
          .preprocessings = {whole},
          .open = refuse_labels};
}

std::vector<DatasetInfo> make_catalog() {
  const Preprocessing tf_cnn{.name = "tf_cnn", .preset = Preset::tf_cnn, .scale = kToPlusMinusOne};
  const Preprocessing torchvision{.name = "torchvision", .preset = Preset::torchvision, .scale = kStandard};
  const Preprocessing official{.name = "official_models_imagenet", .preset = Preset::official, .scale = kLessMean};
  Preprocessing mlperf = official;
  mlperf.name = "mlperf";
  mlperf.use_boxes = false;
  Preprocessing aws{.name = "aws", .preset = Preset::aws, .scale = kAws, .use_boxes = false};
  aws.host_only = "the aws preprocessing cuts values off to bytes, which the host does";
  Preprocessing tf_cnn_cifar = tf_cnn;
  tf_cnn_cifar.make = make_cifar;
  tf_cnn_cifar.host_only = "CIFAR-10's images are PNGs and are augmented on the host";
  return {{.name = "imagenet",
           .training = 1'281'167,
           .validation = 50'000,
           .classes = 1001,
           .preprocessings = {tf_cnn, torchvision, official, mlperf, aws},
           .open = open_imagenet},
          {.name = "cifar10",
           .path_part = "cifar10",
           .training = 50'000,
           .validation = 10'000,
           .classes = 11,
           .preprocessings = {tf_cnn_cifar, torchvision},
           .open = open_cifar},
          mnist_like("fashion_mnist", "fashion"),
          mnist_like("mnist", "mnist"),
          coco()};
}

const char* describe(FilesKind kind) {
  switch (kind) {
    case FilesKind::labelled_images:
      return "records of labelled images";
    case FilesKind::idx:
      return "IDX files";
    case FilesKind::objects:
      return "images with objects";
  }
  return "";
}

const char* usual_dataset(FilesKind kind) {
  switch (kind) {
    case FilesKind::labelled_images:
      return "imagenet";
    case FilesKind::idx:
      return "mnist";
    case FilesKind::objects:
      return "coco";
  }
  return "";
}

// Kind of the first readable record; nothing without one.
std::optional<FilesKind> kind_of_records(const std::string& directory) {
  for (const char* split : {"train", "validation"}) {
    try {
      RecordReader reader(find_shards(directory, split).front());
      const std::optional<Record> record = reader.next();
      if (!record) continue;
      Example example;
      example.parse(record->bytes);
      if (example.find("image/class/label") != nullptr) return FilesKind::labelled_images;
      if (example.find("image/object/class/label") != nullptr) return FilesKind::objects;
    } catch (const Error& error) {  // opening the split reports other errors
      if (error.fault() == Fault::resource) throw;
    }
  }
  return {};
}

std::optional<FilesKind> kind_of_files(const std::string& directory) {
  namespace fs = std::filesystem;
  if (directory.empty()) return {};
  if (has_mnist(directory)) return FilesKind::idx;
  if (folder_exists((fs::path(directory) / "annotations").string()) && !coco_splits(directory).empty())
    return FilesKind::objects;
  const bool has_images = has_image_folders(directory) || has_tars(directory) || has_image_lists(directory);
  return has_images ? FilesKind::labelled_images : kind_of_records(directory);
}

constexpr std::pair<const char*, TfResize> kResizeMethods[] = {
    {"nearest", TfResize::nearest}, {"bilinear", TfResize::bilinear},       {"bicubic", TfResize::bicubic},
    {"area", TfResize::area},       {"round_robin", TfResize::round_robin}, {"crop", TfResize::crop},
};

TfResize resize_of(const std::string& name) {
  for (const auto& [known, method] : kResizeMethods)
    if (name == known) return method;
  throw Error(concat("unknown resize method '", name, "'"));
}

const Preprocessing& preprocessing_of(const Pixels& pixels) {
  for (const Preprocessing& way : dataset_info(pixels.dataset).preprocessings)
    if (way.name == pixels.preprocessing) return way;
  throw Error(concat("data set ", pixels.dataset, " has no preprocessing '", pixels.preprocessing, "'"));
}

PreprocessOptions options_of(const Pixels& pixels, bool training) {
  const Preprocessing& way = preprocessing_of(pixels);
  PreprocessOptions options;
  options.preset = way.preset;
  options.training = training;
  options.height = options.width = pixels.size;
  options.orientation = pixels.orientation;
  options.resize = resize_of(pixels.resize_method);
  options.distort_color = pixels.distortions;
  options.distort_in_yiq = pixels.distort_in_yiq;
  options.use_boxes = way.use_boxes && !pixels.ml_perf;
  return options;
}

}  // namespace

PreprocessorFactory Pixels::make(bool training) const {
  return preprocessing_of(*this).make(options_of(*this, training));
}

DecodeOptions Pixels::decoding(bool training) const { return decode_options(options_of(*this, training)); }

PixelScale Pixels::scale() const {
  const Preprocessing& way = preprocessing_of(*this);
  return ml_perf && way.preset == Preset::tf_cnn ? kLessMean : way.scale;
}

const std::string& Pixels::host_only() const { return preprocessing_of(*this).host_only; }

const std::vector<DatasetInfo>& datasets() {
  static const std::vector<DatasetInfo> all = make_catalog();
  return all;
}

std::vector<std::string> dataset_names() {
  std::vector<std::string> names;
  for (const DatasetInfo& info : datasets()) names.push_back(info.name);
  return names;
}

const DatasetInfo* find_dataset(std::string_view name) {
  const auto found = std::ranges::find(datasets(), name, &DatasetInfo::name);
  return found == datasets().end() ? nullptr : &*found;
}

const DatasetInfo& dataset_info(std::string_view name) {
  if (const DatasetInfo* found = find_dataset(name)) return *found;
  std::string known;
  for (const DatasetInfo& info : datasets()) known += (known.empty() ? "" : ", ") + info.name;
  throw Error(concat("unknown data set '", name, "'; there are ", known));
}

const DatasetInfo& dataset_at(std::string_view path, std::vector<std::string>& notices) {
  const std::string lower = lower_case(std::string(path));
  const std::optional<FilesKind> kind = kind_of_files(std::string(path));
  const auto fits = [&](const DatasetInfo& info) { return !kind || info.files == *kind; };
  const auto is_named = [&](const DatasetInfo& info) {
    return !info.path_part.empty() && lower.find(info.path_part) != std::string::npos;
  };
  const auto first = [&](const auto& test) -> const DatasetInfo* {
    const auto found = std::ranges::find_if(datasets(), test);
    return found == datasets().end() ? nullptr : &*found;
  };
  const DatasetInfo* named = first(is_named);
  if (named == nullptr) named = &datasets().front();
  const DatasetInfo* chosen = first([&](const DatasetInfo& info) { return fits(info) && is_named(info); });
  if (chosen == nullptr) chosen = kind ? &dataset_info(usual_dataset(*kind)) : named;
  if (named != chosen)
    notices.push_back(concat(path, ": is taken for ", chosen->name, " by its files, ", describe(*kind),
                             ", and not for ", named->name, " by its path; set --data_name to override"));
  return *chosen;
}

std::vector<std::string> preprocessing_names() {
  std::vector<std::string> names;
  for (const DatasetInfo& info : datasets())
    for (const Preprocessing& way : info.preprocessings)
      if (std::ranges::find(names, way.name) == names.end()) names.push_back(way.name);
  return names;
}

std::shared_ptr<Dataset> open_split(const Pixels& pixels, const SplitOptions& options) {
  const DatasetInfo& info = dataset_info(pixels.dataset);
  std::shared_ptr<Dataset> dataset = info.open(info, options, pixels);
  if (dataset->size() == 0)
    throw Error(Fault::data, !dataset->faults().empty() ? dataset->faults().front()
                                                        : concat(options.directory, ": no record in the files ",
                                                                 options.training ? "train" : "validation", "-*"));
  return options.augments ? augmented(std::move(dataset), options.augmentation) : dataset;
}

}  // namespace dtrain::data
