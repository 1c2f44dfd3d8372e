#include "apps/dataset/stored_image.h"

#include "data/orientation.h"
#include "dtrain/core/error.h"
#include "dtrain/data/jpeg.h"

namespace dtrain::dataset {

StoredImage::StoredImage(const data::DetectionSample& sample, const std::string& annotations) : bytes_(sample.encoded) {
  const auto [height, width] = sample.size;
  const data::ImageInfo info = decoder_.open(sample.encoded);
  is_turned_ = data::is_upright_size(info, width, height);
  if (!is_turned_ && (info.width != width || info.height != height))
    throw Error(Fault::data, concat("is ", info.width, "x", info.height, " pixels large, ", annotations, " has it as ",
                                    width, "x", height));
  if (is_turned_) decoder_.open(sample.encoded, data::Orientation::apply);
  const data::ImageView pixels = decoder_.decode();
  if (!decoder_.damage().empty()) throw Error(Fault::data, data::damaged_image(decoder_.damage()));
  is_png_ = info.format == data::ImageFormat::png && !is_turned_;
  if (is_png_ || (info.format == data::ImageFormat::jpeg && !is_turned_)) return;
  jpeg_ = data::encode_jpeg(
      pixels, {.quality = 100, .sampling = data::Sampling::s444, .orientation = is_turned_ ? 1 : info.orientation});
  bytes_ = jpeg_;
}

}  // namespace dtrain::dataset
