// Small data set in COCO's layout.
#pragma once

#include "dtrain/data/jpeg.h"
#include "dtrain/data/png.h"
#include "tests/data/noise.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::data {

// Images 3 to 9 with objects of the classes cat (5) and dog (9): landscape, portrait and square, PNGs and a JPEG. Image
// 6 has only a crowd, image 7 nothing, image 8 an object that is too small for training and another one.
class CocoFolder {
 public:
  CocoFolder() {
    std::filesystem::create_directories(root_ / "annotations");
    for (const char* split : {"train", "val"}) {
      std::filesystem::create_directories(root_ / (split + std::string("2017")));
      for (int64_t id = 3; id <= 9; ++id) write_image(split, id);
      write_file(root_ / ("annotations/instances_" + std::string(split) + "2017.json"), json());
    }
  }

  static constexpr int kWidths[] = {40, 30, 32, 40, 20, 44, 50}, kHeights[] = {30, 40, 32, 20, 40, 31, 21};
  static Image image(int64_t id) { return noise(kWidths[id - 3], kHeights[id - 3], static_cast<uint64_t>(id)); }
  static std::string name(int64_t id) { return concat("im", id, id == 5 ? ".jpg" : ".png"); }

  std::string root() const { return root_.path().string(); }
  std::string folder(const std::string& split = "train") const { return (root_ / (split + "2017")).string(); }
  std::string annotations(const std::string& split = "train") const {
    return (root_ / ("annotations/instances_" + split + "2017.json")).string();
  }

  static std::string json() {
    std::string images, objects;
    for (int64_t id = 3; id <= 9; ++id)
      images += concat(id > 3 ? "," : "", R"({"id":)", id, R"(,"file_name":")", name(id), R"(","width":)",
                       kWidths[id - 3], R"(,"height":)", kHeights[id - 3], "}");
    int number = 0;
    const auto add = [&](int64_t image, int category, const char* box, const char* area, const std::string& rest) {
      objects += concat(number++ ? "," : "", R"({"id":)", number, R"(,"image_id":)", image, R"(,"category_id":)",
                        category, R"(,"bbox":)", box, R"(,"area":)", area, ",", rest, "}");
    };
    const std::string polygon = R"("iscrowd":0,"segmentation":[[2,3,12,3.5,11,20,3,18.5],[15,4,18,4,18,9]])";
    add(3, 5, "[2,3,16,17]", "160", polygon);
    add(3, 9, "[20,5,30,10]", "80", R"("iscrowd":0,"segmentation":[[20,5,45,5,50,15,20,15]])");
    add(4, 9, "[2,3,16,17]", "160", polygon);
    add(5, 5, "[2,3,16,17]", "160", polygon);
    add(5, 5, "[0,0,32,32]", "1024", R"("iscrowd":1,"segmentation":{"size":[32,32],"counts":[0,1024]})");
    add(6, 5, "[0,0,40,20]", "800", R"("iscrowd":1,"segmentation":{"size":[20,40],"counts":[100,200,500]})");
    add(8, 9, "[5,5,1,1]", "1", R"("iscrowd":0,"segmentation":[[5,5,6,5,6,6]])");
    add(8, 5, "[4,2,3,29]", "87", R"("iscrowd":0,"segmentation":{"size":[31,44],"counts":[126,29,2,29,2,29,1147]})");
    add(9, 5, "[2,3,16,17]", "160", polygon);
    return concat(R"({"images":[)", images, R"(],"annotations":[)", objects,
                  R"(],"categories":[{"id":9,"name":"dog"},{"id":5,"name":"cat"}]})");
  }

 private:
  void write_image(const std::string& split, int64_t id) const {
    const Image pixels = image(id);
    const std::vector<std::byte> file = id == 5 ? encode_jpeg(pixels.view(), {}) : encode_png(pixels.view());
    write_file(root_ / (split + "2017/" + name(id)),
               std::string(reinterpret_cast<const char*>(file.data()), file.size()));
  }

  TempDirectory root_;
};

}  // namespace dtrain::data
