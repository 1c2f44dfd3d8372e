#include "data/shapes.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "data/hue.h"
#include "dtrain/core/error.h"
#include "dtrain/core/rng.h"

namespace dtrain::data {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr float kEmptyShare = 0.05f, kCrowdShare = 0.08f;  // probabilities per scene
constexpr uint32_t kMostObjects = 6, kFewestOfCrowd = 8, kMostOfCrowd = 14;
constexpr int kTries = 12;  // attempts to place an object before it is dropped
constexpr float kSmallest = 0.1f, kLargest = 0.28f, kOfCrowd = 0.055f;  // radii relative to the shorter image side

enum Figure { kCircle, kRectangle, kTriangle, kStar, kRing };

// Pose of a shape whose vertices lie in the unit circle of its local coordinates.
struct Pose {
  int shape = 0;
  float x = 0, y = 0, radius = 0, angle = 0, proportion = 1;  // proportion: aspect ratio of a rectangle
};

// Vertices rounded to tenths of pixels, so that text represents them exactly. Every other vertex has radius `inner`.
std::vector<double> outline_of(const Pose& pose, int corners, double inner) {
  std::vector<double> polygon;
  for (int i = 0; i < corners; ++i) {
    const double angle = static_cast<double>(pose.angle) + 2 * kPi * i / corners;
    const double distance = static_cast<double>(pose.radius) * (i % 2 == 0 ? 1 : inner);
    polygon.push_back(std::round(10 * (static_cast<double>(pose.x) + distance * std::cos(angle))) / 10);
    polygon.push_back(std::round(10 * (static_cast<double>(pose.y) + distance * std::sin(angle))) / 10);
  }
  return polygon;
}

std::vector<double> rectangle_of(const Pose& pose) {
  const double half_angle = std::atan(static_cast<double>(pose.proportion));  // between the diagonals
  std::vector<double> polygon;
  for (const double angle : {half_angle, kPi - half_angle, kPi + half_angle, -half_angle}) {
    Pose corner = pose;
    corner.angle += static_cast<float>(angle);
    const std::vector<double> point = outline_of(corner, 1, 1);
    polygon.insert(polygon.end(), point.begin(), point.end());
  }
  return polygon;
}

std::vector<double> outer_outline(const Pose& pose) {
  constexpr int kRound = 48;
  switch (pose.shape) {
    case kRectangle:
      return rectangle_of(pose);
    case kTriangle:
      return outline_of(pose, 3, 1);
    case kStar:
      return outline_of(pose, 10, 0.45);
    default:
      return outline_of(pose, kRound, 1);
  }
}

// Rasterised by COCO's rules, row-major.
std::vector<uint8_t> pixels_of(const Pose& pose, int height, int width) {
  std::vector<uint8_t> pixels = coco::decode(coco::from_polygon(outer_outline(pose), height, width));
  if (pose.shape == kRing) {
    Pose hole = pose;
    hole.radius *= 0.55f;
    const std::vector<uint8_t> inside = coco::decode(coco::from_polygon(outer_outline(hole), height, width));
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] &= static_cast<uint8_t>(1 - inside[i]);
  }
  return pixels;
}

// Texture of superposed waves in [-1, 1].
struct Waves {
  float x, y, phase;

  explicit Waves(RandomStream& random) {
    const float direction = random.uniform(0, 6.2831853f), frequency = random.uniform(0.03f, 0.4f);
    phase = random.uniform(0, 6.2831853f);
    x = frequency * std::cos(direction);
    y = frequency * std::sin(direction);
  }
  float at(int column, int row) const {
    return std::sin(x * static_cast<float>(column) + y * static_cast<float>(row) + phase);
  }
};

// Scene under construction, back to front.
class Drawing {
 public:
  Drawing(const SceneOptions& options, uint64_t index)
      : options_(options),
        random_(options.seed, index),
        dark_ground_(random_.uniform() < 0.5f),
        hue_(random_.uniform()),
        owner_(static_cast<size_t>(options.width) * static_cast<size_t>(options.height)),
        colors_(owner_.size(), ground_color()) {}

  Scene draw() {
    if (random_.uniform() >= kEmptyShare) {
      if (random_.uniform() < kCrowdShare) add_crowd();
      for (uint32_t count = 1 + random_.below(kMostObjects); count > 0; --count) add_object();
    }
    Scene scene{render(), {}};
    for (size_t i = 0; i < objects_.size(); ++i) scene.objects.push_back(finished(i));
    return scene;
  }

 private:
  struct Object {
    Pose pose;
    bool is_crowd = false;
    size_t pixels = 0, visible = 0;
  };

  Levels ground_color() {
    const float hue = random_.uniform(), saturation = random_.uniform(0, 0.4f);
    return levels_of_hue(hue, saturation, dark_ground_ ? random_.uniform(0.1f, 0.3f) : random_.uniform(0.75f, 0.95f));
  }

  // Consecutive hues are a golden angle apart, so that shapes of an image are distinguishable.
  Levels next_color() {
    hue_ += 0.618034f;
    const float saturation = random_.uniform(0.6f, 1);
    return levels_of_hue(hue_, saturation, dark_ground_ ? random_.uniform(0.7f, 1) : random_.uniform(0.35f, 0.6f));
  }

  float shorter_side() const { return static_cast<float>(std::min(options_.width, options_.height)); }

  // Keeps the shape inside the image.
  Pose random_pose(int shape) {
    Pose pose{.shape = shape};
    pose.radius = shorter_side() * kSmallest * std::pow(kLargest / kSmallest, random_.uniform());
    const float margin = pose.radius + 1;
    pose.x = random_.uniform(margin, static_cast<float>(options_.width) - margin);
    pose.y = random_.uniform(margin, static_cast<float>(options_.height) - margin);
    pose.angle = random_.uniform(0, 6.2831853f);
    pose.proportion = random_.uniform(0.45f, 1);
    return pose;
  }

  // Returns false without changes if the pixels occlude another object too much or are empty.
  bool place(const std::vector<uint8_t>& pixels, const Object& object) {
    const auto count = static_cast<size_t>(std::count(pixels.begin(), pixels.end(), uint8_t{1}));
    if (count == 0) return false;
    std::vector<size_t> hidden(objects_.size() + 1);
    for (size_t i = 0; i < pixels.size(); ++i)
      if (pixels[i]) ++hidden[owner_[i]];
    for (size_t i = 0; i < objects_.size(); ++i)
      if (2 * (objects_[i].visible - hidden[i + 1]) < objects_[i].pixels) return false;
    for (size_t i = 0; i < objects_.size(); ++i) objects_[i].visible -= hidden[i + 1];
    objects_.push_back(object);
    const auto number = static_cast<uint16_t>(objects_.size());
    for (size_t i = 0; i < pixels.size(); ++i)
      if (pixels[i]) owner_[i] = number;
    objects_.back().pixels = objects_.back().visible = count;
    return true;
  }

  void paint(const std::vector<uint8_t>& pixels) {
    const Levels color = next_color();
    for (size_t i = 0; i < pixels.size(); ++i)
      if (pixels[i]) colors_[i] = color;
  }

  void add_object() {
    const auto shape = static_cast<int>(random_.below(static_cast<uint32_t>(kShapeNames.size())));
    for (int i = 0; i < kTries; ++i) {
      const Pose pose = random_pose(shape);
      const std::vector<uint8_t> pixels = pixels_of(pose, options_.height, options_.width);
      if (!place(pixels, {.pose = pose})) continue;
      return paint(pixels);
    }
  }

  // Members fill the area of a large shape. The crowd is behind all objects.
  void add_crowd() {
    Pose middle = random_pose(static_cast<int>(random_.below(static_cast<uint32_t>(kShapeNames.size()))));
    const float reach = shorter_side() * kLargest - shorter_side() * kOfCrowd, margin = shorter_side() * kLargest + 1;
    middle.x = std::clamp(middle.x, margin, static_cast<float>(options_.width) - margin);
    middle.y = std::clamp(middle.y, margin, static_cast<float>(options_.height) - margin);
    std::vector<uint8_t> all(owner_.size());
    for (uint32_t count = kFewestOfCrowd + random_.below(kMostOfCrowd - kFewestOfCrowd + 1); count > 0; --count) {
      Pose pose = random_pose(middle.shape);
      pose.radius = shorter_side() * kOfCrowd;
      const float distance = reach * std::sqrt(random_.uniform()), direction = random_.uniform(0, 6.2831853f);
      pose.x = middle.x + distance * std::cos(direction);
      pose.y = middle.y + distance * std::sin(direction);
      const std::vector<uint8_t> pixels = pixels_of(pose, options_.height, options_.width);
      for (size_t i = 0; i < all.size(); ++i) all[i] |= pixels[i];
      paint(pixels);
    }
    place(all, {.pose = middle, .is_crowd = true});
  }

  Image render() {
    Image image(options_.width, options_.height);
    const Waves texture(random_);
    const float strength = options_.noise * random_.uniform();
    for (int y = 0; y < options_.height; ++y)
      for (int x = 0; x < options_.width; ++x) {
        const size_t at = static_cast<size_t>(y) * static_cast<size_t>(options_.width) + static_cast<size_t>(x);
        const float wave = owner_[at] == 0 ? strength * texture.at(x, y) : 0;
        for (size_t c = 0; c < 3; ++c) {
          const float grain = options_.noise * (random_.uniform() + random_.uniform() - 1);
          image.pixels[3 * at + c] = static_cast<uint8_t>(std::clamp(colors_[at][c] + wave + grain, 0.0f, 255.0f));
        }
      }
    return image;
  }

  SceneObject finished(size_t index) const {
    const Object& object = objects_[index];
    std::vector<uint8_t> pixels(owner_.size());
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = owner_[i] == index + 1;
    SceneObject out{object.pose.shape, object.is_crowd, coco::encode(pixels, options_.height, options_.width), {}};
    if (!object.is_crowd && object.pose.shape != kRing && object.visible == object.pixels)
      out.outline = {outer_outline(object.pose)};
    return out;
  }

  SceneOptions options_;
  RandomStream random_;
  bool dark_ground_;
  float hue_;
  std::vector<uint16_t> owner_;  // per pixel: index of the object + 1, or 0 for background
  std::vector<Levels> colors_;
  std::vector<Object> objects_;
};

}  // namespace

Scene draw_scene(const SceneOptions& options, uint64_t index) {
  for (const int side : {options.width, options.height})
    DT_CHECK(side >= SceneOptions::kMinSide && side <= SceneOptions::kMaxSide, "synthetic scenes with sides of ", side,
             " pixels, expected ", SceneOptions::kMinSide, " to ", SceneOptions::kMaxSide);
  DT_CHECK(options.noise >= 0 && options.noise <= SceneOptions::kMaxNoise, "synthetic scenes with noise of ",
           options.noise, " levels, expected 0 to ", SceneOptions::kMaxNoise);
  return Drawing(options, index).draw();
}

}  // namespace dtrain::data
