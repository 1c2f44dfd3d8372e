// Decodes images of requests, within the limits of a request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "apps/serve/memory_budget.h"
#include "apps/serve/session.h"

namespace dtrain::serve {

// In images of maximum size: limit on pixels per request, and on pixels of all requests in memory.
inline constexpr int64_t kLargestImages = 4;

struct DecodeLimits {
  size_t max_instances = 0;
  int64_t max_pixels = 0;        // per image
  bool refuses_damaged = false;  // damaged images; else their pixels have a note
};

// Reserves memory for the pixels (by the header), then decodes like Session::decode. Throws Error(Fault::data) for a
// refused damaged image, and Error(Fault::resource) if request_is_over() before memory is available.
Pixels decoded_image(const Session& session, std::span<const std::byte> encoded, const DecodeLimits& limits,
                     MemoryBudget& budget);

// Decodes the `instances` of a body, see read_instances(), after reserving memory for all, from their headers. Throws
// Error(Fault::data) with the instance, and Error(Fault::resource) once request_is_over().
std::vector<Pixels> decoded_instances(const Session& session, std::string_view body, const DecodeLimits& limits,
                                      MemoryBudget& budget);

}  // namespace dtrain::serve
