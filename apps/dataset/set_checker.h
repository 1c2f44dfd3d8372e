// Checks that a data set's shards are complete and belong together, by manifest or by name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/dataset/files.h"
#include "data/shard_manifest.h"

namespace dtrain::dataset {

class SetChecker {
 public:
  explicit SetChecker(const DataFiles& files);

  // Problems of the sets as a whole.
  const std::vector<std::string>& faults() const { return faults_; }

  // Throws Error(Fault::data) if the file does not belong to the set.
  void check(const std::string& path) const;

 private:
  void find_missing(const std::string& folder);
  void find_gaps(const std::string& folder, const std::vector<std::string>& paths);

  std::map<std::string, data::ShardManifest> manifests_;  // by folder
  std::vector<std::string> faults_;
};

}  // namespace dtrain::dataset
