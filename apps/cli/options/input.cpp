// Records, loader threads, pixels.
#include "apps/cli/options/input.h"

#include "dtrain/core/error.h"

namespace dtrain::cli {

void InputFlags::declare(FlagSet& flags) {
  flags.group("Input");
  flags
      .add("data_dir", data_dir,
           "folder, or s3://BUCKET/PREFIX, of TFRecord files train-* and validation-*; folder of class folders "
           "train/CLASS "
           "and validation/CLASS (val, valid or test), of WebDataset archives train/*.tar and validation/*.tar, or of "
           "lists train.csv and validation.csv (or .tsv) with rows path,label[,label...]; or a pattern of archives of "
           "one "
           "split, such as train-{000..146}.tar, or one list; synthetic data without it")
      .may_be_remote()
      .may_differ_per_rank()
      .identity_once_resolved("data set");
  cache.declare(flags);
  cache.declare_remote(flags);
  flags.add("datasets_use_caching", datasets_use_caching,
            "cache encoded records in memory after the first read; each process has its own cache");
  flags.add("datasets_repeat_cached_sample", datasets_repeat_cached_sample,
            "repeat the first record for ever: training throughput without reading");
  flags.add_choice("on_bad_record", on_bad_record, {"fail", "skip"},
                   "skip: continue with the shard's next valid record");
  flags.add("bad_record_budget", bad_record_budget, "maximum number of bad records to skip", kCount);
  flags
      .add_choice(
          "jpeg_decoder", jpeg_decoder, {"host", "gpu"},
          "gpu: nvJPEG, whose pixels differ by a few levels; images that it does not support are decoded on the host")
      .setting("JPEG decoder");
  flags.add("datasets_prefetch_buffer_size", datasets_prefetch_buffer_size, "batches to prefetch", {1, 1024});
  flags
      .add("datasets_num_private_threads", datasets_num_private_threads,
           "threads of the input pipeline; not given or 0: num_inter_threads, else one per core", kThreads)
      .may_differ_per_rank();
  flags
      .add("num_inter_threads", num_inter_threads,
           "threads of the input pipeline if datasets_num_private_threads is not given; 0: one per core", kThreads)
      .may_differ_per_rank();
}

void InputFlags::check_machine(const Machine& machine) const {
  DT_CHECK(machine.gpu || !decodes_on_gpu(), "--jpeg_decoder=gpu needs --device=gpu");
}

data::CacheOptions InputFlags::cache_options() const {
  data::CacheOptions options = cache.options();
  options.keeps_records = datasets_use_caching || datasets_repeat_cached_sample;
  options.first_record_only = datasets_repeat_cached_sample;
  return options;
}

int InputFlags::workers(const Ranks& ranks) const {
  const int64_t own = datasets_num_private_threads.value_or(0), asked = own > 0 ? own : num_inter_threads;
  return asked > 0 || ranks.size == 1 ? static_cast<int>(asked)
                                      : available_cores().share(ranks.local_size, ranks.sharing);
}

void PixelFlags::declare(FlagSet& flags) {
  flags.group("Preprocessing");
  flags
      .add_choice("preprocessing", preprocessing, data::preprocessing_names(),
                  "crops, resizing and normalisation as in tf_cnn_benchmarks, torchvision's training, TensorFlow's "
                  "official models, MLPerf's reference (also used by Intel), or AWS's train_imagenet_resnet_hvd.py; "
                  "all but the first two support ImageNet only")
      .identity("preprocessing", [this] { return preprocessing + (ml_perf ? ", ml_perf" : ""); });
  flags.add_choice("input_preprocessor", input_preprocessor, {"default", "official_models_imagenet"},
                   "tf_cnn_benchmarks' name for --preprocessing=official_models_imagenet");
  flags.add("ml_perf", ml_perf, "subtract the channel means instead of scaling to [-1, 1]; ignore bounding boxes");
  flags
      .add_choice("resize_method", resize_method, {"crop", "nearest", "bilinear", "bicubic", "area", "round_robin"},
                  "interpolation for ImageNet's images; crop: no resizing and no random boxes, but a central crop "
                  "padded with black")
      .setting("resize method");
  flags
      .add_choice(
          "exif_orientation", exif_orientation, {"apply", "ignore"},
          "apply or ignore the EXIF orientation tag of images; tf_cnn_benchmarks and the other programs ignore it")
      .setting("EXIF orientation", [this] { return exif_orientation == "apply" ? exif_orientation : ""; });
  flags
      .add("distortions", distortions,
           "colour distortion of ImageNet's images: brightness, saturation, hue and contrast, in the ranges of tf_cnn "
           "or aws")
      .identity("distortions", [this] { return !distortions           ? "none"
                                               : distort_color_in_yiq ? "in YIQ"
                                                                      : "in HSV"; });
  flags.add("distort_color_in_yiq", distort_color_in_yiq, "change saturation and hue in YIQ instead of HSV");
}

void PixelFlags::check(const FlagSet&) const {
  refuse({
      {preprocessing != "tf_cnn" && (ml_perf || resize_method != "bilinear"),
       "--ml_perf and --resize_method need --preprocessing=tf_cnn"},
      {preprocessing != "tf_cnn" && preprocessing != "aws" && distortions,
       "--distortions need --preprocessing=tf_cnn or aws"},
      {input_preprocessor != "default" && preprocessing != input_preprocessor,
       "--input_preprocessor and --preprocessing contradict each other"},
  });
}

data::Pixels PixelFlags::pixels(const std::string& dataset, int64_t image_size) const {
  data::Pixels pixels;
  pixels.preprocessing = preprocessing;
  pixels.dataset = dataset;
  pixels.resize_method = resize_method;
  pixels.distortions = distortions;
  pixels.distort_in_yiq = distort_color_in_yiq;
  pixels.ml_perf = ml_perf;
  pixels.size = static_cast<int>(image_size);
  pixels.orientation = exif_orientation == "apply" ? data::Orientation::apply : data::Orientation::ignore;
  return pixels;
}

}  // namespace dtrain::cli
