// DetectionSource: images and their objects, from COCO's JSON and a folder or from TFRecords.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/bad_record.h"
#include "data/cache.h"
#include "data/coco/annotations.h"
#include "data/dataset.h"
#include "data/detection_geometry.h"

namespace dtrain::data {

// An image as it is stored, and what is in it.
struct DetectionSample {
  int64_t id = 0;
  std::string_view id_text{};  // the id, where the annotations have a string; `id` is then a number that stands for it
  std::string_view name{};     // of its file, for messages
  ImageSize size{};            // as stated beside the image, which may be wrong
  std::span<const std::byte> encoded{};
  std::span<const coco::Annotation> objects{};  // `category` is their class - 1, `image` has no meaning
};

class DetectionSource {
 public:
  // Parts of a sample that are looked for; the others are empty.
  struct Parts {
    bool bytes = true, objects = true;
    bool masks = true;  // of the objects
  };
  // One thread's access. What read() returns lives until the next call.
  class Reader {
   public:
    virtual ~Reader() = default;
    // Throws Error(Fault::data).
    virtual DetectionSample read(uint64_t image, const Parts& parts) = 0;
  };

  virtual ~DetectionSource() = default;
  virtual std::unique_ptr<Reader> reader() const = 0;
  virtual uint64_t size() const = 0;
  // What the numbers of classes, less one, stand for.
  virtual const std::vector<coco::Category>& categories() const = 0;
  // As of a Dataset, by images.
  virtual const std::vector<uint64_t>& shard_begins() const = 0;
  virtual RecordLocation locate(uint64_t image) const = 0;
  // The file of an image that has one of its own, empty where it is in a record.
  virtual std::string file_of(uint64_t) const { return {}; }
  virtual const std::vector<std::string>& faults() const = 0;
  // Images that are left out, since they are not there or their sizes cannot be read. Files are as messages name them.
  virtual std::vector<BadRecord> unusable() const { return {}; }
  // User-facing notices, one line each: what was dropped or normalised on reading.
  virtual std::vector<std::string> notices() const { return {}; }
  virtual std::string identity() const = 0;
  virtual std::string contents() const = 0;
};

// The images that COCO's "instances" file `annotations` lists, in `folder`, where they are looked for as
// complete_from() says. An image is located by that file and its id. Throws as read_annotations does.
std::shared_ptr<const DetectionSource> open_coco(const std::string& annotations, const std::string& folder,
                                                 coco::AnnotationOptions options = {});

// The images of several sources, at least one, as if they were of one. All have the categories of the first.
std::shared_ptr<const DetectionSource> join(std::vector<std::shared_ptr<const DetectionSource>> sources);

// The shards SPLIT-*-of-* of `directory`, in the schema of data/detection_record.h. Classes are the labels that occur,
// in ascending order, or those that occur with the names `classes`, in that order. An image whose source_id is no
// number has that of its record as its id. Throws Error(Fault::data) as RecordShards does, and where a class does not
// occur. A record that cannot be read is an error where it is read. All records are read to find the labels.
std::shared_ptr<const DetectionSource> open_detection_records(const std::string& directory, const std::string& split,
                                                              const CacheOptions& cache,
                                                              const std::vector<std::string>& classes = {});

}  // namespace dtrain::data
