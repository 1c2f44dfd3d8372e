// An SSD300 with weights, for images of any size, one at a time.
#pragma once

#include <memory>

#include "apps/cli/machine.h"
#include "apps/detection/image_detector.h"
#include "apps/ssd/model.h"
#include "dtrain/autograd/prepared_weights.h"

namespace dtrain::ssd {

class Predictor final : public detection::ImageDetector {
 public:
  // Loads a safetensors file written by this program. Classes are COCO's 80 categories, named as in `known`, or by
  // number if missing there. Throws Error(Fault::checkpoint) if the weights do not fit, and Error(Fault::data), with
  // the file name `source`, if a known category is not one of the 80.
  Predictor(const std::string& weights, const cli::Machine& machine, const std::vector<data::coco::Category>& known,
            const std::string& source);

  const std::vector<data::coco::Category>& categories() const override { return categories_; }
  std::vector<data::coco::Detection> objects_in(const data::Image& image) override;

 private:
  std::vector<data::coco::Category> categories_;
  std::unique_ptr<Context> context_;
  ParameterStore store_;
  Model model_;
  PreparedWeights prepared_{store_};
};

}  // namespace dtrain::ssd
