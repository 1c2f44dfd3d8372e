// A step's summary for TensorBoard: scalars, histograms, images, texts and hyper-parameters, each under a tag.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "dtrain/io/histogram.h"

namespace dtrain {

// The generated classes of event.proto.
namespace tensorboard {
class Summary;
class Summary_Value;
}  // namespace tensorboard

// A setting of a run. TensorBoard compares runs by their settings.
using HyperParameter = std::variant<bool, double, std::string>;
using HyperParameters = std::map<std::string, HyperParameter>;

class Summary {
 public:
  Summary();
  ~Summary();
  Summary(Summary&&) noexcept;
  Summary& operator=(Summary&&) noexcept;

  // Kept as a float; NaN and infinities are legal.
  void scalar(std::string_view tag, double value);
  void histogram(std::string_view tag, const Histogram& histogram);
  // A PNG file of 8-bit RGB.
  void image(std::string_view tag, int width, int height, std::string_view png);
  // A text in Markdown.
  void text(std::string_view tag, std::string_view markdown);
  // The HParams plugin takes a folder for a session: its hyper-parameters and start, and its success, in seconds since
  // 1970. Of several starts or ends it takes the first.
  void session_start(const HyperParameters& parameters, double seconds);
  void session_success(double seconds);

  bool empty() const;
  const tensorboard::Summary& message() const { return *message_; }
  std::string bytes() const;  // of the message

 private:
  tensorboard::Summary_Value& add(std::string_view tag);

  std::unique_ptr<tensorboard::Summary> message_;
};

}  // namespace dtrain
