// Notices about skipped records, damaged images and EXIF orientation.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "apps/cli/log.h"
#include "dtrain/data/image.h"
#include "dtrain/data/loader.h"
#include "dtrain/distributed/group.h"

namespace dtrain::cli {

// All-reduced counts of all ranks; a bad record that several ranks read counts several times. Excludes waiting times.
// Collective.
data::LoaderStats over_ranks(Group& group, const data::LoaderStats& mine);

// Notices: counts, one line per named record or image, then orientation_notice(); empty for sound data.
std::vector<std::string> input_notices(const data::LoaderStats& stats, data::Orientation orientation);

// Number and handling of images with an EXIF orientation other than 1; "" if there are none.
std::string orientation_notice(const data::LoaderStats& stats, data::Orientation orientation);

// Logs input_notices() of a classifier, and the number of images decoded on the host for a GPU.
void report_input(const data::LoaderStats& stats, data::Orientation orientation, bool decodes_on_gpu, Log& log);

// Counts of images that a program processes one at a time.
class ImageCount {
 public:
  explicit ImageCount(data::Orientation orientation) : orientation_(orientation) {}
  // Counts an image; reports it on stderr if it is damaged.
  void add(const std::string& file, const data::SampleNotes& notes);
  // Prints the number of damaged images among `images`, and orientation_notice().
  void report(size_t images) const;

 private:
  data::Orientation orientation_;
  data::LoaderStats counts_;
};

}  // namespace dtrain::cli
