// Summary: what TensorBoard shows of one step.
//   Summary { 1: repeated Value }
//   Value   { 1: string tag  9: SummaryMetadata  oneof 2: float simple_value  4: Image  5: HistogramProto  8: Tensor }
//   Image   { 1: int32 height  2: int32 width  3: int32 colorspace  4: bytes encoded_image_string }
//   Tensor  { 1: enum dtype  2: TensorShape { 2: repeated Dim { 1: int64 size } }  8: repeated bytes string_val }
//   SummaryMetadata { 1: PluginData { 1: string plugin_name  2: bytes content } }
// (TensorFlow, core/framework/summary.proto and tensor.proto)
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "libdtrain/io/histogram.h"

namespace dtrain {

// A setting of a run, by which TensorBoard compares runs.
using HyperParameter = std::variant<bool, double, std::string>;
using HyperParameters = std::map<std::string, HyperParameter>;

// Values, each under a tag.
class Summary {
 public:
  // Kept as a float; NaN and infinities are legal.
  void scalar(std::string_view tag, double value);
  void histogram(std::string_view tag, const Histogram& histogram);
  // A PNG file of 8-bit RGB.
  void image(std::string_view tag, int width, int height, std::string_view png);
  // A text in Markdown.
  void text(std::string_view tag, std::string_view markdown);
  // For the HParams plugin, which takes a folder for a session: that it has begun with these parameters, and that it
  // has succeeded, in seconds since 1970. Of several of either it takes the first.
  void session_start(const HyperParameters& parameters, double seconds);
  void session_success(double seconds);

  bool empty() const { return bytes_.empty(); }
  const std::string& bytes() const { return bytes_; }  // of the message

 private:
  void session(std::string_view tag, uint32_t kind, std::string_view information);

  std::string bytes_;
};

}  // namespace dtrain
