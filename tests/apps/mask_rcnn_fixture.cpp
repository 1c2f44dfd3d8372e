#include "tests/apps/mask_rcnn_fixture.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/mask_rcnn/canvas.h"
#include "tests/files.h"

namespace dtrain {

void MaskRcnn::SetUp() {
  namespace fs = std::filesystem;
  for (const char* folder : {"annotations", "train", "val"}) fs::create_directories(scratch_ / "data" / folder);
  Json truth = {{"images", Json::array()}, {"annotations", Json::array()}};
  truth["categories"] = {{{"id", 2}, {"name", "red"}}, {{"id", 7}, {"name", "blue"}}};
  for (int i = 0; i < kImages; ++i) {
    const mask_rcnn::Rectangle area{4 + 5 * i, 30 - 4 * i, 24, 20 + 2 * i};
    mask_rcnn::Canvas canvas(i % 2 == 0 ? kSide : kSide / 2 * 3, kSide, {120, 120, 120});
    canvas.fill(area, i % 2 == 0 ? mask_rcnn::Color{250, 20, 20} : mask_rcnn::Color{20, 20, 250});
    const std::string name = std::to_string(i) + ".png";
    for (const char* split : {"train/", "val/"})
      mask_rcnn::write_png(path("data/" + (split + name)), canvas.image().view());
    const double x = area.x, y = area.y, right = area.right(), bottom = area.bottom();
    truth["images"].push_back({{"id", i}, {"file_name", name}, {"width", canvas.width()}, {"height", kSide}});
    truth["annotations"].push_back({{"id", 10 + i},
                                    {"image_id", i},
                                    {"category_id", i % 2 == 0 ? 2 : 7},
                                    {"bbox", {x, y, right - x, bottom - y}},
                                    {"area", (right - x) * (bottom - y)},
                                    {"iscrowd", 0},
                                    {"segmentation", {{x, y, right, y, right, bottom, x, bottom}}}});
  }
  for (const char* split : {"train", "val"})
    write_file(path(std::string("data/annotations/instances_") + split + ".json"), truth.dump());
}

}  // namespace dtrain
