#include "apps/mask_rcnn/detection_times.h"

#include <chrono>

#include <fmt/format.h>

namespace dtrain::mask_rcnn {
namespace {

using Clock = std::chrono::steady_clock;

enum Part : size_t { kDecode, kFeatures, kProposals, kBoxes, kMasks, kPaste };

std::vector<PartTimes> empty_parts() {
  return {{"decode and resize", "decode_resize"},
          {"backbone and FPN", "backbone_fpn"},
          {"RPN", "rpn"},
          {"boxes", "boxes"},
          {"masks", "masks"},
          {"download and paste", "paste"}};
}

Part part_of(models::DetectionPart part) { return static_cast<Part>(kFeatures + static_cast<size_t>(part)); }

// Times parts of one image one after the other.
class Stopwatch {
 public:
  Stopwatch(Context& context, DetectionTimes& times) : context_(context), times_(times) {}

  void end(Part part) {
    context_.synchronize("benchmark");
    const Clock::time_point now = Clock::now();
    times_.parts[part].seconds.push_back(std::chrono::duration<double>(now - last_).count());
    if (part == kPaste) times_.whole.seconds.push_back(std::chrono::duration<double>(now - began_).count());
    last_ = now;
  }

 private:
  Context& context_;
  DetectionTimes& times_;
  Clock::time_point began_ = Clock::now(), last_ = began_;
};

// Returns how many objects were found.
size_t run_once(Predictor& predictor, const EncodedFile& file, DetectionTimes& times) try {
  Stopwatch watch(predictor.context(), times);
  const PlacedImage image = predictor.place(decode_image(file.bytes));
  watch.end(kDecode);
  const auto found = predictor.detect(image, [&](models::DetectionPart part) { watch.end(part_of(part)); });
  const size_t count = predictor.in_file(found, image.place).size();
  watch.end(kPaste);
  times.network_sizes.insert(fmt::format("{} x {}", image.pixels.dim(2), image.pixels.dim(1)));
  return count;
} catch (const Error& error) {
  throw Error(error.fault(), file.name + ": " + error.what());
}

}  // namespace

DetectionTimes time_detection(Predictor& predictor, std::span<const EncodedFile> files, int64_t warmup, int64_t runs) {
  DetectionTimes ignored{.parts = empty_parts()}, times{.parts = empty_parts()};
  size_t found = 0;
  for (int64_t i = 0; i < warmup + runs; ++i) {
    const EncodedFile& file = files[static_cast<size_t>(i) % files.size()];
    const size_t count = run_once(predictor, file, i < warmup ? ignored : times);
    if (i >= warmup) found += count;
  }
  times.found = static_cast<double>(found) / static_cast<double>(runs);
  std::erase_if(times.parts, [](const PartTimes& part) { return part.seconds.empty(); });
  return times;
}

}  // namespace dtrain::mask_rcnn
