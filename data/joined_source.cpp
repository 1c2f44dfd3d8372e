// Concatenation of DetectionSources.
#include <algorithm>

#include "dtrain/core/error.h"
#include "dtrain/data/detection_source.h"

namespace dtrain::data {
namespace {

class JoinedSource final : public DetectionSource {
 public:
  explicit JoinedSource(std::vector<std::shared_ptr<const DetectionSource>> sources) : sources_(std::move(sources)) {
    DT_CHECK(!sources_.empty(), "joined source: no sources");
    for (const auto& source : sources_) {
      for (const uint64_t begin : std::span(source->shard_begins()).subspan(shard_begins_.empty() ? 0 : 1))
        shard_begins_.push_back(begins_.back() + begin);
      begins_.push_back(begins_.back() + source->size());
      faults_.insert(faults_.end(), source->faults().begin(), source->faults().end());
    }
  }

  std::unique_ptr<DetectionSource::Reader> reader() const override { return std::make_unique<Reader>(*this); }
  uint64_t size() const override { return begins_.back(); }
  const std::vector<coco::Category>& categories() const override { return sources_.front()->categories(); }
  const std::vector<uint64_t>& shard_begins() const override { return shard_begins_; }
  RecordLocation locate(uint64_t image) const override {
    const size_t part = part_of(image);
    return sources_[part]->locate(image - begins_[part]);
  }
  std::string file_of(uint64_t image) const override {
    const size_t part = part_of(image);
    return sources_[part]->file_of(image - begins_[part]);
  }
  const std::vector<std::string>& faults() const override { return faults_; }
  std::vector<std::string> notices() const override {
    std::vector<std::string> all;
    for (const auto& source : sources_)
      for (std::string& notice : source->notices()) all.push_back(std::move(notice));
    return all;
  }
  std::string identity() const override { return joined(&DetectionSource::identity); }
  std::string contents() const override { return joined(&DetectionSource::contents); }

 private:
  class Reader final : public DetectionSource::Reader {
   public:
    explicit Reader(const JoinedSource& source) : source_(source) {
      for (const auto& one : source.sources_) readers_.push_back(one->reader());
    }
    DetectionSample read(uint64_t image, const Parts& parts) override {
      const size_t part = source_.part_of(image);
      return readers_[part]->read(image - source_.begins_[part], parts);
    }

   private:
    const JoinedSource& source_;
    std::vector<std::unique_ptr<DetectionSource::Reader>> readers_;
  };

  size_t part_of(uint64_t image) const {
    DT_CHECK(image < size(), "image ", image, " of ", size());
    return static_cast<size_t>(std::ranges::upper_bound(begins_, image) - begins_.begin()) - 1;
  }
  std::string joined(std::string (DetectionSource::*text)() const) const {
    std::string all;
    for (const auto& source : sources_) all += (source.get()->*text)();
    return all;
  }

  std::vector<std::shared_ptr<const DetectionSource>> sources_;
  std::vector<uint64_t> begins_{0};  // first image of each source, and the total
  std::vector<uint64_t> shard_begins_;
  std::vector<std::string> faults_;
};

}  // namespace

std::shared_ptr<const DetectionSource> join(std::vector<std::shared_ptr<const DetectionSource>> sources) {
  return sources.size() == 1 ? sources.front() : std::make_shared<JoinedSource>(std::move(sources));
}

}  // namespace dtrain::data
