#include "apps/cli/conventions.h"

#include <array>
#include <utility>

#include "dtrain/core/error.h"

namespace dtrain::cli {
namespace {

// For ResNets only: these change the residual blocks.
constexpr std::array kOfResNets = {"bottleneck_stride", "resnet_padding", "batch_norm_epsilon", "batch_norm_decay",
                                   "zero_gamma"};

// The enumerator of `name`; none for auto.
template <class Value>
std::optional<Value> named(const std::string& name, std::initializer_list<std::pair<const char*, Value>> values) {
  for (const auto& [known, value] : values)
    if (name == known) return value;
  return std::nullopt;
}

std::optional<float> narrow(std::optional<double> value) {
  return value ? std::optional(static_cast<float>(*value)) : std::nullopt;
}

}  // namespace

void ConventionFlags::declare(FlagSet& flags) {
  flags.group("Conventions of models");
  flags.add_choice(
      "bottleneck_stride", bottleneck_stride, {"auto", "1x1", "3x3"},
      "convolution of a ResNet bottleneck that has the stride: 1x1 in v1, 3x3 in v1.5; auto: by the model's name");
  flags.add_choice(
      "resnet_padding", resnet_padding, {"auto", "symmetric", "same_pool", "same"},
      "padding of ResNets' strided layers: symmetric, as in torchvision; same_pool: TensorFlow's SAME in the stem's "
      "max pool, as in tf_cnn_benchmarks; same: SAME in the blocks too, as in AWS's script; auto: symmetric");
  flags.add("batch_norm_epsilon", batch_norm_epsilon, "epsilon of ResNets' batch norm; 1e-5 by default", kNotNegative);
  flags.add("batch_norm_decay", batch_norm_decay,
            "decay of the running statistics of ResNets' batch norm; 0.9 by default", kShare);
  flags.add("zero_gamma", zero_gamma, "initialise gamma of the last batch norm of each ResNet block to 0");
  flags.add_choice("conv_initializer", conv_initializer, {"auto", "he_fan_out", "variance_scaling"},
                   "initialiser of convolutions: normal with variance 2 / fan_out, as in torchvision, or truncated "
                   "normal with variance 1 / fan_in, as in TensorFlow; auto: the model's own");
  flags.add_choice("classifier_initializer", classifier_initializer, {"auto", "truncated_normal", "normal", "uniform"},
                   "initialiser of the last layer: truncated normal with standard deviation sqrt(1 / inputs), as in "
                   "tf_cnn_benchmarks; normal with 0.01, as in AWS's script and MLPerf's reference; uniform within "
                   "sqrt(1 / inputs), biases too, as in torchvision; auto: the model's own");
}

void ConventionFlags::check(const FlagSet& flags, const models::ClassifierInfo& info) const {
  for (const char* flag : kOfResNets)
    DT_CHECK(info.residual || !flags.given(flag), "--", flag, ": for ResNets only; ", info.name, " is none");
}

models::ModelConventions ConventionFlags::conventions() const {
  using models::ClassifierInit, models::ConvolutionInit, models::PaddingConvention;
  models::ModelConventions conventions;
  conventions.stride_in_3x3 = named<bool>(bottleneck_stride, {{"1x1", false}, {"3x3", true}});
  conventions.padding = named<PaddingConvention>(resnet_padding, {{"symmetric", PaddingConvention::symmetric},
                                                                  {"same_pool", PaddingConvention::same_pool},
                                                                  {"same", PaddingConvention::same}});
  conventions.batch_norm_epsilon = narrow(batch_norm_epsilon);
  conventions.batch_norm_decay = narrow(batch_norm_decay);
  if (zero_gamma) conventions.zero_last_gamma = true;
  conventions.convolutions = named<ConvolutionInit>(
      conv_initializer,
      {{"he_fan_out", ConvolutionInit::he_fan_out}, {"variance_scaling", ConvolutionInit::variance_scaling}});
  conventions.classifier =
      named<ClassifierInit>(classifier_initializer, {{"truncated_normal", ClassifierInit::truncated_normal},
                                                     {"normal", ClassifierInit::normal},
                                                     {"uniform", ClassifierInit::uniform}});
  return conventions;
}

}  // namespace dtrain::cli
