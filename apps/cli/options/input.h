// Flags of the data set, decoding and preprocessing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/cli/flags.h"
#include "apps/cli/machine.h"
#include "apps/cli/options/cache.h"
#include "apps/cli/options/ranks.h"
#include "dtrain/data/catalog.h"

namespace dtrain::cli {

struct InputFlags {
  std::string data_dir, on_bad_record = "fail", jpeg_decoder = "host";
  int64_t bad_record_budget = 1000, datasets_prefetch_buffer_size = 1, num_inter_threads = 0;
  std::optional<int64_t> datasets_num_private_threads;
  bool datasets_use_caching = false, datasets_repeat_cached_sample = false;
  CacheFlags cache;

  void declare(FlagSet& flags);
  void check(const FlagSet&) const {}
  // Throws Error(Fault::config) for settings that `machine` does not support.
  void check_machine(const Machine& machine) const;

  bool synthetic() const { return data_dir.empty(); }
  bool decodes_on_gpu() const { return jpeg_decoder == "gpu"; }
  data::CacheOptions cache_options() const;
  // Threads of this rank's loader; 0: one per core.
  int workers(const Ranks& ranks) const;
};

// Preprocessing as in tf_cnn_benchmarks, torchvision or TensorFlow's official models.
struct PixelFlags {
  std::string preprocessing = "tf_cnn", input_preprocessor = "default", resize_method = "bilinear",
              exif_orientation = "ignore";
  bool distortions = false, distort_color_in_yiq = true, ml_perf = false;

  void declare(FlagSet& flags);
  void check(const FlagSet& flags) const;
  data::Pixels pixels(const std::string& dataset, int64_t image_size) const;
};

}  // namespace dtrain::cli
