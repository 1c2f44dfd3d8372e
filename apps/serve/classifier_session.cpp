#include "apps/serve/classifier_session.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "dtrain/core/error.h"
#include "dtrain/data/image.h"

namespace dtrain::serve {

ClassifierSession::ClassifierSession(const cli::ClassifierFlags& flags, const cli::FlagSet& set,
                                     const cli::Machine& machine, int64_t max_pixels, uint64_t version)
    : Session(version, flags.precision),
      loaded_(flags, set, machine),
      make_(loaded_.pixels().make(/*training=*/false)),
      max_pixels_(max_pixels) {}

std::unique_ptr<data::Preprocessor> ClassifierSession::borrow() const {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return make_();
  std::unique_ptr<data::Preprocessor> one = std::move(idle_.back());
  idle_.pop_back();
  return one;
}

size_t ClassifierSession::input_bytes() const {
  return static_cast<size_t>(make_.shape.count()) * size_of(make_.dtype);
}

Pixels ClassifierSession::decode(std::span<const std::byte> encoded) const {
  data::ImageDecoder header({.limits = {.max_pixels = max_pixels_}});
  header.open(encoded);
  std::unique_ptr<data::Preprocessor> preprocessor = borrow();
  Pixels pixels;
  pixels.values.resize(input_bytes());
  pixels.damage = preprocessor->run(encoded, {}, {}, pixels.values.data()).damage;
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(preprocessor));
  return pixels;
}

Pixels ClassifierSession::from_levels(std::span<const float> levels) const {
  if (static_cast<int64_t>(levels.size()) != make_.shape.count())
    throw Error(Fault::data, concat("expected an array of ", make_.shape[0], " x ", make_.shape[1],
                                    " x 3 levels, found ", levels.size(), " numbers"));
  Pixels pixels;
  pixels.values.resize(input_bytes());
  for (size_t i = 0; i < levels.size(); ++i) {
    if (!(levels[i] >= 0 && levels[i] <= 255)) throw Error(Fault::data, "a level is not from 0 to 255");
    if (make_.dtype == DType::u8)
      pixels.values[i] = static_cast<std::byte>(std::lround(levels[i]));
    else
      std::memcpy(pixels.values.data() + i * sizeof(float), &levels[i], sizeof(float));
  }
  return pixels;
}

std::vector<Prediction> ClassifierSession::predict(std::span<const Pixels* const> images) const {
  Context& context = loaded_.context();
  const Shape shape{static_cast<int64_t>(images.size()), make_.shape[0], make_.shape[1], make_.shape[2]};
  std::vector<std::byte> all;
  for (const Pixels* image : images) all.insert(all.end(), image->values.begin(), image->values.end());
  const Tensor input = context.empty(shape, make_.dtype);
  context.upload(all.data(), input);
  Tape tape(context, loaded_.prepared());
  const Tensor normalized = normalize_pixels(context, input, loaded_.normalization());
  const std::vector<float> values =
      loaded_.probabilities(loaded_.model().forward(tape, tape.constant(normalized)).value);
  if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); }))
    throw Error(Fault::numeric, "the model's output for an image is not finite");
  std::vector<Prediction> results;
  const size_t classes = values.size() / images.size();
  for (size_t i = 0; i < images.size(); ++i)
    results.push_back({.probabilities = {values.data() + i * classes, values.data() + (i + 1) * classes}});
  return results;
}

}  // namespace dtrain::serve
