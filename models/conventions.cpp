#include "dtrain/models/conventions.h"

#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "dtrain/models/resnet.h"
#include "models/initializers.h"

namespace dtrain::models {

ResNetOptions by_conventions(ResNetOptions options, const ModelConventions& conventions) {
  options.stride_in_3x3 = conventions.stride_in_3x3.value_or(options.stride_in_3x3);
  options.zero_last_gamma = conventions.zero_last_gamma.value_or(options.zero_last_gamma);
  options.batch_norm.epsilon = conventions.batch_norm_epsilon.value_or(options.batch_norm.epsilon);
  options.batch_norm.momentum = conventions.batch_norm_decay.value_or(options.batch_norm.momentum);
  if (!conventions.padding) return options;
  const bool same = *conventions.padding == PaddingConvention::same;
  const bool same_pool = *conventions.padding != PaddingConvention::symmetric;
  options.padding = same ? StridedPadding::after : StridedPadding::both;
  options.stem_padding = StridedPadding::both;
  options.pool_padding = same_pool ? StridedPadding::after : StridedPadding::both;
  return options;
}

ModelConventions conventions_of(const ResNetOptions& options) {
  PaddingConvention padding = PaddingConvention::symmetric;
  if (options.pool_padding == StridedPadding::after) padding = PaddingConvention::same_pool;
  if (options.padding == StridedPadding::after) padding = PaddingConvention::same;
  return {.stride_in_3x3 = options.stride_in_3x3, .padding = padding, .batch_norm_epsilon = options.batch_norm.epsilon};
}

void initialize(ParameterStore& store, const std::vector<LayerWork>& layers, const ModelConventions& conventions) {
  if (layers.empty()) return;
  const std::string& last = layers.back().weight;
  const std::string bias = last.substr(0, last.rfind('.')) + ".bias";
  int64_t in = 0;  // inputs of the last linear layer
  for (Parameter& parameter : store.parameters()) {
    const bool filters = parameter.options().layout == Layout::krsc;
    const int64_t fan_in = parameter.shape.count() / parameter.shape[0];
    if (filters && conventions.convolutions == ConvolutionInit::variance_scaling)
      parameter.init = variance_scaling(fan_in);
    if (filters && conventions.convolutions == ConvolutionInit::he_fan_out)
      parameter.init = Init::normal(
          std::sqrt(2.0f / static_cast<float>(parameter.shape[0] * parameter.shape[1] * parameter.shape[2])));
    if (parameter.name == last) in = fan_in;
    if (!conventions.classifier || (parameter.name != last && parameter.name != bias)) continue;
    const float deviation = 1 / std::sqrt(static_cast<float>(in));
    if (*conventions.classifier == ClassifierInit::uniform) parameter.init = Init::uniform(deviation);
    if (parameter.name != last) continue;
    if (*conventions.classifier == ClassifierInit::normal) parameter.init = Init::normal(0.01f);
    if (*conventions.classifier == ClassifierInit::truncated_normal) parameter.init = Init::truncated_normal(deviation);
  }
}

std::string describe(const ModelConventions& conventions) {
  std::string text;
  if (conventions.stride_in_3x3) text += fmt::format(", stride in {}", *conventions.stride_in_3x3 ? "3x3" : "1x1");
  if (conventions.padding == PaddingConvention::symmetric) text += ", padding symmetric";
  if (conventions.padding == PaddingConvention::same_pool) text += ", padding same_pool";
  if (conventions.padding == PaddingConvention::same) text += ", padding same";
  if (conventions.batch_norm_epsilon) text += fmt::format(", batch norm epsilon {}", *conventions.batch_norm_epsilon);
  return text;
}

ModelConventions conventions_from(const std::string& text) {
  using Convention = std::pair<const char*, void (*)(ModelConventions&)>;
  static constexpr Convention kNamed[] = {
      {", stride in 3x3", [](ModelConventions& to) { to.stride_in_3x3 = true; }},
      {", stride in 1x1", [](ModelConventions& to) { to.stride_in_3x3 = false; }},
      {", padding symmetric", [](ModelConventions& to) { to.padding = PaddingConvention::symmetric; }},
      {", padding same_pool", [](ModelConventions& to) { to.padding = PaddingConvention::same_pool; }},
      {", padding same", [](ModelConventions& to) { to.padding = PaddingConvention::same; }}};
  constexpr std::string_view kEpsilon = ", batch norm epsilon ";
  ModelConventions conventions;
  std::string_view rest = text;
  for (const auto& [words, set] : kNamed) {
    if (!rest.starts_with(words)) continue;
    set(conventions);
    rest.remove_prefix(std::string_view(words).size());
  }
  float epsilon = 0;
  if (rest.starts_with(kEpsilon)) {
    rest.remove_prefix(kEpsilon.size());
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), epsilon);
    if (error == std::errc() && epsilon > 0) {
      conventions.batch_norm_epsilon = epsilon;
      rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    }
  }
  if (!rest.empty()) throw Error(Fault::checkpoint, concat("conventions of a model: found '", text, "'"));
  return conventions;
}

}  // namespace dtrain::models
