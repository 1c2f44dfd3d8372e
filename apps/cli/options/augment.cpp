// Names and defaults follow torchvision's references/classification and timm where they have the flag.
#include "apps/cli/options/augment.h"

#include <algorithm>

#include <fmt/format.h>

#include "apps/cli/values.h"
#include "dtrain/core/error.h"

namespace dtrain::cli {
namespace {

// In the order of the enumerators.
const std::vector<std::string> kPolicies{"none", "ra", "ta_wide", "imagenet", "cifar10", "svhn"};
const std::vector<std::string> kErased{"mean", "black", "random"};

template <class Enumerator>
Enumerator choice_of(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<Enumerator>(std::ranges::find(names, name) - names.begin());
}

std::vector<float> numbers_of(const char* flag, const std::vector<std::string>& texts, size_t count,
                              Range<double> range) {
  DT_CHECK(texts.size() == count, "--", flag, "=", fmt::format("{}", fmt::join(texts, ",")), ": expected ", count,
           " numbers");
  std::vector<float> numbers;
  try {
    for (const std::string& text : texts) numbers.push_back(static_cast<float>(parse_number<double>(text, range)));
  } catch (const Error& error) {
    throw Error(fmt::format("--{}: {}", flag, error.what()));
  }
  return numbers;
}

ResizeStage stage_of(const std::string& text) {
  const size_t colon = text.find(':');
  DT_CHECK(colon != std::string::npos, "--progressive_resizing: expected SIZE:EPOCH, found '", text, "'");
  try {
    return {parse_number<int64_t>(text.substr(0, colon), {1, kImageSize.high}),
            parse_number<double>(text.substr(colon + 1), kNotNegative)};
  } catch (const Error& error) {
    throw Error(fmt::format("--progressive_resizing: {}", error.what()));
  }
}

// Text recorded in checkpoints: empty at the default, as in checkpoints that predate the flag.
std::string unless(bool left_out, std::string text) { return left_out ? std::string() : text; }

void declare_sample_flags(AugmentFlags& f, FlagSet& flags) {
  flags
      .add_choice("auto_augment", f.auto_augment, kPolicies,
                  "RandAugment, TrivialAugmentWide, or a policy of AutoAugment, as in torchvision")
      .setting("auto augment", [&f] {
        return unless(f.auto_augment == "none",
                      f.auto_augment == "ra" ? fmt::format("ra {} x {}", f.ra_ops, f.ra_magnitude) : f.auto_augment);
      });
  flags.add("ra_ops", f.ra_ops, "with auto_augment=ra: operations per image", {1, 100});
  flags.add("ra_magnitude", f.ra_magnitude, "with auto_augment=ra: magnitude of the operations",
            {0, data::kMagnitudeBins - 1});
  flags
      .add("color_jitter", f.color_jitter,
           "B,C,S,H: brightness, contrast and saturation factors are drawn from 1 +- B, C, S, and the hue shift from "
           "+- H turns, as torchvision's ColorJitter")
      .setting("color jitter", [&f] { return fmt::format("{}", fmt::join(f.color_jitter, ",")); });
  flags.add("random_erase", f.random_erase, "probability of random erasing", kShare).setting("random erasing", [&f] {
    return unless(f.random_erase == 0,
                  fmt::format("{}, area {}, aspect {}, {}", f.random_erase, fmt::join(f.random_erase_area, "-"),
                              fmt::join(f.random_erase_aspect, "-"), f.random_erase_value));
  });
  flags.add("random_erase_area", f.random_erase_area, "LOW,HIGH: area of the erased window as a fraction of the image");
  flags.add("random_erase_aspect", f.random_erase_aspect,
            "LOW,HIGH: aspect ratio of the erased window, height / width");
  flags.add_choice("random_erase_value", f.random_erase_value, kErased,
                   "fill of the erased window: mean colour, black, or standard normal noise (after normalisation)");
}

void declare_mixing_flags(AugmentFlags& f, FlagSet& flags) {
  flags
      .add("mixup_alpha", f.mixup_alpha, "mixup: the mixing weight is drawn from Beta(alpha, alpha); 0: off",
           kNotNegative)
      .setting("mixing", [&f] {
        return unless(!f.mixing().any(), fmt::format("mixup {}, cutmix {}, probability {}, cutmix's share {}",
                                                     f.mixup_alpha, f.cutmix_alpha, f.mix_probability, f.cutmix_share));
      });
  flags.add("cutmix_alpha", f.cutmix_alpha, "CutMix: the area ratio is drawn from Beta(alpha, alpha); 0: off",
            kNotNegative);
  flags.add("mix_probability", f.mix_probability, "probability that a batch is mixed", kShare);
  flags.add("cutmix_share", f.cutmix_share, "with both alphas: probability of CutMix instead of mixup", kShare);
}

}  // namespace

void AugmentFlags::declare(FlagSet& flags) {
  flags.group("Augmentation");
  declare_sample_flags(*this, flags);
  declare_mixing_flags(*this, flags);
  flags
      .add("repeated_augmentation", repeated_augmentation,
           "times that each sample is repeated in a row, each time with a new augmentation; an epoch keeps its number "
           "of images",
           {1, 1000})
      .identity("repeated augmentation",
                [this] { return unless(repeated_augmentation == 1, fmt::format("{}", repeated_augmentation)); });
  flags
      .add("progressive_resizing", progressive_resizing,
           "SIZE0:0,SIZE1:EPOCH1,...: training images have SIZEi pixels a side from epoch EPOCHi on; evaluations use "
           "the last size")
      .setting("progressive resizing", [this] { return fmt::format("{}", fmt::join(progressive_resizing, ",")); });
}

void AugmentFlags::check(const FlagSet& flags) const {
  data::check(sample().erasing);
  const std::vector<ResizeStage> all = stages();
  bool ordered = all.empty() || all.front().epoch == 0;
  for (size_t i = 1; i < all.size(); ++i) ordered &= all[i - 1].epoch < all[i].epoch;
  refuse({
      {!ordered, "--progressive_resizing: expected epochs that begin with 0 and rise"},
      {auto_augment != "ra" && (flags.given("ra_ops") || flags.given("ra_magnitude")),
       "--ra_ops and --ra_magnitude need --auto_augment=ra"},
  });
}

data::SampleAugmentation AugmentFlags::sample() const {
  data::SampleAugmentation sample;
  sample.policy = {choice_of<data::AugmentPolicy>(kPolicies, auto_augment), static_cast<int>(ra_ops),
                   static_cast<int>(ra_magnitude)};
  if (!color_jitter.empty()) {
    const std::vector<float> by = numbers_of("color_jitter", color_jitter, 4, kNotNegative);
    DT_CHECK(by[3] <= 0.5f, "--color_jitter: a hue of ", by[3], ", expected at most 0.5");
    sample.jitter = {by[0], by[1], by[2], by[3]};
  }
  const std::vector<float> area = numbers_of("random_erase_area", random_erase_area, 2, {1e-6, 1});
  const std::vector<float> aspect = numbers_of("random_erase_aspect", random_erase_aspect, 2, {1e-3, 1e3});
  sample.erasing = {static_cast<float>(random_erase), area[0], area[1], aspect[0], aspect[1]};
  return sample;
}

data::MixingOptions AugmentFlags::mixing() const { return {mixup_alpha, cutmix_alpha, mix_probability, cutmix_share}; }

Erased AugmentFlags::erased_value() const { return choice_of<Erased>(kErased, random_erase_value); }

std::vector<ResizeStage> AugmentFlags::stages() const {
  std::vector<ResizeStage> all;
  for (const std::string& text : progressive_resizing) all.push_back(stage_of(text));
  return all;
}

}  // namespace dtrain::cli
