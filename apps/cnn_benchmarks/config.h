// Flags -> what is to be done, checked as far as it can be without looking at the data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "apps/cnn_benchmarks/flags.h"

namespace dtrain::cnn_benchmarks {

using cli::Ranks;

struct Config {
  const Flags flags{};  // as they were parsed; what they come to is in the other members
  Ranks ranks{};
  RunMode mode = RunMode::training;
  std::string dataset{};  // a name in data's catalogue
  cli::Machine machine{};
  cli::Distribution distribution{};
  models::ClassifierInfo info{};
  models::ClassifierOptions options{};  // classes and image size resolved
  int64_t batch = 0, eval_batch = 0;    // images per device and micro-step
  int64_t micro_steps = 1;              // batches per update: --gradient_accumulation, or what a checkpoint asks for
  int64_t warmup_steps = 0;
  int input_workers = 0;  // threads of the loader; 0: one per core
  std::map<std::string, std::string> recorded_identity{}, recorded_settings{};  // what checkpoints record of flags
  std::string text{};                                                           // as FlagSet::config_text()
  std::vector<std::string> notices{};  // what was asked for and is done in another way, for people

  bool synthetic() const { return flags.input.synthetic(); }
  bool decodes_on_gpu() const { return flags.input.decodes_on_gpu(); }
  data::Pixels pixels() const { return flags.pixels.pixels(dataset, options.image_size); }
  // Sizes of the images of training, and from which epoch on: one, unless --progressive_resizing says so.
  std::vector<cli::ResizeStage> stages{};
  int64_t global_batch() const { return batch * micro_steps * ranks.size; }
  int64_t global_eval_batch() const { return eval_batch * ranks.size; }
  // Gradients pass a communicator.
  bool sums() const { return ranks.size > 1 || distribution.gradients.even_alone; }
  bool trains() const { return mode == RunMode::training || mode == RunMode::training_and_evaluation; }
  bool evaluates() const { return mode == RunMode::evaluation || mode == RunMode::training_and_evaluation; }
};

// Throws Error for a value that cannot be served and for a combination of flags that makes no sense.
Config make_config(const Flags& flags, const cli::FlagSet& set, const Ranks& ranks = {});

}  // namespace dtrain::cnn_benchmarks
