// What a run says at its end about records that were skipped and images that were damaged.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "data/image.h"
#include "data/loader.h"

namespace dtrain::cli {

// A line with the counts, and one for each record or image that `stats` names; none where all data was sound.
std::vector<std::string> input_notices(const data::LoaderStats& stats);

// A notice of `tagged` of the `images` that were read having an EXIF orientation other than 1, and of what was done; ""
// where none has.
std::string orientation_notice(uint64_t tagged, uint64_t images, data::Orientation orientation);

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
