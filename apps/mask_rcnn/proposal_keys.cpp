// Keys of anchors, proposals and RoI sampling.
#include <algorithm>

#include "apps/mask_rcnn/config_keys.h"
#include "dtrain/core/error.h"

namespace dtrain::mask_rcnn {
namespace {

using Rounding = AnchorOptions::Rounding;

void set_unquantised(Settings& s, const std::string& text) {
  s.detector.rpn.anchors.rounding = as_bool(parse_literal(text)) ? Rounding::none : Rounding::detectron;
}

std::optional<std::string> unquantised(const Settings& s) {
  if (s.detector.rpn.anchors.rounding == Rounding::corners) return {};
  return s.detector.rpn.anchors.rounding == Rounding::none ? "True" : "False";
}

// `count` 0: any number of them.
template <class Member>
ConfigKey sizes_key(const std::string& name, Member member, size_t count, const std::string& form) {
  return {name,
          [=](Settings& s, const std::string& text) {
            const Literal literal = parse_literal(text);
            std::vector<float> sizes;
            for (const Literal& item : as_sequence(literal, count, form))
              sizes.push_back(static_cast<float>(as_number(item, kPositiveSize)));
            DT_CHECK(!sizes.empty(), "expected ", form, ", found none");
            member(s) = sizes;
          },
          [=](const Settings& s) { return listed(member(s)); }};
}

// Samples per image of anchors or RoIs, and maximum foreground fraction.
template <class Options, class Share>
void add_sample_keys(std::vector<ConfigKey>& keys, const std::string& group, Options options, Share share) {
  const auto follow = [=](Settings& s) {
    options(s).positives = static_cast<int>(static_cast<double>(options(s).batch) * share(s));
  };
  ConfigKey total = integer_key(
      group + ".BATCH_PER_IM", [=](auto& s) -> auto& { return options(s).batch; }, kBoxCount);
  ConfigKey part = number_key(group + ".FG_RATIO", share, cli::kShare);
  for (ConfigKey* key : {&total, &part}) {
    key->set = [set = key->set, follow](Settings& s, const std::string& text) {
      set(s, text);
      follow(s);
    };
    keys.push_back(*key);
  }
}

// TensorPack's limit applies per level before NMS, and per image after NMS.
template <class Member>
void add_proposal_keys(std::vector<ConfigKey>& keys, const std::string& phase, Member member) {
  const ConfigKey per_level = integer_key(
      phase + "_PER_LEVEL_PRE_NMS_TOPK", [=](auto& s) -> auto& { return member(s).per_level; }, kBoxCount);
  const ConfigKey total = integer_key(
      phase + "_IMAGE_POST_NMS_TOPK", [=](auto& s) -> auto& { return member(s).total; }, kBoxCount);
  keys.push_back(per_level);
  keys.push_back(total);
  keys.push_back({phase + "_PER_LEVEL_NMS_TOPK", [=](Settings& s, const std::string& text) {
                    per_level.set(s, text);
                    total.set(s, text);
                  }});
}

// Limits of a C4 detector.
template <class Member>
void add_single_map_keys(std::vector<ConfigKey>& keys, const std::string& phase, Member member) {
  keys.push_back(integer_key(
      phase + "_PRE_NMS_TOPK", [=](auto& s) -> auto& { return member(s).per_level; }, kBoxCount));
  keys.push_back(integer_key(
      phase + "_POST_NMS_TOPK", [=](auto& s) -> auto& { return member(s).total; }, kBoxCount));
}

std::vector<ConfigKey> rpn_keys() {
  return of_model({
      sizes_key(
          "RPN.ANCHOR_SIZES", [](auto& s) -> auto& { return s.detector.rpn.sizes; }, 5,
          "five numbers, one for each level"),
      sizes_key(
          "RPN.ANCHOR_RATIOS", [](auto& s) -> auto& { return s.detector.rpn.anchors.ratios; }, 0, "a list of numbers"),
      {"RPN.UNQUANTIZED_ANCHOR", set_unquantised, unquantised},
      integer_key(
          "RPN.HEAD_DIM", [](auto& s) -> auto& { return s.detector.c4.rpn_channels; }, kChannelCount),
  });
}

}  // namespace

std::vector<ConfigKey> proposal_keys() {
  std::vector<ConfigKey> keys = {
      number_key(
          "RPN.POSITIVE_ANCHOR_THRESH", [](auto& s) -> auto& { return s.detector.rpn.match.positive; }, cli::kShare),
      number_key(
          "RPN.NEGATIVE_ANCHOR_THRESH", [](auto& s) -> auto& { return s.detector.rpn.match.negative; }, cli::kShare),
      number_key("RPN.MIN_SIZE", [](auto& s) -> auto& { return s.detector.rpn.min_side; }, {0, 1e6}),
      number_key(
          "RPN.PROPOSAL_NMS_THRESH", [](auto& s) -> auto& { return s.detector.rpn.nms_threshold; }, cli::kShare),
  };
  const std::vector<ConfigKey> rpn = rpn_keys();
  keys.insert(keys.end(), rpn.begin(), rpn.end());
  add_sample_keys(
      keys, "RPN", [](auto& s) -> auto& { return s.detector.rpn; }, [](auto& s) -> auto& { return s.anchor_share; });
  add_sample_keys(
      keys, "FRCNN", [](auto& s) -> auto& { return s.detector.box; }, [](auto& s) -> auto& { return s.region_share; });
  add_proposal_keys(
      keys, "RPN.TRAIN", [](auto& s) -> auto& { return s.detector.rpn.training; });
  add_proposal_keys(
      keys, "RPN.TEST", [](auto& s) -> auto& { return s.detector.rpn.evaluation; });
  add_single_map_keys(
      keys, "RPN.TRAIN", [](auto& s) -> auto& { return s.detector.c4.training; });
  add_single_map_keys(
      keys, "RPN.TEST", [](auto& s) -> auto& { return s.detector.c4.evaluation; });
  return keys;
}

}  // namespace dtrain::mask_rcnn
