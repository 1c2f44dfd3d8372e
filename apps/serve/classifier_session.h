// Session of a classifier.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "apps/cli/loaded_classifier.h"
#include "apps/serve/session.h"
#include "dtrain/data/preprocess.h"

namespace dtrain::serve {

class ClassifierSession final : public Session {
 public:
  // Refuses images with more than `max_pixels`. Throws Error(Fault::checkpoint) if the weights do not fit.
  ClassifierSession(const cli::ClassifierFlags& flags, const cli::FlagSet& set, const cli::Machine& machine,
                    int64_t max_pixels, uint64_t version);

  bool detects() const override { return false; }
  const std::vector<data::coco::Category>& categories() const override { return none_; }
  std::span<const std::string> class_names() const override { return loaded_.class_names(); }
  int64_t outputs() const override { return loaded_.model().classes; }
  size_t input_bytes() const override;
  Pixels decode(std::span<const std::byte> encoded) const override;
  Pixels from_levels(std::span<const float> levels) const override;
  std::vector<Prediction> predict(std::span<const Pixels* const> images) const override;

 private:
  // Pool of preprocessors, which have buffers and are not thread-safe.
  std::unique_ptr<data::Preprocessor> borrow() const;

  cli::LoadedClassifier loaded_;
  data::PreprocessorFactory make_;
  int64_t max_pixels_;
  const std::vector<data::coco::Category> none_{};
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<data::Preprocessor>> idle_;
};

}  // namespace dtrain::serve
