// Images of requests to pixels, within the limits of a request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "apps/serve/session.h"

namespace dtrain::serve {

struct DecodeLimits {
  size_t max_instances = 0;
  int64_t max_pixels = 0;        // of an image; those of one request may have four times as many together
  bool refuses_damaged = false;  // images; else their pixels have a note
};

// As Session::decode. Throws Error(Fault::data) for a damaged image that is refused.
Pixels decoded_image(const Session& session, std::span<const std::byte> encoded, const DecodeLimits& limits);

// Those of the `instances` of a body, see read_instances(). Images are counted by their headers before one is decoded.
// Throws Error(Fault::data), which tells the instance, and Error(Fault::resource) once request_is_over().
std::vector<Pixels> decoded_instances(const Session& session, std::string_view body, const DecodeLimits& limits);

}  // namespace dtrain::serve
