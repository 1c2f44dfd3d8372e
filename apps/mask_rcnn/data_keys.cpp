// Keys of the data set.
#include <utility>

#include "apps/cli/values.h"
#include "apps/mask_rcnn/config_keys.h"
#include "dtrain/core/error.h"

namespace dtrain::mask_rcnn {
namespace {

std::vector<std::string> splits_of(const std::string& text) {
  std::vector<std::string> splits = as_texts(parse_literal(text));
  for (const std::string& split : splits)
    DT_CHECK(!split.empty() && split != kCocoPrefix && split.find('/') == split.npos,
             "expected names of splits such as train2017, found '", split, "'");
  return splits;
}

std::string texts(const std::vector<std::string>& values) {
  std::string list;
  for (const std::string& value : values) list += (list.empty() ? "" : ", ") + quoted(value);
  return "[" + list + "]";
}

void set_training_splits(Settings& s, const std::string& text) {
  s.data.training = splits_of(text);
  s.data.names_training = !s.data.training.empty();
}

void set_validation_splits(Settings& s, const std::string& text) {
  s.data.validation = splits_of(text);
  s.data.names_validation = !s.data.validation.empty();
}

void set_classes(Settings& s, const std::string& text) {
  std::vector<std::string> classes = as_texts(parse_literal(text));
  if (!classes.empty() && classes[0] == "BG") classes.erase(classes.begin());
  s.data.classes = classes;
}

}  // namespace

std::vector<ConfigKey> data_keys() {
  ConfigKey classes{"DATA.CLASS_NAMES", set_classes, [](const Settings& s) { return texts(s.data.classes); }};
  classes.of_model = true;
  return {
      {"DATA.BASEDIR",
       [](Settings& s, const std::string& text) {
         s.data.base_dir = cli::parse_path(unquoted(text), /*may_be_remote=*/true);
       },
       [](const Settings& s) { return s.data.base_dir; }},
      {"DATA.TRAIN", set_training_splits, [](const Settings& s) { return texts(s.data.training); }},
      {"DATA.VAL", set_validation_splits, [](const Settings& s) { return texts(s.data.validation); }},
      flag_key(
          "DATA.FILTER_EMPTY_ANNOTATIONS", [](auto& s) -> auto& { return s.data.keep_empty; }, true),
      std::move(classes),
  };
}

}  // namespace dtrain::mask_rcnn
