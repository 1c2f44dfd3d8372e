// An SSD300 with its weights, which is shown images of any size, one at a time.
#pragma once

#include <memory>

#include "apps/cli/machine.h"
#include "apps/detection/image_detector.h"
#include "apps/ssd/model.h"
#include "libdtrain/autograd/prepared_weights.h"

namespace dtrain::ssd {

class Predictor final : public detection::ImageDetector {
 public:
  // With the weights of a file of safetensors that this program wrote. The classes stand for COCO's 80 categories,
  // which have the names of the `known` ones, or numbers where those leave them out. Throws Error(Fault::checkpoint)
  // where the weights do not fit, and Error(Fault::data), which names the file `source`, where a known category is none
  // of the 80.
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
