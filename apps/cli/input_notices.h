// What a run says at its end about records that were skipped and images that were damaged or turned.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "apps/cli/log.h"
#include "data/image.h"
#include "data/loader.h"
#include "libdtrain/distributed/group.h"

namespace dtrain::cli {

// The counts of all ranks together, on each of them; a bad record that several ranks have met counts on each. Waiting
// times are left out. Collective.
data::LoaderStats over_ranks(Group& group, const data::LoaderStats& mine);

// Returns the counts, one line per named record or image, and last orientation_notice(); empty for sound data.
std::vector<std::string> input_notices(const data::LoaderStats& stats, data::Orientation orientation);

// Returns how many images have an EXIF orientation other than 1, and what was done with them; "" where none has.
std::string orientation_notice(const data::LoaderStats& stats, data::Orientation orientation);

// Logs input_notices() of a classifier's images, and the number of images that the host decoded for a GPU.
void report_input(const data::LoaderStats& stats, data::Orientation orientation, bool decodes_on_gpu, Log& log);

// Counts the images that a program shows to a model one at a time.
class ImageCount {
 public:
  explicit ImageCount(data::Orientation orientation) : orientation_(orientation) {}
  // Counts an image that was read; names it on stderr where it is damaged.
  void add(const std::string& file, const data::SampleNotes& notes);
  // Prints how many of `images` files are damaged, and orientation_notice().
  void report(size_t images) const;

 private:
  data::Orientation orientation_;
  data::LoaderStats counts_;
};

}  // namespace dtrain::cli
