#include "apps/cnn_benchmarks/model_flags.h"

#include <algorithm>

#include <fmt/format.h>

#include "apps/cli/multi_label.h"
#include "apps/cli/recorded_weights.h"
#include "apps/cli/vision.h"
#include "apps/ssd/model.h"
#include "data/labelled_source.h"
#include "dtrain/data/catalog.h"
#include "dtrain/models/conventions.h"

namespace dtrain::cnn_benchmarks {

void ModelFlags::declare(cli::FlagSet& flags) {
  flags.group("Model");
  flags.add("model", model, fmt::format("{}, {}", fmt::join(models::classifier_names(), ", "), ssd::kName))
      .identity("model", [this] { return model + models::describe(conventions.conventions()); });
  flags
      .add("data_name", data_name,
           fmt::format("{}; by default guessed from the files in data_dir, then from its path, else {}",
                       fmt::join(data::dataset_names(), " or "), data::datasets().front().name))
      .identity_once_resolved("data set");
  flags.add("image_size", image_size, "side of the images in pixels; 0: the model's default", cli::kImageSize)
      .identity_once_resolved("image size");
  flags
      .add("num_classes", num_classes,
           "outputs of the model; 0: the number of class folders or listed classes, or the data set's default, where "
           "class 0 is background",
           cli::kClasses)
      .identity_once_resolved("classes");
  flags
      .add("label_offset", label_offset, "added to the labels of the files, e.g. -1 with --num_classes=1000",
           {-cli::kMostSteps, cli::kMostSteps})
      .identity("label offset");
  flags
      .add_choice(
          "loss", loss, {"auto", "softmax", "bce"},
          "softmax: cross-entropy of one label per image; bce: binary cross-entropy of each class, for any number "
          "of labels (multi-label); auto: bce if an image of the training list has several labels, or for "
          "weights that were trained so")
      .identity_once_resolved(cli::kLossKey);
  flags.add("check_class_names", check_class_names,
            "refuse evaluations of class folders or lists with other names of classes than the weights record");
  flags
      .add("label_smoothing", label_smoothing, "probability mass of the target that is spread evenly over all classes",
           cli::kBelowOne)
      .setting("label smoothing");
  flags.add("auxiliary_head", auxiliary_head,
            "for inception3 and NASNet: trains with the paper's auxiliary classifier, whose loss is weighted by 0.4");
  flags.add(
      "resnet_base_lr", resnet_base_lr,
      "for ResNets on ImageNet: learning rate at a global batch size of 256; default 0.128, official_resnet*: 0.1",
      cli::kNotNegative);
  conventions.declare(flags);
}

void ModelFlags::check(const cli::FlagSet&) const {
  cli::refuse({{num_classes == 1, "--num_classes=1: a classifier needs two classes at least"}});
}

std::string ModelFlags::dataset(const std::string& data_dir, std::vector<std::string>& notices) const {
  if (data_name.empty()) return data::dataset_at(data_dir, notices).name;
  DT_CHECK(data::find_dataset(data_name) != nullptr, "--data_name=", data_name, ": unknown; expected ",
           fmt::format("{}", fmt::join(data::dataset_names(), " or ")));
  return data_name;
}

models::ClassifierInfo ModelFlags::info(const std::string& dataset) const {
  DT_CHECK(detects() == (dataset == ssd::kDataset), "--model=", model, " of the data set ", dataset,
           ": ssd300 needs detection data (coco), and classifiers need classification data; see --data_name");
  models::ClassifierInfo info = detects() ? ssd::info() : cli::find_model(model, dataset);
  DT_CHECK(!resnet_base_lr || info.rate_grows_with_batch, "--resnet_base_lr: for ResNets on ImageNet only; ", model,
           " takes --init_learning_rate");
  DT_CHECK(!auxiliary_head || info.auxiliary_head, "--auxiliary_head: for inception3 and NASNet only; ", model,
           " has none");
  return info;
}

bool ModelFlags::multi_label(const std::string& data_dir, bool trains, std::vector<std::string>& notices) const {
  if (loss != "auto") return loss == "bce";
  return trains && !detects() && cli::lists_several_labels(data_dir, notices);
}

int64_t ModelFlags::classes(const std::string& dataset, const std::string& data_dir,
                            std::vector<std::string>& notices) const {
  if (num_classes > 0) return num_classes;
  const data::DatasetInfo& known = data::dataset_info(dataset);
  if (known.files != data::FilesKind::labelled_images) return known.classes;
  const int64_t found = data::outputs_of_classes(data_dir, label_offset).value_or(known.classes);
  if (found < 2) notices.push_back(data_dir + ": has one class; the model has two outputs, the second one unused");
  return std::max<int64_t>(found, 2);
}

models::ClassifierOptions ModelFlags::options(const models::ClassifierInfo& info, const std::string& dataset,
                                              const std::string& data_dir, std::vector<std::string>& notices) const {
  models::ClassifierOptions options;
  options.image_size = image_size > 0 ? image_size : info.image_size;
  options.classes = classes(dataset, data_dir, notices);
  options.auxiliary_head = auxiliary_head;
  options.conventions = conventions.conventions();
  return options;
}

Schedule ModelFlags::default_schedule(const models::ClassifierInfo& info, int64_t global_batch,
                                      double steps_per_epoch) const {
  if (detects()) return ssd::schedule(global_batch);
  return models::default_schedule(info, global_batch, steps_per_epoch, resnet_base_lr);
}

}  // namespace dtrain::cnn_benchmarks
