// JSON requests and responses.
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

// An element of `instances`: an encoded image, or pixel levels [height, width, 3] from 0 to 255.
using Instance = std::variant<std::vector<std::byte>, std::vector<float>>;

// Parses {"instances": [...]} of TF Serving's predict API: {"b64": TEXT}, {"NAME": {"b64": TEXT}} or an array. Throws
// Error(Fault::data) for anything else and for more than `max_instances`, and Error(Fault::resource) if stop(), called
// every few KiB, returns true.
std::vector<Instance> read_instances(std::string_view body, size_t max_instances, bool (*stop)());

// Decodes padded base64 (RFC 4648). Throws Error(Fault::data) with the position of the first invalid character.
std::vector<std::byte> from_base64(std::string_view text);

// Response options of predictions.
struct AnswerForm {
  size_t top = 5;              // most classes
  double score_threshold = 0;  // minimum score of a detection
};
// [{"class": C, "probability": P}, ...] for a classifier, {"width", "height", "detections": [...]} for a detector; a
// detection has bbox, score, category_id, category and segmentation. For a damaged image, each class, or the detector's
// object, has a "warning".
std::string prediction_json(const Prediction& result, const Session& session, const AnswerForm& form);
// {"predictions": [prediction, ...], "version": V}
std::string predictions_json(const std::vector<Prediction>& results, const Session& session, const AnswerForm& form);
// {"name", "ready", "detects", "version", "precision", "categories": [{"id", "name"}, ...]}; `session` may be null.
nlohmann::ordered_json model_json(const std::string& name, const Session* session);
// {"images": [{"name", "label" and "label_name", or "objects": [{"bbox", "category_id"}, ...]}, ...]}; "label" is an
// output of `session`'s model; omitted if `session` is null.
std::string images_json(const std::vector<LabelledImage>& images, const Session* session);
// TF Serving's model_version_status; `session` may be null.
std::string status_json(const Session* session);
// {"error": TEXT}
std::string error_json(std::string_view message);

}  // namespace dtrain::serve
