// Log of COCO metrics.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/log.h"
#include "dtrain/run/observer.h"

namespace dtrain::ssd {

// Prints the lines of pycocotools and tf_cnn_benchmarks after an evaluation: the twelve metrics and "Current AP".
class CocoLog final : public Observer {
 public:
  explicit CocoLog(cli::Log& log);
  void evaluated(const Evaluated& event) override;

 private:
  cli::Log& log_;
  std::vector<std::string> titles_;
};

}  // namespace dtrain::ssd
