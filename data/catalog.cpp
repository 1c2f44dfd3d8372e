#include "data/catalog.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "data/cifar10.h"
#include "data/imagenet.h"
#include "data/mnist.h"
#include "data/whole_image.h"
#include "libdtrain/core/error.h"

namespace dtrain::data {
namespace {

// Takes values from 0 to 255 to [-1, 1].
constexpr PixelScale kToPlusMinusOne{{127.5f, 127.5f, 127.5f}, {1 / 127.5f, 1 / 127.5f, 1 / 127.5f}};
// ImageNet's mean colour.
constexpr PixelScale kLessMean{{123.68f, 116.78f, 103.94f}, {1, 1, 1}};
// By torchvision's mean and standard deviation of ImageNet.
constexpr PixelScale kStandard{{255 * 0.485f, 255 * 0.456f, 255 * 0.406f},
                               {1 / (255 * 0.229f), 1 / (255 * 0.224f), 1 / (255 * 0.225f)}};
// AWS's own mean and standard deviation.
constexpr PixelScale kAws{{121, 115, 100}, {1 / 70.0f, 1 / 68.0f, 1 / 71.0f}};

MakePreprocess make_cifar(const PreprocessOptions& options) {
  return make_cifar_preprocess({options.training, options.height, options.width});
}

MakePreprocess make_whole(const PreprocessOptions& options) {
  return make_whole_image_preprocess(options.height, options.width);
}

std::shared_ptr<Dataset> open_imagenet(const DatasetInfo& info, const SplitOptions& options, const Pixels& pixels) {
  const ImagenetOptions files{.directory = options.directory,
                              .split = options.training ? "train" : "validation",
                              .classes = options.classes > 0 ? options.classes : info.classes,
                              .label_offset = options.label_offset,
                              .cache = options.cache};
  return std::make_shared<ImagenetDataset>(files, pixels.make(options.augments),
                                           options.defers ? pixels.make_defer(options.augments) : MakeDefer());
}

std::shared_ptr<Dataset> open_mnist(const DatasetInfo& info, const SplitOptions& options, const Pixels& pixels) {
  return std::make_shared<MnistDataset>(MnistOptions{.directory = options.directory,
                                                     .training = options.training,
                                                     .classes = options.classes > 0 ? options.classes : info.classes,
                                                     .label_offset = options.label_offset,
                                                     .size = pixels.size});
}

// Both sets have the same files; only what lies in them differs.
DatasetInfo mnist_like(const std::string& name, const std::string& path_part) {
  return {.name = name,
          .path_part = path_part,
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
           .open = open_imagenet},
          mnist_like("fashion_mnist", "fashion"),
          mnist_like("mnist", "mnist")};
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
  options.resize = resize_of(pixels.resize_method);
  options.distort_color = pixels.distortions;
  options.distort_in_yiq = pixels.distort_in_yiq;
  options.use_boxes = way.use_boxes && !pixels.ml_perf;
  return options;
}

}  // namespace

MakePreprocess Pixels::make(bool training) const { return preprocessing_of(*this).make(options_of(*this, training)); }

MakeDefer Pixels::make_defer(bool training) const {
  DT_CHECK(host_only().empty(), host_only());
  return data::make_defer(options_of(*this, training));
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

const DatasetInfo* find_dataset(const std::string& name) {
  const auto found = std::ranges::find(datasets(), name, &DatasetInfo::name);
  return found == datasets().end() ? nullptr : &*found;
}

const DatasetInfo& dataset_info(const std::string& name) {
  if (const DatasetInfo* found = find_dataset(name)) return *found;
  std::string known;
  for (const DatasetInfo& info : datasets()) known += (known.empty() ? "" : ", ") + info.name;
  throw Error(concat("unknown data set '", name, "'; there are ", known));
}

const DatasetInfo& dataset_at(const std::string& path) {
  std::string lower = path;
  for (char& letter : lower) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  for (const DatasetInfo& info : datasets())
    if (!info.path_part.empty() && lower.find(info.path_part) != std::string::npos) return info;
  return datasets().front();
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
