#include "apps/serve/decoding.h"

#include <variant>

#include "apps/serve/http_server.h"
#include "apps/serve/json_forms.h"
#include "dtrain/core/error.h"
#include "dtrain/data/image.h"

namespace dtrain::serve {
namespace {

// Calls use(instance) for each; Errors name the instance.
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

// From its header: a PNG of 6 KB may have 150 MB of pixels.
int64_t pixels_of(std::span<const std::byte> encoded, int64_t max_pixels) {
  data::ImageDecoder header({.limits = {.max_pixels = max_pixels}});
  const data::ImageInfo info = header.open(encoded);
  return int64_t{info.width} * info.height;
}

int64_t pixels_of(const std::vector<Instance>& instances, int64_t max_pixels) {
  int64_t pixels = 0;
  for_each_instance(instances, [&](const Instance& instance) {
    const auto* encoded = std::get_if<std::vector<std::byte>>(&instance);
    if (encoded == nullptr) return;
    pixels += pixels_of(*encoded, max_pixels);
    if (pixels > kLargestImages * max_pixels)
      throw Error(Fault::data, concat("the images have more than ", kLargestImages * max_pixels,
                                      " pixels together: send them in several requests"));
  });
  return pixels;
}

// Memory for this number of pixels, and for the preprocessed images.
MemoryBudget::Reservation reserve(const Session& session, int64_t pixels, size_t images, MemoryBudget& budget) {
  return budget.reserve(size_t{3} * static_cast<size_t>(pixels) + images * session.input_bytes(), request_is_over);
}

Pixels decoded(const Session& session, std::span<const std::byte> encoded, const DecodeLimits& limits) {
  Pixels pixels = session.decode(encoded);
  if (limits.refuses_damaged && !pixels.damage.empty())
    throw Error(Fault::data, concat("damaged image: ", pixels.damage));
  return pixels;
}

}  // namespace

Pixels decoded_image(const Session& session, std::span<const std::byte> encoded, const DecodeLimits& limits,
                     MemoryBudget& budget) {
  MemoryBudget::Reservation reservation = reserve(session, pixels_of(encoded, limits.max_pixels), 1, budget);
  Pixels pixels = decoded(session, encoded, limits);
  pixels.reservation = reservation.split(pixels.bytes());
  return pixels;
}

std::vector<Pixels> decoded_instances(const Session& session, std::string_view body, const DecodeLimits& limits,
                                      MemoryBudget& budget) {
  const std::vector<Instance> instances = read_instances(body, limits.max_instances, request_is_over);
  MemoryBudget::Reservation reservation =
      reserve(session, pixels_of(instances, limits.max_pixels), instances.size(), budget);
  std::vector<Pixels> images;
  for_each_instance(instances, [&](const Instance& instance) {
    const auto* encoded = std::get_if<std::vector<std::byte>>(&instance);
    images.push_back(encoded ? decoded(session, *encoded, limits)
                             : session.from_levels(std::get<std::vector<float>>(instance)));
    images.back().reservation = reservation.split(images.back().bytes());
  });
  return images;
}

}  // namespace dtrain::serve
