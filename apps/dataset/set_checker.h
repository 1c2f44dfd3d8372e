// Whether the shards of a data set are all there and belong together: by the manifests beside them, or by their names.
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

  // What is wrong with the sets as such.
  const std::vector<std::string>& faults() const { return faults_; }

  // Throws Error(Fault::data) where the file is not the one that was written with the others.
  void check(const std::string& path) const;

 private:
  void find_missing(const std::string& folder);
  void find_gaps(const std::string& folder, const std::vector<std::string>& paths);

  std::map<std::string, data::ShardManifest> manifests_;  // by folder
  std::vector<std::string> faults_;
};

}  // namespace dtrain::dataset
