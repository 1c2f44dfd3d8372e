#include "libdtrain/cuda/conv_problem.h"

#include <charconv>

#include "dtrain/core/error.h"

namespace dtrain::cuda {

std::string name_of(const ConvProblem& o) {
  static constexpr const char* kNames[kConvKinds] = {
      "forward", "forward_bias",       "forward_statistics", "dgrad",           "dgrad_add",
      "wgrad",   "normalized_forward", "normalized_wgrad",   "normalized_dgrad"};
  const auto dtype = static_cast<DType>(o.dtype), output = static_cast<DType>(o.output_dtype);
  std::string name =
      concat(kNames[static_cast<size_t>(o.kind)], ":", dtype, ":n", o.n, ":h", o.h, "x", o.w, ":c", o.c, ":k", o.k,
             ":r", o.r, "x", o.s, ":s", o.stride_h, "x", o.stride_w, ":d", o.dilation_h, "x", o.dilation_w, ":p",
             o.pad_top, ",", o.pad_bottom, ",", o.pad_left, ",", o.pad_right, ":g", o.groups);
  if (output != dtype) name += concat(":to_", output);
  if (o.alignment != 16) name += concat(":align", o.alignment);
  if (o.tf32) name += ":tf32";
  if (o.deterministic) name += ":deterministic";
  return name;
}

TensorLayout channels_last(int64_t n, int64_t c, int64_t h, int64_t w) {
  return {{n, c, h, w}, {h * w * c, 1, w * c, c}};
}
TensorLayout image_layout(const ConvProblem& o) { return channels_last(o.n, o.c, o.h, o.w); }
TensorLayout filter_layout(const ConvProblem& o) { return channels_last(o.k, o.c / o.groups, o.r, o.s); }
TensorLayout output_layout(const ConvProblem& o) { return channels_last(o.n, o.k, o.p, o.q); }

std::string to_text(const EngineChoice& choice) {
  std::string text = std::to_string(choice.engine);
  for (const auto& [type, value] : choice.knobs) text += concat(";", type, "=", value);
  return text;
}

EngineChoice parse_choice(const std::string& text) {
  const char *at = text.data(), *const end = at + text.size();
  auto number = [&] {
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(at, end, value);
    if (error != std::errc())
      throw Error(Fault::resource, concat("expected a number in the engine choice \"", text, "\""));
    at = stop;
    return value;
  };
  auto skip = [&](char expected) {
    if (at == end || *at != expected)
      throw Error(Fault::resource, concat("'", expected, "' expected in the engine choice \"", text, "\""));
    ++at;
  };
  EngineChoice choice{number(), {}};
  while (at != end) {
    skip(';');
    const int64_t type = number();
    skip('=');
    choice.knobs.emplace_back(type, number());
  }
  return choice;
}

}  // namespace dtrain::cuda
