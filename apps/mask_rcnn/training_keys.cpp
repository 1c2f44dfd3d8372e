// Keys of learning rate, batch size, periods and end of training.
#include <cmath>

#include "apps/mask_rcnn/config_keys.h"
#include "dtrain/core/error.h"

namespace dtrain::mask_rcnn {
namespace {

constexpr cli::Range<double> kTime{0, 1e9};

// AWS Mask R-CNN's key is an eighth of the initial warm-up rate.
double warmup_unit(const Settings& s) { return s.preset == "aws" ? 8 : 1; }

void set_warmup_rate(Settings& s, const std::string& text) {
  s.rate.warmup_rate = as_number(parse_literal(text), cli::kNotNegative) * warmup_unit(s);
}

void set_step_schedule(Settings& s, const std::vector<double>& steps) {
  s.rate.in_epochs = s.rate.of_preset = false;
  s.rate.drops.clear();
  for (size_t i = 0; i + 1 < steps.size(); ++i)
    s.rate.drops.push_back({steps[i], 1 / std::pow(10.0, static_cast<double>(i + 1))});
  s.rate.end = steps.back();
}

// Detectron's "1x" to "9x", or a list of steps.
void set_lr_schedule(Settings& s, const std::string& text) {
  const std::string name = unquoted(text);
  if (name.size() == 2 && name[0] >= '1' && name[0] <= '9' && name[1] == 'x') {
    const double k = name[0] - '0', thousands = 1000 * 180 * k;
    return set_step_schedule(s, k == 1 ? std::vector<double>{120e3, 160e3, 180e3}
                                       : std::vector<double>{thousands - 120e3, thousands - 40e3, thousands});
  }
  const Literal literal = parse_literal(name);
  std::vector<double> steps;
  for (const Literal& item : as_sequence(literal, 0, "1x to 9x or a list of steps"))
    steps.push_back(static_cast<double>(as_integer(item, cli::kPositiveCount)));
  DT_CHECK(!steps.empty(), "expected at least one number of steps: the last is the end of training");
  set_step_schedule(s, steps);
}

std::optional<std::string> lr_schedule(const Settings& s) {
  if (s.rate.in_epochs) return {};
  std::string list;
  for (const RateDrop& drop : s.rate.drops) list += fmt::format("{}, ", drop.after);
  return fmt::format("[{}{}]", list, s.rate.end);
}

void set_lr_epoch_schedule(Settings& s, const std::string& text) {
  const Literal literal = parse_literal(text);
  const std::string form = "pairs (epoch, factor) of which the last is (epoch, None)";
  std::vector<RateDrop> drops;
  std::optional<double> end;
  for (const Literal& item : as_sequence(literal, 0, form)) {
    const auto& pair = as_sequence(item, 2, form);
    DT_CHECK(!end, "expected ", form, ", found more after ", *end);
    const double epoch = as_number(pair[0], kTime);
    if (pair[1].kind == Literal::Kind::none)
      end = epoch;
    else
      drops.push_back({epoch, as_number(pair[1], cli::kNotNegative)});
  }
  DT_CHECK(end, "expected ", form, ", found no None");
  s.rate.in_epochs = true;
  s.rate.of_preset = false;
  s.rate.drops = drops;
  s.rate.end = *end;
}

std::optional<std::string> lr_epoch_schedule(const Settings& s) {
  if (!s.rate.in_epochs) return {};
  std::string list;
  for (const RateDrop& drop : s.rate.drops) list += fmt::format("({}, {}), ", drop.after, drop.factor);
  return fmt::format("[{}({}, None)]", list, s.rate.end);
}

void set_steps_per_epoch(Settings& s, const std::string& text) {
  s.steps_per_epoch = as_integer(parse_literal(text), cli::kPositiveCount);
  s.images_per_epoch = 0;
  s.epoch_of_coco = false;
}

void set_images_per_epoch(Settings& s, const std::string& text) {
  s.images_per_epoch = as_integer(parse_literal(text), cli::kPositiveCount);
  s.epoch_of_coco = false;
}

void set_warmup(Settings& s, const std::string& text) {
  s.rate.warmup_steps = as_integer(parse_literal(text), cli::kCount);
  s.rate.fits_warmup = false;
}

std::optional<std::string> steps_per_epoch(const Settings& s) {
  if (s.images_per_epoch > 0) return {};
  return fmt::format("{}", s.steps_per_epoch);
}

std::optional<std::string> images_per_epoch(const Settings& s) {
  if (s.images_per_epoch == 0) return {};
  return fmt::format("{}", s.images_per_epoch);
}

void set_seed(Settings& s, const std::string& text) { s.seed = as_integer(parse_literal(text), {0, INT32_MAX}); }

std::optional<std::string> seed(const Settings& s) {
  if (!s.seed) return {};
  return fmt::format("{}", *s.seed);
}

std::vector<ConfigKey> rate_keys() {
  const ConfigKey warmup{"TRAIN.WARMUP", set_warmup,
                         [](const Settings& s) { return fmt::format("{}", s.rate.warmup_steps); }};
  return {
      number_key(
          "TRAIN.BASE_LR", [](auto& s) -> auto& { return s.rate.base_rate; }, cli::kNotNegative),
      warmup,
      alias_key("TRAIN.WARMUP_STEPS", warmup),
      {"TRAIN.WARMUP_INIT_LR", set_warmup_rate,
       [](const Settings& s) { return fmt::format("{}", s.rate.warmup_rate / warmup_unit(s)); }},
      {"TRAIN.LR_SCHEDULE", set_lr_schedule, lr_schedule},
      {"TRAIN.LR_EPOCH_SCHEDULE", set_lr_epoch_schedule, lr_epoch_schedule},
      number_key(
          "TRAIN.WEIGHT_DECAY", [](auto& s) -> auto& { return s.rate.weight_decay; }, cli::kNotNegative),
      number_key(
          "TRAIN.GRADIENT_CLIP", [](auto& s) -> auto& { return s.rate.clip_norm; }, cli::kNotNegative),
      // Of this program alone.
      integer_key("TRAIN.LR_REFERENCE_BATCH", [](auto& s) -> auto& { return s.rate.reference_batch; },
                  {1, cli::kMostSamplesOfStep}),
      number_key(
          "TRAIN.MOMENTUM", [](auto& s) -> auto& { return s.rate.momentum; }, cli::kBelowOne),
      flag_key(
          "TRAIN.DECAY_BIASES", [](auto& s) -> auto& { return s.rate.decays_biases; }),
  };
}

}  // namespace

std::vector<ConfigKey> training_keys() {
  std::vector<ConfigKey> keys = {
      {"TRAIN.STEPS_PER_EPOCH", set_steps_per_epoch, steps_per_epoch},
      // AWS Mask R-CNN's flag --images_per_epoch.
      {"TRAIN.IMAGES_PER_EPOCH", set_images_per_epoch, images_per_epoch},
      {"TRAIN.STARTING_EPOCH",
       [](Settings& s, const std::string& text) {
         s.starting_epoch = as_integer(parse_literal(text), cli::kPositiveCount);
       }},
      integer_key(
          "TRAIN.EVAL_PERIOD", [](auto& s) -> auto& { return s.evaluate_epochs; }, cli::kCount),
      integer_key(
          "TRAIN.CHECKPOINT_PERIOD", [](auto& s) -> auto& { return s.checkpoint_epochs; }, cli::kCount),
      integer_key("TRAIN.BATCH_SIZE_PER_GPU", [](auto& s) -> auto& { return s.batch; }, {1, 4096}),
      integer_key("TEST.BATCH_SIZE_PER_GPU", [](auto& s) -> auto& { return s.evaluation_batch; }, {1, 4096}),
      {"TRAIN.SEED", set_seed, seed},
      number_key(
          "TEST.BOX_TARGET", [](auto& s) -> auto& { return s.box_target; }, cli::kShare),
      number_key(
          "TEST.MASK_TARGET", [](auto& s) -> auto& { return s.mask_target; }, cli::kShare),
  };
  const std::vector<ConfigKey> rates = rate_keys();
  keys.insert(keys.end(), rates.begin(), rates.end());
  return keys;
}

}  // namespace dtrain::mask_rcnn
