// DetectionSource: images and their objects, from COCO's JSON and a folder or from TFRecords.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dtrain/data/bad_record.h"
#include "dtrain/data/cache.h"
#include "dtrain/data/coco/annotations.h"
#include "dtrain/data/dataset.h"
#include "dtrain/data/detection_geometry.h"

namespace dtrain::data {

// Encoded image with its annotations.
struct DetectionSample {
  int64_t id = 0;
  std::string_view id_text{};  // the id if it is a string in the annotations; `id` is then derived from it
  std::string_view name{};     // file name, for messages
  ImageSize size{};            // as annotated; may be wrong
  std::span<const std::byte> encoded{};
  std::span<const coco::Annotation> objects{};  // `category` is the class - 1, `image` is unused
};

class DetectionSource {
 public:
  // Parts of a sample to read; the others stay empty.
  struct Parts {
    bool bytes = true, objects = true;
    bool masks = true;  // of the objects
  };
  // Per-thread access. The result of read() is valid until the next call.
  class Reader {
   public:
    virtual ~Reader() = default;
    // Throws Error(Fault::data).
    virtual DetectionSample read(uint64_t image, const Parts& parts) = 0;
  };

  virtual ~DetectionSource() = default;
  virtual std::unique_ptr<Reader> reader() const = 0;
  virtual uint64_t size() const = 0;
  // Categories by class - 1.
  virtual const std::vector<coco::Category>& categories() const = 0;
  // See Dataset; numbers are images.
  virtual const std::vector<uint64_t>& shard_begins() const = 0;
  virtual RecordLocation locate(uint64_t image) const = 0;
  virtual void prefetch(uint64_t) const {}
  virtual bool can_prefetch() const { return false; }
  // File of an image; empty for an image inside a record.
  virtual std::string file_of(uint64_t) const { return {}; }
  virtual const std::vector<std::string>& faults() const = 0;
  // Skipped images, because the file is missing or its size is unreadable. File names are as in messages.
  virtual std::vector<BadRecord> unusable() const { return {}; }
  // User-facing notices, one line each: dropped or normalised input.
  virtual std::vector<std::string> notices() const { return {}; }
  virtual std::string identity() const = 0;
  virtual std::string contents() const = 0;
};

// Images of the COCO "instances" file `annotations` in `folder`, looked up by complete_from(). Locations are that file
// and the image's id. Throws as read_annotations does.
std::shared_ptr<const DetectionSource> open_coco(const std::string& annotations, const std::string& folder,
                                                 coco::AnnotationOptions options = {});

// Concatenation of at least one source; all have the categories of the first.
std::shared_ptr<const DetectionSource> join(std::vector<std::shared_ptr<const DetectionSource>> sources);

// Shards SPLIT-*-of-* of `directory` in the schema of data/detection_record.h. Classes are the labels that occur,
// ascending, or the named `classes`, in that order. The id of an image is its source_id if numeric, else its record
// number. Scans all records for labels. Throws Error(Fault::data) as RecordShards does, and for a class without
// objects. An unreadable record is an error only when it is read.
std::shared_ptr<const DetectionSource> open_detection_records(const std::string& directory, const std::string& split,
                                                              const CacheOptions& cache,
                                                              const std::vector<std::string>& classes = {});

}  // namespace dtrain::data
