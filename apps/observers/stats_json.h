// stats.json: a JSON array with an object per epoch, as TensorPack's JSONWriter leaves it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/observers/scalar_tags.h"

namespace dtrain::observers {

struct StatsJsonOptions {
  std::string path{};
  uint64_t period = 1;  // steps of an epoch, which is a period of reporting
  ScalarTags tags{};
};

// {"epoch_num":3,"global_step":1500,"total_cost":...}: losses and metrics are means over the epoch's steps, as far as
// this process has made them; the learning rate, the L2 term and what others measure are the last ones. The values of
// an evaluation join the object of the step whose parameters were evaluated. The file is replaced as a whole each time.
// Where it cannot be written one notice says so, and the next object is tried again with all before.
class StatsJson final : public Observer {
 public:
  StatsJson(StatsJsonOptions options, std::function<void(const std::string&)> notice);
  ~StatsJson() override;

  // Objects of later steps are cut off. Throws Error(Fault::data) for a file that is no such array, and
  // Error(Fault::config) for one that is a link or no file: it stays as it is.
  void begun(const Begun& event) override;
  void stepped(const Stepped& event) override;
  void evaluated(const Evaluated& event) override;
  // An epoch that the end of the run cuts short has an object, too.
  void ended(const Ended& event) override;
  // For the object of the epoch under way, under the names of the values.
  void put(const std::vector<MetricValue>& scalars);

 private:
  using Json = nlohmann::ordered_json;
  Json& row_of(uint64_t step);
  void add_row(uint64_t step);
  void write();

  const StatsJsonOptions options_;
  const std::function<void(const std::string&)> notice_;
  std::unique_ptr<Json> rows_;  // an array
  bool open_ = false;
  bool told_ = false;                   // of a failure
  std::map<std::string, double> sums_;  // over the steps of the epoch under way, by the engine's names
  uint64_t steps_ = 0;                  // which they are
  double l2_loss_ = 0;                  // of the last shown step
  std::vector<MetricValue> put_;        // by others
};

}  // namespace dtrain::observers
