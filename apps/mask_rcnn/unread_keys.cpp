// Keys of TensorFlow internals, and keys with a single supported value.
#include <algorithm>

#include "apps/mask_rcnn/config_keys.h"
#include "dtrain/core/error.h"

namespace dtrain::mask_rcnn {
namespace {

using Texts = std::vector<std::string>;

void read_flag(const std::string& text) { as_bool(parse_literal(text)); }
void read_integer(const std::string& text) { as_integer(parse_literal(text), cli::kAny<int64_t>); }
void read_optional_integer(const std::string& text) {
  if (parse_literal(text).kind != Literal::Kind::none) read_integer(text);
}

// `read` throws if the value has another type.
ConfigKey no_effect(const std::string& name, void (*read)(const std::string&), const std::string& notice) {
  ConfigKey key{name, [read](Settings&, const std::string& text) { read(text); }};
  key.notice = notice;
  return key;
}

// Compares source text, ignoring quotes, spaces and the kind of brackets.
std::string plain(const std::string& text) {
  std::string rest = unquoted(text);
  std::erase_if(rest, [](char c) { return c == ' ' || c == '[' || c == ']' || c == '(' || c == ')'; });
  if (rest.ends_with(',')) rest.pop_back();
  return rest;
}

// Accepts the values in `served`; refuses the programs' `others`.
ConfigKey single_value(const std::string& name, const Texts& served, const Texts& others, const std::string& reason) {
  return {name, [=](Settings&, const std::string& text) {
            const std::string value = plain(text);
            const auto among = [&](const Texts& values) {
              return std::find(values.begin(), values.end(), value) != values.end();
            };
            if (among(served)) return;
            if (others.empty() || among(others)) throw Error(fmt::format("not supported: {}", reason));
            throw Error(fmt::format("expected one of {}, {}", fmt::join(served, ", "), fmt::join(others, ", ")));
          }};
}

ConfigKey single_flag(const std::string& name, bool served, const std::string& reason) {
  const Texts yes = {"True", "true", "1"}, no = {"False", "false", "0"};
  return single_value(name, served ? yes : no, served ? no : yes, reason);
}

void read_trainer(const std::string& text) {
  const std::string trainer = unquoted(text);
  DT_CHECK(trainer == "replicated" || trainer == "horovod", "expected replicated or horovod, found '", trainer, "'");
}

std::vector<ConfigKey> single_values() {
  return {
      single_value("FPN.PROPOSAL_MODE", {"Level"}, {"Joint"}, "NMS is applied per pyramid level"),
      single_value("RPN.ANCHOR_STRIDE", {"16"}, {}, "the anchor stride of a C4 detector is 16"),
      single_value("FPN.ANCHOR_STRIDES", {"4,8,16,32,64"}, {}, "pyramid strides are 4, 8, 16, 32 and 64"),
      single_flag("RPN.TOPK_PER_IMAGE", true, "top-k of proposals is per image, not per batch"),
      single_flag("DATA.ABSOLUTE_COORD", true, "box coordinates are in pixels, as in COCO"),
      single_flag("TRAIN.SHOULD_STOP", false, "use TEST.BOX_TARGET and TEST.MASK_TARGET to stop early"),
      {"RPN.CROWD_OVERLAP_THRESH",
       [](Settings&, const std::string& text) {
         DT_CHECK(as_number(parse_literal(text), cli::kNotNegative) > 1,
                  "not supported: crowds are ignored; expected a value above 1, which disables the crowd rule");
       }},
  };
}

}  // namespace

std::vector<ConfigKey> unread_keys() {
  const std::string ranks = "every process is a rank";
  const std::string layout = "the layout is NHWC";
  const std::string after = "after NMS only the limit per image applies";
  const std::string data = "determined by the annotations";
  const std::string exact = "masks are always cropped and pasted with sub-pixel accuracy";
  std::vector<ConfigKey> keys = single_values();
  for (const ConfigKey& key : {
           no_effect("TRAINER", read_trainer, ranks),
           no_effect("TRAIN.NUM_GPUS", read_optional_integer, ranks),
           no_effect("DATA.NUM_WORKERS", read_integer, "set loader threads with --datasets_num_private_threads"),
           no_effect("DATA.NUM_CATEGORY", read_integer, data),
           no_effect("TRAIN.BACKBONE_NCHW", read_flag, layout),
           no_effect("TRAIN.FPN_NCHW", read_flag, layout),
           no_effect("TRAIN.RPN_NCHW", read_flag, layout),
           no_effect("TRAIN.MASK_NCHW", read_flag, layout),
           no_effect("RPN.TRAIN_PER_LEVEL_POST_NMS_TOPK", read_integer, after),
           no_effect("RPN.TEST_PER_LEVEL_POST_NMS_TOPK", read_integer, after),
           no_effect("RPN.SLOW_ACCURATE_MASK", read_flag, exact),
           no_effect("MRCNN.ACCURATE_PASTE", read_flag, exact),
       })
    keys.push_back(key);
  return keys;
}

}  // namespace dtrain::mask_rcnn
