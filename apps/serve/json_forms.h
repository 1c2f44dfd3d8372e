// The JSON that clients send and get.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "apps/serve/labelled_images.h"
#include "apps/serve/session.h"

namespace dtrain::serve {

// One entry of `instances`: the bytes of an encoded image, or levels [height, width, 3] from 0 to 255.
using Instance = std::variant<std::vector<std::byte>, std::vector<float>>;

// Reads {"instances": [...]} of TF Serving's predict API: {"b64": TEXT}, {"NAME": {"b64": TEXT}} or an array. Throws
// Error(Fault::data) for anything else and for more than `max_instances`, and Error(Fault::resource) once stop(), which
// is called every few KiB, is true.
std::vector<Instance> read_instances(std::string_view body, size_t max_instances, bool (*stop)());

// RFC 4648's base64, padded. Throws Error(Fault::data) at the first character that is none.
std::vector<std::byte> from_base64(std::string_view text);

// What of a prediction is answered.
struct AnswerForm {
  size_t top = 5;              // most classes
  double score_threshold = 0;  // least score of an object
};
// [{"class": C, "probability": P}, ...] of a classifier, {"width", "height", "detections": [...]} of a detector, where
// a detection has bbox, score, category_id, category and segmentation. Of a damaged image each class, or the object of
// a detector, has a "warning", too.
std::string prediction_json(const Prediction& result, const Session& session, const AnswerForm& form);
// {"predictions": [such a form, ...], "version": V}
std::string predictions_json(const std::vector<Prediction>& results, const Session& session, const AnswerForm& form);
// {"name", "ready", "detects", "version", "precision", "categories": [{"id", "name"}, ...]}; `session` is null where
// there is none.
nlohmann::ordered_json model_json(const std::string& name, const Session* session);
// {"images": [{"name", "label" and "label_name", or "objects": [{"bbox", "category_id"}, ...]}, ...]}; "label" is an
// output of the model of `session`; none where that is null.
std::string images_json(const std::vector<LabelledImage>& images, const Session* session);
// TF Serving's model_version_status; `session` is null where there is none yet.
std::string status_json(const Session* session);
// {"error": TEXT}
std::string error_json(std::string_view message);

}  // namespace dtrain::serve
