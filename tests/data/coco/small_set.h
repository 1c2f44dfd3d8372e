// A small "instances" file.
#pragma once

#include <nlohmann/json.hpp>

namespace dtrain::data::coco {

using Json = nlohmann::json;

// Two images with descending ids, three categories with id gaps, and an annotation of every kind.
inline const Json kSmallSet = Json::parse(R"({
  "info": {"year": 2014, "nested": [[{"id": 1}], {"annotations": [1, null]}]},
  "images": [{"id": 9, "file_name": "b/two.jpg", "width": 10, "height": 8, "license": 3, "flickr": ["x"]},
             {"id": 0, "file_name": "one.jpg", "width": 20, "height": 30}],
  "annotations": [
    {"segmentation": [[1, 1, 5, 1, 5, 5, 1, 5], [6, 6, 8, 6, 8.5, 8]], "area": 16.5, "iscrowd": 0, "image_id": 9,
     "bbox": [1, 1, 7.5, 7], "category_id": 7, "id": 100},
    {"id": 3, "image_id": 0, "category_id": 90, "bbox": [-5, 2, 100, 3]},
    {"id": 0, "image_id": 9, "category_id": 1, "bbox": [0, 0, 2, 2], "is_crowd": 1, "area": 4,
     "segmentation": {"size": [8, 10], "counts": [0, 2, 78]}},
    {"id": 5, "image_id": 9, "category_id": 7, "segmentation": {"counts": "05[2", "size": [8.0, 10]}, "iscrowd": true}
  ],
  "categories": [{"id": 90, "name": "kite", "supercategory": "sports"}, {"id": 7, "name": "cat"}, {"id": 1, "name": "dog"}]
})");

}  // namespace dtrain::data::coco
