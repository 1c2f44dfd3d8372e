// Keys of the detector's heads and of post-processing.
#include <array>

#include "apps/mask_rcnn/config_keys.h"
#include "dtrain/core/error.h"

namespace dtrain::mask_rcnn {
namespace {

std::array<float, 4> weights_of(const Literal& literal) {
  const auto& items = as_sequence(literal, 4, "four numbers, of x, y, width and height");
  std::array<float, 4> weights{};
  for (size_t i = 0; i < 4; ++i) weights[i] = static_cast<float>(as_number(items[i], kPositiveSize));
  return weights;
}

void set_box_weights(Settings& s, const std::string& text) {
  const auto weights = weights_of(parse_literal(text));
  BoxCoder& coder = s.detector.box.coder;
  coder.wx = weights[0], coder.wy = weights[1], coder.ww = weights[2], coder.wh = weights[3];
}

std::string box_weights(const Settings& s) {
  const BoxCoder& coder = s.detector.box.coder;
  return fmt::format("[{}, {}, {}, {}]", coder.wx, coder.wy, coder.ww, coder.wh);
}

constexpr size_t kStages = 3;  // of a cascade, as in TensorPack

void set_cascade_ious(Settings& s, const std::string& text) {
  const Literal literal = parse_literal(text);
  const auto& items = as_sequence(literal, kStages, "three numbers, one for each head");
  std::vector<models::CascadeStage> stages = s.detector.stages;
  for (size_t i = 0; i < kStages; ++i) stages[i].iou = static_cast<float>(as_number(items[i], cli::kShare));
  s.detector.stages = stages;
}

std::string cascade_ious(const Settings& s) {
  std::vector<float> ious;
  for (const models::CascadeStage& stage : s.detector.stages) ious.push_back(stage.iou);
  return listed(ious);
}

void set_cascade_weights(Settings& s, const std::string& text) {
  const Literal literal = parse_literal(text);
  const auto& items = as_sequence(literal, kStages, "three lists of four numbers, one for each head");
  std::vector<models::CascadeStage> stages = s.detector.stages;
  for (size_t i = 0; i < kStages; ++i) stages[i].weights = weights_of(items[i]);
  s.detector.stages = stages;
}

std::string cascade_weights(const Settings& s) {
  std::vector<std::string> lists;
  for (const models::CascadeStage& stage : s.detector.stages) lists.push_back(listed(stage.weights));
  return listed(lists);
}

std::vector<ConfigKey> cascade_keys() {
  return of_model({
      flag_key(
          "FPN.CASCADE", [](auto& s) -> auto& { return s.detector.cascade; }),
      {"CASCADE.IOUS", set_cascade_ious, cascade_ious},
      {"CASCADE.BBOX_REG_WEIGHTS", set_cascade_weights, cascade_weights},
  });
}

struct BoxHeadForm {
  const char* name;  // after "fastrcnn" or "boxclass"
  int convolutions, linear_layers;
  bool group_norm;
};
constexpr BoxHeadForm kBoxHeads[] = {
    {"_2fc_head", 0, 2, false}, {"_4conv1fc_head", 4, 1, false}, {"_4conv1fc_gn_head", 4, 1, true}};

ConfigKey box_head_key(const std::string& name, const std::string& prefix) {
  return {name,
          [=](Settings& s, const std::string& text) {
            std::string names;
            for (const BoxHeadForm& form : kBoxHeads) {
              names += (names.empty() ? "" : ", ") + prefix + form.name;
              if (unquoted(text) != prefix + form.name) continue;
              s.detector.box.convolutions = form.convolutions;
              s.detector.box.linear_layers = form.linear_layers;
              s.detector.box.group_norm = form.group_norm;
              return;
            }
            throw Error(fmt::format("expected one of {}", names));
          },
          [=](const Settings& s) -> std::optional<std::string> {
            const models::BoxHeadOptions& box = s.detector.box;
            for (const BoxHeadForm& form : kBoxHeads)
              if (box.convolutions == form.convolutions && box.linear_layers == form.linear_layers &&
                  box.group_norm == form.group_norm)
                return prefix + form.name;
            return {};
          }};
}

void set_mask_head(Settings& s, const std::string& text) {
  const std::string name = unquoted(text);
  DT_CHECK(name == "maskrcnn_up4conv_head" || name == "maskrcnn_up4conv_gn_head",
           "expected maskrcnn_up4conv_head or maskrcnn_up4conv_gn_head");
  s.detector.mask.convolutions = 4;
  s.detector.mask.group_norm = name == "maskrcnn_up4conv_gn_head";
}

std::string mask_head(const Settings& s) {
  return s.detector.mask.group_norm ? "maskrcnn_up4conv_gn_head" : "maskrcnn_up4conv_head";
}

void set_region_threshold(Settings& s, const std::string& text) {
  const auto threshold = static_cast<float>(as_number(parse_literal(text), cli::kShare));
  s.detector.box.match.positive = s.detector.box.match.negative = threshold;
}

// Keys of RoI sampling and post-processing.
std::vector<ConfigKey> threshold_keys() {
  return {
      {"FRCNN.FG_THRESH", set_region_threshold,
       [](const Settings& s) { return fmt::format("{}", s.detector.box.match.positive); }},
      number_key(
          "TEST.FRCNN_NMS_THRESH", [](auto& s) -> auto& { return s.detector.detection.nms_threshold; }, cli::kShare),
      number_key(
          "TEST.RESULT_SCORE_THRESH", [](auto& s) -> auto& { return s.detector.detection.score_threshold; },
          cli::kShare),
      number_key(
          "TEST.RESULT_SCORE_THRESH_VIS", [](auto& s) -> auto& { return s.visible_score; }, cli::kShare),
      integer_key(
          "TEST.RESULTS_PER_IM", [](auto& s) -> auto& { return s.detector.detection.per_image; }, kBoxCount),
  };
}

}  // namespace

std::vector<ConfigKey> head_keys() {
  const ConfigKey head = box_head_key("FPN.FRCNN_HEAD_FUNC", "fastrcnn");
  const ConfigKey channels = integer_key(
      "FPN.FRCNN_CONV_HEAD_DIM", [](auto& s) -> auto& { return s.detector.box.channels; }, kChannelCount);
  const ConfigKey features = integer_key(
      "FPN.FRCNN_FC_HEAD_DIM", [](auto& s) -> auto& { return s.detector.box.features; }, kChannelCount);
  std::vector<ConfigKey> keys = of_model({
      {"FRCNN.BBOX_REG_WEIGHTS", set_box_weights, box_weights},
      head,
      channels,
      features,
      alias_key("FPN.BOXCLASS_HEAD_FUNC", box_head_key("", "boxclass")),
      alias_key("FPN.BOXCLASS_CONV_HEAD_DIM", channels),
      alias_key("FPN.BOXCLASS_FC_HEAD_DIM", features),
      {"FPN.MRCNN_HEAD_FUNC", set_mask_head, mask_head},
      integer_key(
          "MRCNN.HEAD_DIM", [](auto& s) -> auto& { return s.detector.mask.channels; }, kChannelCount),
  });
  for (const std::vector<ConfigKey>& part : {cascade_keys(), threshold_keys()})
    keys.insert(keys.end(), part.begin(), part.end());
  return keys;
}

}  // namespace dtrain::mask_rcnn
