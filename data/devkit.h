// ImageNet's development kit, ILSVRC2012_devkit_t12.tar.gz: which class each validation image has.
#pragma once

#include <string>
#include <vector>

namespace dtrain::data {

// Whether the file is compressed by gzip, as the development kit is.
bool is_gzip_file(const std::string& path);

// WordNet ids, such as "n01751748", of the 50,000 validation images in the order of their names: the content of
// imagenet_2012_validation_synset_labels.txt. data/ILSVRC2012_validation_ground_truth.txt in the archive has their
// classes as ILSVRC2012_ID, data/meta.mat the WordNet id of each. Throws Error(Fault::data) with archive and file for
// an archive that is damaged, lacks one of them or contradicts itself.
std::vector<std::string> devkit_labels(const std::string& path);

}  // namespace dtrain::data
