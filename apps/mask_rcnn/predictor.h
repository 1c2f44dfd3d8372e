// A detector with its weights, for one image at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/detection/image_detector.h"
#include "apps/detection/placed_image.h"
#include "apps/mask_rcnn/model.h"
#include "dtrain/autograd/prepared_weights.h"

namespace dtrain::mask_rcnn {

// Placement in evaluation: resized as configured, on a canvas with sides rounded up to multiples of 32.
detection::Placement evaluation_placement(const data::ImageSize& image, const DataSettings& settings);

class Predictor final : public detection::ImageDetector {
 public:
  // Loads settings.weights, which determine the number of classes. Classes from 1 on are the `known` categories
  // (indexed by category id in torchvision's models), or named by number if unknown. Throws Error(Fault::checkpoint) if
  // the weights do not fit the detector, and Error(Fault::data), with the file name `source`, if the categories do not.
  Predictor(Settings settings, const cli::Machine& machine, std::vector<data::coco::Category> known,
            const std::string& source);

  const std::vector<data::coco::Category>& categories() const override { return categories_; }
  std::vector<data::coco::Detection> objects_in(const data::Image& image) override;
  data::Orientation orientation() const override { return settings_.data.orientation; }
  const Settings& settings() const { return settings_; }
  Context& context() const { return *model_.context; }

  // The three stages of objects_in().
  detection::PlacedImage place(data::Image image) const;
  // `watch` as in Tape::on_part().
  models::Detections detect(const detection::PlacedImage& image, std::function<void(const char*)> watch = {});
  std::vector<data::coco::Detection> in_file(const models::Detections& found, const detection::ImagePlace& place) const;

 private:
  Settings settings_;
  std::vector<data::coco::Category> categories_;
  Model model_;
  PreparedWeights prepared_{model_.store};
};

}  // namespace dtrain::mask_rcnn
