// The JSON that clients send and get.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "apps/serve/session.h"

namespace dtrain::serve {

// One entry of `instances`: the bytes of an encoded image, or levels [height, width, 3] from 0 to 255.
using Instance = std::variant<std::vector<std::byte>, std::vector<float>>;

// Reads {"instances": [...]} of TF Serving's predict API: {"b64": TEXT}, {"NAME": {"b64": TEXT}} or an array. Throws
// Error(Fault::data) for anything else and for more than `max_instances`.
std::vector<Instance> read_instances(std::string_view body, size_t max_instances);

// RFC 4648's base64, padded. Throws Error(Fault::data) at the first character that is none.
std::vector<std::byte> from_base64(std::string_view text);

// {"predictions": [[{"class": C, "probability": P}, ...], ...], "version": V}
std::string predictions_json(const std::vector<Probabilities>& results, size_t top, uint64_t version);
// [{"class": C, "probability": P}, ...]
std::string ranking_json(const Probabilities& result, size_t top);
// TF Serving's model_version_status; `session` is null where there is none yet.
std::string status_json(const Session* session);
// {"error": TEXT}
std::string error_json(std::string_view message);

}  // namespace dtrain::serve
