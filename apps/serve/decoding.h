// Images of requests to pixels, within the limits of a request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "apps/serve/room.h"
#include "apps/serve/session.h"

namespace dtrain::serve {

// Of images of the most pixels: so many pixels may one request have, and so many are in the memory at once of all.
inline constexpr int64_t kLargestImages = 4;

struct DecodeLimits {
  size_t max_instances = 0;
  int64_t max_pixels = 0;        // of an image
  bool refuses_damaged = false;  // images; else their pixels have a note
};

// As Session::decode, once there is room for the pixels by its header, which they hold. Throws Error(Fault::data) for a
// damaged image that is refused, and Error(Fault::resource) where request_is_over() before there is room.
Pixels decoded_image(const Session& session, std::span<const std::byte> encoded, const DecodeLimits& limits,
                     Room& room);

// Those of the `instances` of a body, see read_instances(), once there is room for all: images are counted by their
// headers before one is decoded.
// Throws Error(Fault::data), which tells the instance, and Error(Fault::resource) once request_is_over().
std::vector<Pixels> decoded_instances(const Session& session, std::string_view body, const DecodeLimits& limits,
                                      Room& room);

}  // namespace dtrain::serve
