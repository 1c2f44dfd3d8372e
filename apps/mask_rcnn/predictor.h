// A detector with its weights, which is shown one image at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/detection/image_detector.h"
#include "apps/detection/placed_image.h"
#include "apps/mask_rcnn/model.h"
#include "libdtrain/autograd/prepared_weights.h"

namespace dtrain::mask_rcnn {

class Predictor final : public detection::ImageDetector {
 public:
  // With settings.weights, which say how many classes there are. The classes from 1 on stand for the `known`
  // categories, which a model of torchvision's numbers by their ids; where none is known they have numbers for names.
  // Throws Error(Fault::checkpoint) where the weights do not fit the detector, and Error(Fault::data), which names the
  // file `source`, where the categories do not.
  Predictor(Settings settings, const cli::Machine& machine, std::vector<data::coco::Category> known,
            const std::string& source);

  const std::vector<data::coco::Category>& categories() const override { return categories_; }
  std::vector<data::coco::Detection> objects_in(const data::Image& image) override;
  data::Orientation orientation() const override { return settings_.data.orientation; }
  const Settings& settings() const { return settings_; }
  Context& context() const { return *model_.context; }

  // The three parts of objects_in().
  detection::PlacedImage place(data::Image image) const;
  // `watch` as Tape::on_part() has it.
  models::Detections detect(const detection::PlacedImage& image, std::function<void(const char*)> watch = {});
  std::vector<data::coco::Detection> in_file(const models::Detections& found, const detection::ImagePlace& place) const;

 private:
  Settings settings_;
  std::vector<data::coco::Category> categories_;
  Model model_;
  PreparedWeights prepared_{model_.store};
};

}  // namespace dtrain::mask_rcnn
