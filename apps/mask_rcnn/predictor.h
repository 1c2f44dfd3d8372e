// A detector with its weights, which is shown one image at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/mask_rcnn/model.h"
#include "apps/mask_rcnn/placed_image.h"

namespace dtrain::mask_rcnn {

class Predictor {
 public:
  // With settings.weights, which say how many classes there are. The classes from 1 on stand for the `known`
  // categories, which a model of torchvision's numbers by their ids; where none is known they have numbers for names.
  // Throws Error(Fault::checkpoint) where the weights do not fit the detector, and Error(Fault::data), which names the
  // file `source`, where the categories do not.
  Predictor(Settings settings, const cli::Machine& machine, std::vector<data::coco::Category> known,
            const std::string& source);

  const std::vector<data::coco::Category>& categories() const { return categories_; }
  const Settings& settings() const { return settings_; }
  Context& context() const { return *model_.context; }

  PlacedImage place(data::Image image) const { return place_image(context(), std::move(image), settings_.data); }
  // `watch` as Tape::on_part() has it.
  models::Detections detect(const PlacedImage& image, std::function<void(const char*)> watch = {});
  std::vector<data::coco::Detection> in_file(const models::Detections& found, const detection::ImagePlace& place) const;

 private:
  Settings settings_;
  std::vector<data::coco::Category> categories_;
  Model model_;
};

}  // namespace dtrain::mask_rcnn
