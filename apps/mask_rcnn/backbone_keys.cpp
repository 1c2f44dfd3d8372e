// Keys of the backbone and of the feature pyramid.
#include "apps/cli/values.h"
#include "apps/mask_rcnn/config_keys.h"
#include "dtrain/core/error.h"

namespace dtrain::mask_rcnn {
namespace {

constexpr cli::Range<int64_t> kBlocks{1, 1000};

void set_blocks(Settings& s, const std::string& text) {
  const Literal literal = parse_literal(text);
  std::vector<int> blocks;
  for (const Literal& item : as_sequence(literal, 4, "the blocks of four stages, such as [3, 4, 6, 3]"))
    blocks.push_back(static_cast<int>(as_integer(item, kBlocks)));
  s.detector.backbone.blocks = blocks;
}

void set_padding_mode(Settings& s, const std::string& text) {
  s.detector.backbone.padding =
      as_bool(parse_literal(text)) ? models::StridedPadding::after : models::StridedPadding::before;
}

struct NormForm {
  const char* name;
  models::ConvNorm norm;
  bool frozen, synchronised;
};
// BN, with per-device statistics, is an extension.
constexpr NormForm kNorms[] = {{"FreezeBN", models::ConvNorm::batch, true, false},
                               {"BN", models::ConvNorm::batch, false, false},
                               {"SyncBN", models::ConvNorm::batch, false, true},
                               {"GN", models::ConvNorm::group, false, false},
                               {"None", models::ConvNorm::none, false, false}};

void set_norm(Settings& s, const std::string& text) {
  std::string names;
  for (const NormForm& form : kNorms) {
    names += (names.empty() ? "" : ", ") + std::string(form.name);
    if (unquoted(text) != form.name) continue;
    models::ResNetOptions& backbone = s.detector.backbone;
    backbone.norm = form.norm;
    backbone.batch_norm.frozen = form.frozen;
    // TensorPack's initialisation; with frozen statistics, the scales come from a file.
    backbone.zero_last_gamma = !form.frozen && s.preset != "torchvision";
    s.synchronised_norms = form.synchronised;
    return;
  }
  throw Error(fmt::format("expected one of {}", names));
}

std::optional<std::string> norm_of(const Settings& s) {
  const models::ResNetOptions& backbone = s.detector.backbone;
  for (const NormForm& form : kNorms)
    if (form.norm == backbone.norm && form.frozen == backbone.batch_norm.frozen &&
        form.synchronised == s.synchronised_norms)
      return form.name;
  return {};
}

void set_pyramid(Settings& s, const std::string& text) {
  s.detector.pyramid = as_bool(parse_literal(text));
  s.fit_longest_side();
}

void set_pyramid_norm(Settings& s, const std::string& text) {
  const std::string norm = unquoted(text);
  DT_CHECK(norm == "None" || norm == "GN", "expected None or GN");
  s.detector.pyramid_norm = norm == "GN";
}

std::optional<std::string> padding_mode(const Settings& s) {
  if (s.detector.backbone.padding == models::StridedPadding::both) return {};
  return s.detector.backbone.padding == models::StridedPadding::after ? "True" : "False";
}

}  // namespace

std::vector<ConfigKey> backbone_keys() {
  std::vector<ConfigKey> keys = of_model({
      {"MODE_FPN", set_pyramid, [](const Settings& s) { return s.detector.pyramid ? "True" : "False"; }},
      flag_key(
          "MODE_MASK", [](auto& s) -> auto& { return s.detector.masks; }),
      {"BACKBONE.RESNET_NUM_BLOCKS", set_blocks, [](const Settings& s) { return listed(s.detector.backbone.blocks); }},
      // Extension: without bottlenecks, [2, 2, 2, 2] is ResNet-18.
      flag_key(
          "BACKBONE.BOTTLENECK", [](auto& s) -> auto& { return s.detector.backbone.bottleneck; }),
      {"BACKBONE.NORM", set_norm, norm_of},
      flag_key(
          "BACKBONE.FREEZE_AFFINE", [](auto& s) -> auto& { return s.detector.freeze_norms; }),
      integer_key("BACKBONE.FREEZE_AT", [](auto& s) -> auto& { return s.detector.freeze_at; }, {0, 5}),
      {"BACKBONE.TF_PAD_MODE", set_padding_mode, padding_mode},
      flag_key(
          "BACKBONE.STRIDE_1X1", [](auto& s) -> auto& { return s.detector.backbone.stride_in_3x3; }, true),
      integer_key(
          "FPN.NUM_CHANNEL", [](auto& s) -> auto& { return s.detector.channels; }, kChannelCount),
      {"FPN.NORM", set_pyramid_norm, [](const Settings& s) { return s.detector.pyramid_norm ? "GN" : "None"; }},
  });
  keys.push_back({"BACKBONE.WEIGHTS",
                  [](Settings& s, const std::string& text) { s.weights = cli::parse_path(unquoted(text), true); },
                  [](const Settings& s) { return s.weights; }});
  return keys;
}

}  // namespace dtrain::mask_rcnn
