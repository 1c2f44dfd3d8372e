// Saves a run's configuration beside its checkpoints.
#pragma once

#include <functional>
#include <string>

#include "dtrain/run/observer.h"

namespace dtrain::observers {

// Writes `<folder>/config.toml` once the run has locked the folder. An existing file with other flags is renamed to
// config-<N>.toml, where N is the last step of its run. Prints a notice if the file cannot be written.
class ConfigKeeper final : public Observer {
 public:
  // `text`: FlagSet::config_text().
  ConfigKeeper(const std::string& folder, std::string text, std::function<void(const std::string&)> notice)
      : folder_(folder), text_(std::move(text)), notice_(std::move(notice)) {}

  void begun(const Begun& event) override;

 private:
  const std::string folder_, text_;
  const std::function<void(const std::string&)> notice_;
};

}  // namespace dtrain::observers
