#include "apps/serve/decoding.h"

#include <variant>

#include "apps/serve/http_server.h"
#include "apps/serve/json_forms.h"
#include "data/image.h"
#include "libdtrain/core/error.h"

namespace dtrain::serve {
namespace {

constexpr int64_t kLargestImages = 4;  // of the most pixels, whose pixels one request may have

// Calls use(instance) for each; its Error tells which it is about.
template <class Use>
void for_each_instance(const std::vector<Instance>& instances, const Use& use) {
  for (size_t i = 0; i < instances.size(); ++i) {
    if (request_is_over()) throw Error(Fault::resource, "the images of the request were not decoded in time");
    try {
      use(instances[i]);
    } catch (const Error& error) {
      throw Error(error.fault(), concat("instances[", i, "]: ", error.what()));
    }
  }
}

// A PNG of 6 KB may have 150 MB of pixels.
void check_pixels(const std::vector<Instance>& instances, int64_t max_pixels) {
  data::ImageDecoder header({.limits = {.max_pixels = max_pixels}});
  int64_t pixels = 0;
  for_each_instance(instances, [&](const Instance& instance) {
    const auto* encoded = std::get_if<std::vector<std::byte>>(&instance);
    if (encoded == nullptr) return;
    const data::ImageInfo info = header.open(*encoded);
    pixels += int64_t{info.width} * info.height;
    if (pixels > kLargestImages * max_pixels)
      throw Error(Fault::data, concat("the images have more than ", kLargestImages * max_pixels,
                                      " pixels together: send them in several requests"));
  });
}

}  // namespace

Pixels decoded_image(const Session& session, std::span<const std::byte> encoded, const DecodeLimits& limits) {
  Pixels pixels = session.decode(encoded);
  if (limits.refuses_damaged && !pixels.damage.empty())
    throw Error(Fault::data, concat("damaged image: ", pixels.damage));
  return pixels;
}

std::vector<Pixels> decoded_instances(const Session& session, std::string_view body, const DecodeLimits& limits) {
  const std::vector<Instance> instances = read_instances(body, limits.max_instances, request_is_over);
  check_pixels(instances, limits.max_pixels);
  std::vector<Pixels> images;
  for_each_instance(instances, [&](const Instance& instance) {
    const auto* encoded = std::get_if<std::vector<std::byte>>(&instance);
    images.push_back(encoded ? decoded_image(session, *encoded, limits)
                             : session.from_levels(std::get<std::vector<float>>(instance)));
  });
  return images;
}

}  // namespace dtrain::serve
