#include "apps/ssd/coco_log.h"

#include <fmt/format.h>

#include "apps/ssd/data.h"
#include "dtrain/data/coco/evaluate.h"

namespace dtrain::ssd {

CocoLog::CocoLog(cli::Log& log) : log_(log) {
  const data::coco::Annotations none;
  for (const data::coco::Statistic& statistic : data::coco::Evaluator(none).score().statistics())
    titles_.push_back(statistic.title);
}

void CocoLog::evaluated(const Evaluated& event) {
  const std::vector<MetricValue>& values = event.result.values;
  const std::vector<std::string> names = score_names();
  if (!find_metric(values, names.front())) return;  // another rank scores
  for (size_t i = 0; i < names.size(); ++i)
    log_.line(fmt::format(" {} = {:.3f}", titles_[i], find_metric(values, names[i]).value_or(-1)));
  log_.line(fmt::format("Current AP: {:.5f}", find_metric(values, names.front()).value_or(-1)));
}

}  // namespace dtrain::ssd
