// MLPerf compliance log of classifier training, with tf_cnn_benchmarks' tags.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <source_location>
#include <string>

#include "dtrain/run/observer.h"

namespace dtrain::observers {

struct MlperfLogOptions {
  std::function<void(const std::string&)> line{};  // output of each line
  uint64_t seed = 0;
  double global_batch = 1;
  int64_t device_batch = 1;  // images per batch-norm statistic
  uint64_t training_images = 1, validation_images = 0;
  int64_t image_size = 224, classes = 0;
  bool preprocessed = true;     // preprocessing is tf_cnn_benchmarks'; else its tags are omitted
  std::array<float, 3> mean{};  // channel means that are subtracted
  bool crops_by_boxes = false;  // random crops by bounding boxes
  std::string optimizer{};      // tf_cnn_benchmarks' name
  double momentum = 0, weight_decay = 0;
  std::optional<double> evaluation_offset{};  // epoch of the first evaluation minus one
  std::optional<double> target{};             // target accuracy
  bool ends_with_evaluation = false;  // an evaluation follows the training, unless an earlier one reached the target
};

// Prints events as they happen. Omits the lines about layers. A run stopped on request logs no end, because it will be
// resumed.
class MlperfLog final : public Observer {
 public:
  // Prints the start of the run.
  explicit MlperfLog(MlperfLogOptions options);

  void begun(const Begun& event) override;
  void stepped(const Stepped& event) override;
  void evaluating(const Evaluating& event) override;
  void evaluated(const Evaluated& event) override;
  void ended(const Ended& event) override;

 private:
  using Json = nlohmann::ordered_json;
  void print(const char* tag, const Json& value, std::source_location where = std::source_location::current());
  void print(const char* tag, std::source_location where = std::source_location::current());
  void print_input();
  void print_training_pixels();
  void print_evaluation_pixels();
  Json image_shape() const;
  Json mean() const;
  void print_model();
  // Number of images trained since the last call.
  void print_images(uint64_t step);
  void finish();
  double epochs(uint64_t step) const;

  const MlperfLogOptions options_;
  uint64_t counted_step_ = 0, last_step_ = 0;
  bool ended_ = false, reached_ = false;
};

}  // namespace dtrain::observers
