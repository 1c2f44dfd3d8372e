// What a run says at its end about records that were skipped and images that were damaged.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "apps/cli/log.h"
#include "data/catalog.h"
#include "data/image.h"
#include "data/loader.h"

namespace dtrain::cli {

// A line with the counts, and one for each record or image that `stats` names; none where all data was sound. The last
// one is that of orientation_notice.
std::vector<std::string> input_notices(const data::LoaderStats& stats, uint64_t tagged, data::Orientation orientation);

// A notice of `tagged` of the `images` that were read having an EXIF orientation other than 1, and of what was done; ""
// where none has.
std::string orientation_notice(uint64_t tagged, uint64_t images, data::Orientation orientation);

// Logs all of these of a classifier's training, and how many images a GPU left to the host.
void report_input(const data::LoaderStats& stats, const data::Pixels& pixels, bool decodes_on_gpu, Log& log);

// Images that a program has shown to a model although they are damaged.
class DamageCount {
 public:
  // Names the image on stderr; does nothing where there is no warning.
  void add(const std::string& file, const std::string& warning);
  // A notice of how many there were, of `images`; none where there was none.
  void report(size_t images) const;

 private:
  size_t count_ = 0;
};

}  // namespace dtrain::cli
