// Keys of decoding, resizing, padding and augmentation.
#include <algorithm>

#include "apps/cli/values.h"
#include "apps/mask_rcnn/config_keys.h"
#include "dtrain/core/error.h"

namespace dtrain::mask_rcnn {
namespace {

constexpr cli::Range<int64_t> kSide{1, 16384};
constexpr int64_t kMultiple = 32;

template <class Member>
ConfigKey colours_key(const std::string& name, Member member, cli::Range<double> range) {
  return {name,
          [=](Settings& s, const std::string& text) {
            const Literal literal = parse_literal(text);
            const auto& items = as_sequence(literal, 3, "three numbers, of red, green and blue");
            float values[3];
            for (size_t i = 0; i < 3; ++i) values[i] = static_cast<float>(as_number(items[i], range));
            std::copy(values, values + 3, member(s));
          },
          [=](const Settings& s) { return fmt::format("[{}, {}, {}]", member(s)[0], member(s)[1], member(s)[2]); }};
}

void set_short_edges(Settings& s, const std::string& text) {
  const Literal literal = parse_literal(text);
  if (literal.kind != Literal::Kind::sequence) {
    s.data.training_resize.min_short_edge = s.data.training_resize.max_short_edge = as_integer(literal, kSide);
    return;
  }
  const auto& items = as_sequence(literal, 2, "an integer or a pair of them");
  const int64_t least = as_integer(items[0], kSide), most = as_integer(items[1], kSide);
  DT_CHECK(least <= most, "expected the smaller one first, found ", literal.source);
  s.data.training_resize.min_short_edge = least;
  s.data.training_resize.max_short_edge = most;
}

std::string short_edges(const Settings& s) {
  return fmt::format("[{}, {}]", s.data.training_resize.min_short_edge, s.data.training_resize.max_short_edge);
}

void set_test_short_edge(Settings& s, const std::string& text) {
  const int64_t side = as_integer(parse_literal(text), kSide);
  s.data.evaluation_resize.min_short_edge = s.data.evaluation_resize.max_short_edge = side;
}

void set_max_size(Settings& s, const std::string& text) {
  s.longest_side = as_integer(parse_literal(text), kSide);
  s.fit_longest_side();
}

// torchvision's resize scale, in double precision since 0.16.
void set_scale_type(Settings& s, const std::string& text) {
  const std::string type = unquoted(text);
  DT_CHECK(type == "float64" || type == "float32",
           "expected float64, as torchvision from 0.16 on, or float32, as before");
  DT_CHECK(s.preset == "torchvision", "the preset ", s.preset,
           " rounds sizes as TensorPack does; expected the preset "
           "torchvision");
  s.data.training_resize.rounding = s.data.evaluation_resize.rounding =
      type == "float64" ? data::SizeRounding::down : data::SizeRounding::down_single;
}

std::optional<std::string> scale_type(const Settings& s) {
  if (s.preset != "torchvision") return {};
  return s.data.evaluation_resize.rounding == data::SizeRounding::down ? "float64" : "float32";
}

void set_round_pixels(Settings& s, const std::string& text) {
  s.data.training_resize.rounds_pixels = s.data.evaluation_resize.rounds_pixels = as_bool(parse_literal(text));
}

void set_orientation(Settings& s, const std::string& text) {
  const std::string rule = unquoted(text);
  DT_CHECK(rule == "apply" || rule == "ignore", "expected apply or ignore, found '", rule, "'");
  s.data.orientation = rule == "apply" ? data::Orientation::apply : data::Orientation::ignore;
}

std::string orientation(const Settings& s) {
  return s.data.orientation == data::Orientation::apply ? "apply" : "ignore";
}

void set_padding_shapes(Settings& s, const std::string& text) {
  const Literal literal = parse_literal(text);
  const std::string form = "pairs of a height and a width";
  std::vector<data::ImageSize> shapes;
  for (const Literal& item : as_sequence(literal, 0, form)) {
    const auto& pair = as_sequence(item, 2, form);
    shapes.push_back({as_integer(pair[0], kSide), as_integer(pair[1], kSide)});
  }
  DT_CHECK(!shapes.empty(), "expected at least one pair of a height and a width");
  s.data.padding_shapes = shapes;
}

std::string padding_shapes(const Settings& s) {
  std::string list;
  for (const data::ImageSize& shape : s.data.padding_shapes)
    list += fmt::format("{}({}, {})", list.empty() ? "" : ", ", shape.height, shape.width);
  return "[" + list + "]";
}

// Keys of normalisation.
std::vector<ConfigKey> normalisation_keys() {
  return of_model({
      colours_key("PREPROC.PIXEL_MEAN", [](auto& s) -> auto& { return s.data.mean; }, {-1e6, 1e6}),
      colours_key("PREPROC.PIXEL_STD", [](auto& s) -> auto& { return s.data.deviation; }, {1e-3, 1e6}),
  });
}

}  // namespace

std::vector<data::ImageSize> DataSettings::canvases() const {
  std::vector<data::ImageSize> canvases;
  if (!predefined_padding) return canvases;
  const auto rounded = [](int64_t side) { return (side + kMultiple - 1) / kMultiple * kMultiple; };
  for (const data::ImageSize& shape : padding_shapes) {
    const data::ImageSize canvas{rounded(shape.height), rounded(shape.width)}, turned{canvas.width, canvas.height};
    for (const data::ImageSize& one : {canvas, turned})
      if (std::find(canvases.begin(), canvases.end(), one) == canvases.end()) canvases.push_back(one);
  }
  return canvases;
}

std::vector<ConfigKey> image_keys() {
  std::vector<ConfigKey> keys = {
      {"PREPROC.TRAIN_SHORT_EDGE_SIZE", set_short_edges, short_edges},
      {"PREPROC.TEST_SHORT_EDGE_SIZE", set_test_short_edge,
       [](const Settings& s) { return fmt::format("{}", s.data.evaluation_resize.max_short_edge); }},
      {"PREPROC.MAX_SIZE", set_max_size,
       [](const Settings& s) { return fmt::format("{}", s.data.training_resize.max_size); }},
      // Extension.
      {"PREPROC.RESIZE_SCALE_DTYPE", set_scale_type, scale_type},
      {"PREPROC.ROUND_PIXELS", set_round_pixels,
       [](const Settings& s) { return s.data.evaluation_resize.rounds_pixels ? "True" : "False"; }},
      {"PREPROC.EXIF_ORIENTATION", set_orientation, orientation},
      flag_key(
          "PREPROC.PREDEFINED_PADDING", [](auto& s) -> auto& { return s.data.predefined_padding; }),
      {"PREPROC.PADDING_SHAPES", set_padding_shapes, padding_shapes},
      // Extension.
      number_key(
          "PREPROC.FLIP_PROBABILITY", [](auto& s) -> auto& { return s.data.flip_probability; }, cli::kShare),
      number_key(
          "PREPROC.BRIGHTNESS", [](auto& s) -> auto& { return s.data.jitter.brightness; }, cli::kShare),
      number_key(
          "PREPROC.CONTRAST", [](auto& s) -> auto& { return s.data.jitter.contrast; }, cli::kShare),
      number_key(
          "PREPROC.SATURATION", [](auto& s) -> auto& { return s.data.jitter.saturation; }, cli::kShare),
      number_key("PREPROC.HUE", [](auto& s) -> auto& { return s.data.jitter.hue; }, {0, 0.5}),
  };
  const std::vector<ConfigKey> normalisation = normalisation_keys();
  keys.insert(keys.end(), normalisation.begin(), normalisation.end());
  return keys;
}

}  // namespace dtrain::mask_rcnn
