// The configuration of a run, kept beside its checkpoints.
#pragma once

#include <functional>
#include <string>

#include "libdtrain/run/observer.h"

namespace dtrain::observers {

// Writes `<folder>/config.toml` once the run holds the folder. One that sets other flags is kept as config-<N>.toml,
// where N is the step that its run has come to. Where the file cannot be written a notice says so.
class ConfigKeeper final : public Observer {
 public:
  // `text`: as FlagSet::config_text().
  ConfigKeeper(const std::string& folder, std::string text, std::function<void(const std::string&)> notice)
      : folder_(folder), text_(std::move(text)), notice_(std::move(notice)) {}

  void begun(const Begun& event) override;

 private:
  const std::string folder_, text_;
  const std::function<void(const std::string&)> notice_;
};

}  // namespace dtrain::observers
