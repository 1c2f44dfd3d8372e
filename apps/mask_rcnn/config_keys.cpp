#include "apps/mask_rcnn/config_keys.h"

#include "dtrain/core/error.h"
#include "libdtrain/core/nearest.h"

namespace dtrain::mask_rcnn {
namespace {

// The nearest name, or a name ending in `name`: TRAIN.BASE_LR for BASE_LR.
std::optional<std::string> meant(const std::string& name) {
  std::vector<std::string> names;
  for (const ConfigKey& key : config_keys()) {
    if (key.name.ends_with("." + name)) return key.name;
    names.push_back(key.name);
  }
  return nearest(name, names);
}

}  // namespace

const std::vector<ConfigKey>& config_keys() {
  static const std::vector<ConfigKey> keys = [] {
    std::vector<ConfigKey> all = data_keys();
    for (const auto& part :
         {image_keys(), training_keys(), backbone_keys(), proposal_keys(), head_keys(), unread_keys()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return keys;
}

const ConfigKey& config_key(const std::string& name) {
  for (const ConfigKey& key : config_keys())
    if (key.name == name) return key;
  const auto other = meant(name);
  throw Error(fmt::format("unknown key {}{}", name, other ? fmt::format(", did you mean {}?", *other) : ""));
}

std::vector<ConfigKey> of_model(std::vector<ConfigKey> keys) {
  for (ConfigKey& key : keys) key.of_model = true;
  return keys;
}

ConfigKey alias_key(const std::string& name, ConfigKey other) { return {name, std::move(other.set)}; }

}  // namespace dtrain::mask_rcnn
