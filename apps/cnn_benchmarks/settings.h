// Flags -> configuration, checked as far as possible without the data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "apps/cnn_benchmarks/flags.h"

namespace dtrain::cnn_benchmarks {

using cli::Ranks;

struct Settings {
  const Flags flags{};  // as parsed; the other members are resolved
  Ranks ranks{};
  RunMode mode = RunMode::training;
  std::string dataset{};  // name in the data catalogue
  cli::Machine machine{};
  cli::Distribution distribution{};
  models::ClassifierInfo info{};
  models::ClassifierOptions options{};  // classes and image size resolved
  int64_t batch = 0, eval_batch = 0;    // images per device and micro-step
  int64_t micro_steps = 1;  // micro-batches per update: --gradient_accumulation, or as required by a checkpoint
  int64_t warmup_steps = 0;
  int input_workers = 0;  // threads of the loader; 0: one per core
  std::map<std::string, std::string> recorded_identity{}, recorded_settings{};  // flags recorded in checkpoints
  std::string text{};                                                           // as FlagSet::config_text()
  std::vector<std::string> notices{};                                           // notices about replaced settings

  bool detects() const { return flags.model.detects(); }
  bool synthetic() const { return flags.input.synthetic(); }
  bool decodes_on_gpu() const { return flags.input.decodes_on_gpu(); }
  data::Pixels pixels() const { return flags.pixels.pixels(dataset, options.image_size); }
  // Training image sizes and their first epochs: a single one without --progressive_resizing.
  std::vector<cli::ResizeStage> stages{};
  int64_t global_batch() const { return batch * micro_steps * ranks.size; }
  int64_t global_eval_batch() const { return eval_batch * ranks.size; }
  // Whether gradients are all-reduced.
  bool sums() const { return ranks.size > 1 || distribution.gradients.even_alone; }
  bool trains() const { return mode == RunMode::training || mode == RunMode::training_and_evaluation; }
  bool evaluates() const { return mode == RunMode::evaluation || mode == RunMode::training_and_evaluation; }
};

// Throws Error for unsupported values and contradictory combinations of flags.
Settings make_settings(const Flags& flags, const cli::FlagSet& set, const Ranks& ranks = {});

}  // namespace dtrain::cnn_benchmarks
