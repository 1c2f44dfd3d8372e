#include "models/timm_names.h"

namespace dtrain::models {
namespace {

// Substring replacement; '^' at the start of `ours` anchors it to the start of the name.
struct NameRule {
  std::string_view ours, theirs;
};

constexpr NameRule kVgg[] = {
    {"^classifier.0.", "pre_logits.fc1."}, {"^classifier.3.", "pre_logits.fc2."}, {"^classifier.6.", "head.fc."}};

constexpr NameRule kResNetV2[] = {{"^conv1.", "stem.conv."},
                                  {"^layer1.", "stages.0.blocks."},
                                  {"^layer2.", "stages.1.blocks."},
                                  {"^layer3.", "stages.2.blocks."},
                                  {"^layer4.", "stages.3.blocks."},
                                  {".downsample.0.", ".downsample.conv."},
                                  {".bn", ".norm"},
                                  {"^bn.", "norm."},
                                  {"^fc.", "head.fc."}};

// MobileNet v2: timm numbers blocks within their stage.
constexpr NameRule kMobileNet[] = {
    {"^features.0.0.", "conv_stem."},
    {"^features.0.1.", "bn1."},
    {"^features.1.conv.0.0.", "blocks.0.0.conv_dw."},
    {"^features.1.conv.0.1.", "blocks.0.0.bn1."},
    {"^features.1.conv.1.", "blocks.0.0.conv_pw."},
    {"^features.1.conv.2.", "blocks.0.0.bn2."},
    {"^features.2.", "blocks.1.0."},
    {"^features.3.", "blocks.1.1."},
    {"^features.4.", "blocks.2.0."},
    {"^features.5.", "blocks.2.1."},
    {"^features.6.", "blocks.2.2."},
    {"^features.7.", "blocks.3.0."},
    {"^features.8.", "blocks.3.1."},
    {"^features.9.", "blocks.3.2."},
    {"^features.10.", "blocks.3.3."},
    {"^features.11.", "blocks.4.0."},
    {"^features.12.", "blocks.4.1."},
    {"^features.13.", "blocks.4.2."},
    {"^features.14.", "blocks.5.0."},
    {"^features.15.", "blocks.5.1."},
    {"^features.16.", "blocks.5.2."},
    {"^features.17.", "blocks.6.0."},
    {"^features.18.0.", "conv_head."},
    {"^features.18.1.", "bn2."},
    {".conv.0.0.", ".conv_pw."},
    {".conv.0.1.", ".bn1."},
    {".conv.1.0.", ".conv_dw."},
    {".conv.1.1.", ".bn2."},
    {".conv.2.", ".conv_pwl."},
    {".conv.3.", ".bn3."},
    {"^classifier.1.", "classifier."},
};

constexpr NameRule kNasNet[] = {
    {"^conv0.", "conv0.conv."},
    {"^conv0_bn.", "conv0.bn."},
    {".left.", "_left."},
    {".right.", "_right."},
    {".separable_3x3_", ".separable_"},
    {".separable_5x5_", ".separable_"},
    {".separable_7x7_", ".separable_"},
    {".bn_sep_3x3_", ".bn_sep_"},
    {".bn_sep_5x5_", ".bn_sep_"},
    {".bn_sep_7x7_", ".bn_sep_"},
    {".depthwise.", ".depthwise_conv2d."},
    {".pointwise.", ".pointwise_conv2d."},
    {".1x1.", ".conv_1x1.conv."},
    {".beginning_bn.", ".conv_1x1.bn."},
    {".prev_1x1.", ".conv_prev_1x1.conv."},
    {".prev_bn.", ".conv_prev_1x1.bn."},
    {".path1_conv.", ".path_1.conv."},
    {".path2_conv.", ".path_2.conv."},
    {"^final_layer.FC.", "last_linear."},
};

std::string renamed(std::string name, std::span<const NameRule> renamings) {
  for (const auto& [ours, theirs] : renamings) {
    const bool anchored = ours.front() == '^';
    const std::string_view part = ours.substr(anchored ? 1 : 0);
    const size_t found = anchored ? (name.starts_with(part) ? 0 : name.npos) : name.find(part);
    if (found != name.npos) name.replace(found, part.size(), theirs);
  }
  return name;
}

// Our linear layers that are convolutions in timm.
constexpr std::string_view kVggConvolutions[] = {"classifier.0.", "classifier.3."}, kResNetV2Convolutions[] = {"fc."};

template <const auto& renamings>
const WeightNames& names_by(std::span<const std::string_view> convolutions = {}) {
  static const WeightNames names{
      "timm",
      "timm",
      ArrayOrder::torch,
      {},
      {},
      {},
      {},
      torchvision_names().extras,
      {},
      [](const ParameterStore&, const std::string& ours, std::string) { return renamed(ours, renamings); },
      convolutions};
  return names;
}

}  // namespace

const WeightNames* timm_names(const ClassifierInfo& info) {
  if (info.dataset != "imagenet") return nullptr;
  if (info.name.starts_with("vgg")) return &names_by<kVgg>(kVggConvolutions);
  if (info.name.starts_with("official_resnet") && info.name.ends_with("_v2"))
    return &names_by<kResNetV2>(kResNetV2Convolutions);
  if (info.name == "mobilenet") return &names_by<kMobileNet>();
  if (info.name == "nasnetlarge") return &names_by<kNasNet>();
  return nullptr;
}

}  // namespace dtrain::models
