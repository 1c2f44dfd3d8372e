#include "apps/mask_rcnn/batch_pictures.h"

#include <algorithm>
#include <cmath>
#include <optional>

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

// Ground truth of a batch, on the host.
struct Objects {
  std::vector<float> sizes, boxes;
  std::vector<int32_t> counts, classes, run_begins, run_ends;
  size_t room, run_room;  // of an image

  Objects(Context& context, const detection::DeviceBatch& batch)
      : sizes(downloaded<float>(context, batch.sizes())),
        boxes(downloaded<float>(context, batch.fields[Fields::boxes])),
        counts(downloaded<int32_t>(context, batch.fields[Fields::count])),
        classes(downloaded<int32_t>(context, batch.fields[Fields::classes])),
        run_begins(downloaded<int32_t>(context, batch.fields[Fields::run_begins])),
        run_ends(downloaded<int32_t>(context, batch.fields[Fields::run_ends])),
        room(classes.size() / counts.size()),
        run_room(run_ends.size() / counts.size()) {}

  int height(size_t row) const { return static_cast<int>(std::lround(sizes[2 * row])); }
  int width(size_t row) const { return static_cast<int>(std::lround(sizes[2 * row + 1])); }

  // Empty if the objects have no masks.
  std::optional<data::coco::Rle> mask(size_t row, size_t object) const {
    const int32_t* begins = &run_begins[row * (room + 1) + object];
    data::coco::Rle mask{height(row), width(row)};
    int32_t end = 0;
    for (auto i = static_cast<size_t>(begins[0]); i < std::min(static_cast<size_t>(begins[1]), run_room); ++i) {
      const int32_t next = run_ends[row * run_room + i];
      mask.counts.push_back(static_cast<uint32_t>(next - end));
      end = next;
    }
    if (end != mask.height * mask.width) return std::nullopt;
    return mask;
  }
};

}  // namespace

std::vector<data::Image> batch_pictures(Context& context, const detection::DeviceBatch& batch,
                                        const std::vector<data::coco::Category>& categories) {
  const Objects all(context, batch);
  std::vector<data::Image> pictures = cli::first_images(context, batch.images());
  for (size_t row = 0; row < pictures.size(); ++row) {
    std::vector<DrawnObject> objects;
    for (size_t k = 0; k < std::min(static_cast<size_t>(all.counts[row]), all.room); ++k) {
      const float* box = &all.boxes[4 * (row * all.room + k)];
      const int32_t object_class = all.classes[row * all.room + k];
      DrawnObject& object = objects.emplace_back();
      object.box = {box[0], box[1], box[2] - box[0], box[3] - box[1]};
      object.mask = all.mask(row, k);
      object.object_class = object_class;
      if (object_class > 0 && static_cast<size_t>(object_class) <= categories.size())
        object.label = categories[static_cast<size_t>(object_class) - 1].name;
    }
    Canvas canvas(cropped(pictures[row], all.height(row), all.width(row)).view());
    draw_objects(canvas, objects);
    pictures[row] = canvas.image();
  }
  return pictures;
}

}  // namespace dtrain::mask_rcnn
