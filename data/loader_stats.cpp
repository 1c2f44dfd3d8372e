// Merging of loader statistics.
#include <algorithm>

#include "dtrain/data/loader.h"

namespace dtrain::data {

void LoaderStats::add(const LoaderStats& other) {
  records += other.records;
  damaged_images += other.damaged_images;
  oriented_images += other.oriented_images;
  turned_images += other.turned_images;
  deferred += other.deferred;
  bad_records += other.bad_records;
  unreachable += other.unreachable;
  wait_seconds += other.wait_seconds;
  const auto name = [](std::vector<std::string>& all, const std::vector<std::string>& more) {
    for (const std::string& one : more)
      if (all.size() < kNamed && std::ranges::find(all, one) == all.end()) all.push_back(one);
  };
  name(faults, other.faults);
  name(damages, other.damages);
}

}  // namespace dtrain::data
