// MLPerf's compliance log of the training of an image classifier, with the tags that tf_cnn_benchmarks prints.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <source_location>
#include <string>

#include "libdtrain/run/observer.h"

namespace dtrain::observers {

struct MlperfLogOptions {
  std::function<void(const std::string&)> line{};  // takes each line
  uint64_t seed = 0;
  double global_batch = 1;
  int64_t device_batch = 1;  // images that a batch norm's statistics are made of
  uint64_t training_images = 1, validation_images = 0;
  int64_t image_size = 224, classes = 0;
  bool preprocessed = true;     // as tf_cnn_benchmarks does it; else nothing is said of that
  std::array<float, 3> mean{};  // that is subtracted from the colours
  bool crops_by_boxes = false;  // random crops keep some of the objects in sight
  std::string optimizer{};      // by tf_cnn_benchmarks' name
  double momentum = 0, weight_decay = 0;
  std::optional<double> evaluation_offset{};  // epochs before the first evaluation, less one
  std::optional<double> target{};             // the accuracy at which training ends
  bool ends_with_evaluation = false;          // one follows the end of the training, unless one was good enough
};

// What is done on the way is printed as it happens. The lines about the layers of the network are left out. A run that
// is stopped on request has no end: it goes on later.
class MlperfLog final : public Observer {
 public:
  // Prints that the run starts.
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
  // The images that were trained on since the last call.
  void print_images(uint64_t step);
  void finish();
  double epochs(uint64_t step) const;

  const MlperfLogOptions options_;
  uint64_t counted_step_ = 0, last_step_ = 0;
  bool ended_ = false, reached_ = false;
};

}  // namespace dtrain::observers
