// stats.json: a JSON array with an object per epoch, in the format of TensorPack's JSONWriter.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/observers/epoch_means.h"

namespace dtrain::observers {

struct StatsJsonOptions {
  std::string path{};
  uint64_t period = 1;  // steps per epoch, i.e. reporting period
  ScalarTags tags{};
};

// {"epoch_num":3,"global_step":1500,"total_cost":...}: EpochMeans, and the last values of other observers'
// measurements. Evaluation results are added to the object of the evaluated step. The file is rewritten atomically each
// time. If that fails, prints one notice; the next write includes all previous objects.
class StatsJson final : public Observer {
 public:
  StatsJson(StatsJsonOptions options, std::function<void(const std::string&)> notice);
  ~StatsJson() override;

  // Drops objects of later steps. Throws Error(Fault::data) if the file is not such an array, and Error(Fault::config)
  // for a link or a non-file, which is left unchanged.
  void begun(const Begun& event) override;
  void stepped(const Stepped& event) override;
  void evaluated(const Evaluated& event) override;
  // An incomplete last epoch has an object, too.
  void ended(const Ended& event) override;
  // Adds values to the current epoch's object.
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
  bool told_ = false;  // of a failure
  EpochMeans means_;
  std::vector<MetricValue> put_;  // by others
};

}  // namespace dtrain::observers
