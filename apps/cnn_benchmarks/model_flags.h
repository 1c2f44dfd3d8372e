// Model flags: tf_cnn_benchmarks' and extensions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/cli/conventions.h"
#include "apps/cli/flags.h"
#include "dtrain/models/catalog.h"
#include "dtrain/train/schedule.h"

namespace dtrain::cnn_benchmarks {

struct ModelFlags {
  std::string model = "trivial", data_name, loss = "auto";
  int64_t image_size = 0, num_classes = 0, label_offset = 0;
  double label_smoothing = 0;
  bool auxiliary_head = false, check_class_names = true;
  std::optional<double> resnet_base_lr;
  cli::ConventionFlags conventions;

  void declare(cli::FlagSet& flags);
  void check(const cli::FlagSet& flags) const;

  bool detects() const { return model == "ssd300"; }
  // The data set in the catalogue: as given, or from data::dataset_at(). Throws Error for an unknown name.
  std::string dataset(const std::string& data_dir, std::vector<std::string>& notices) const;
  // The model variant for the data set. Throws Error naming the nearest known model, and if --resnet_base_lr or
  // --auxiliary_head does not apply to the model.
  models::ClassifierInfo info(const std::string& dataset) const;
  // Classes, image size, auxiliary head and conventions. The classes of an image folder or list are counted.
  models::ClassifierOptions options(const models::ClassifierInfo& info, const std::string& dataset,
                                    const std::string& data_dir, std::vector<std::string>& notices) const;
  // Whether images have any number of labels (binary cross-entropy), by --loss, or with `trains` by the list in
  // `data_dir`; then adds a notice.
  bool multi_label(const std::string& data_dir, bool trains, std::vector<std::string>& notices) const;
  // --num_classes, or the number for the data: at least two, with a notice.
  int64_t classes(const std::string& dataset, const std::string& data_dir, std::vector<std::string>& notices) const;
  // The model's default learning-rate schedule.
  Schedule default_schedule(const models::ClassifierInfo& info, int64_t global_batch, double steps_per_epoch) const;
};

}  // namespace dtrain::cnn_benchmarks
