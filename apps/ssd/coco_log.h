// The lines of COCO's evaluation in a log.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/log.h"
#include "libdtrain/run/observer.h"

namespace dtrain::ssd {

// Prints what pycocotools and tf_cnn_benchmarks do once detections are scored: the twelve numbers and "Current AP".
class CocoLog final : public Observer {
 public:
  explicit CocoLog(cli::Log& log);
  void evaluated(const Evaluated& event) override;

 private:
  cli::Log& log_;
  std::vector<std::string> titles_;
};

}  // namespace dtrain::ssd
