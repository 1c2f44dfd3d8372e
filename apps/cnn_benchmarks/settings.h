// Settings of a run: the flags, resolved and checked as far as possible without the data.
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
  RunShape shape{};          // batch, micro-steps, all-reduce and threads: by the flags or the resumed checkpoint
  int64_t packs = 0;         // number of gradient buckets of equal size; 0: sizes as in `shape`
  bool independent = false;  // the ranks train independent models
  bool multi_label = false;  // images have any number of labels: --loss=bce
  models::ClassifierInfo info{};
  models::ClassifierOptions options{};  // classes and image size resolved
  int64_t eval_batch = 0;               // images per device
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
  int64_t global_batch() const { return shape.batch * shape.micro_steps * ranks.size; }
  int64_t global_eval_batch() const { return eval_batch * ranks.size; }
  // Whether gradients are all-reduced.
  bool all_reduces() const { return ranks.size > 1 || shape.gradients.even_alone; }
  bool trains() const { return mode == RunMode::training || mode == RunMode::training_and_evaluation; }
  bool evaluates() const { return mode == RunMode::evaluation || mode == RunMode::training_and_evaluation; }
};

// Throws Error for unsupported values and contradictory combinations of flags.
Settings make_settings(const Flags& flags, const cli::FlagSet& set, const Ranks& ranks = {});

// Options that determine the checkpoint to resume.
RunOptions resume_options(const Settings& settings);
// If a training resumes a checkpoint, adopts its global batch, all-reduce settings and thread count, with notices.
// Collective.
void adopt_checkpoint(Settings& settings, const cli::FlagSet& set, Group& group);

}  // namespace dtrain::cnn_benchmarks
