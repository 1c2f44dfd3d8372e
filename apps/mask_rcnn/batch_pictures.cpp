#include "apps/mask_rcnn/batch_pictures.h"

#include <algorithm>
#include <cmath>

#include "apps/cli/pictures.h"
#include "apps/mask_rcnn/draw_objects.h"

namespace dtrain::mask_rcnn {
namespace {

using Fields = data::DetectionFields;

template <class T>
std::vector<T> downloaded(Context& context, const Tensor& field) {
  std::vector<T> values(static_cast<size_t>(field.shape().count()));
  context.download(field, values.data(), "pictures");
  return values;
}

data::Image cropped(const data::Image& canvas, int height, int width) {
  data::Image image(std::clamp(width, 1, canvas.width), std::clamp(height, 1, canvas.height));
  const data::ImageView from = canvas.view();
  const auto bytes = static_cast<size_t>(3 * image.width);
  for (int y = 0; y < image.height; ++y)
    std::copy_n(from.row(y), bytes, image.pixels.data() + static_cast<size_t>(y) * bytes);
  return image;
}

}  // namespace

std::vector<data::Image> batch_pictures(Context& context, const DeviceBatch& batch,
                                        const std::vector<data::coco::Category>& categories) {
  const auto sizes = downloaded<float>(context, batch.sizes());
  const auto counts = downloaded<int32_t>(context, batch.fields[Fields::count]);
  const auto boxes = downloaded<float>(context, batch.fields[Fields::boxes]);
  const auto classes = downloaded<int32_t>(context, batch.fields[Fields::classes]);
  const size_t room = classes.size() / counts.size();
  std::vector<data::Image> pictures = cli::first_images(context, batch.images());
  for (size_t row = 0; row < pictures.size(); ++row) {
    std::vector<DrawnObject> objects;
    for (size_t k = 0; k < std::min(static_cast<size_t>(counts[row]), room); ++k) {
      const float* box = &boxes[4 * (row * room + k)];
      const int32_t object_class = classes[row * room + k];
      DrawnObject& object = objects.emplace_back();
      object.box = {box[0], box[1], box[2] - box[0], box[3] - box[1]};
      object.object_class = object_class;
      if (object_class > 0 && static_cast<size_t>(object_class) <= categories.size())
        object.label = categories[static_cast<size_t>(object_class) - 1].name;
    }
    Canvas canvas(cropped(pictures[row], static_cast<int>(std::lround(sizes[2 * row])),
                          static_cast<int>(std::lround(sizes[2 * row + 1])))
                      .view());
    draw_objects(canvas, objects);
    pictures[row] = canvas.image();
  }
  return pictures;
}

}  // namespace dtrain::mask_rcnn
