// Published scaling efficiencies, with the assumptions of the predictions.
#include "apps/scale/validation.h"

namespace dtrain::scale {
namespace {

ScaleOptions options_of(int64_t gpus_per_host, const char* inside, const char* between, double wire_bytes,
                        int64_t bucket_mib, bool overlap) {
  return {.network = {.gpus_per_host = gpus_per_host,
                      .inside = find_preset(presets_inside(), inside).level,
                      .between = find_preset(presets_between(), between).level,
                      .collective = 10e-6},
          .buckets = {.bytes = bucket_mib * (1 << 20)},
          .overlap = overlap,
          .wire_bytes = wire_bytes,
          .jitter = 0.01};
}

ScaleOptions with_half_batch(ScaleOptions options, double half_batch) {
  options.half_batch = half_batch;
  return options;
}

MeasuredRate rate_of(const char* model, const char* device, double images_per_second, double batch) {
  return {.model = model, .device = device, .images_per_second = images_per_second, .batch = batch};
}

// Horovod's table: 128 hosts of four P100, one RoCE port of 25 Gb/s each.
void add_horovod(std::vector<PublishedCurve>& all) {
  const ScaleOptions options = options_of(4, "pcie3", "roce25", 4, 64, true);
  const char* source = "horovod docs/benchmarks.rst";
  all.push_back({"Horovod, ResNet-101, 1 -> 512 P100, 25 Gb/s RoCE", source, rate_of("resnet101", "P100", 129, 64),
                 options, 1, 512, 64, 0.90, false,
                 "Batch 64; 129 images/s between TensorFlow's 219 for ResNet-50 and 91.8 for ResNet-152 on a P100, by "
                 "multiply-adds; PCIe 3 inside; fp32, fusion of 64 MiB. Its negotiation and copies are not modelled."});
  all.push_back({"Horovod, VGG-16, 1 -> 512 P100, 25 Gb/s RoCE", source, rate_of("vgg16", "P100", 154, 64), options, 1,
                 512, 64, 0.68, false, "As 1, with TensorFlow's 154 images/s on a P100."});
}

void add_one_host(std::vector<PublishedCurve>& all) {
  const ScaleOptions a100 = options_of(8, "nvswitch-a100", "ib400", 2, 64, true);
  const char* examples = "NVIDIA/DeepLearningExamples";
  all.push_back({"MXNet, ResNet-50, 1 -> 8 A100", examples, rate_of("resnet50_v1.5", "A100", 3411, 512), a100, 1, 8,
                 512, 0.978, false, "Batch 512, 16-bit gradients, buckets of 64 MiB."});
  all.push_back({"MXNet, ResNet-50, 1 -> 16 V100 (DGX-2)", examples, rate_of("resnet50_v1.5", "V100", 1492, 256),
                 options_of(16, "nvswitch-v100", "ib400", 2, 64, true), 1, 16, 256, 0.90, false, "As 3, batch 256."});
  all.push_back({"PyTorch, ResNet-50, 1 -> 8 A100", examples, rate_of("resnet50_v1.5", "A100", 2470, 256),
                 options_of(8, "nvswitch-a100", "ib400", 4, 25, true), 1, 8, 256, 0.84, false,
                 "Batch 256, fp32 gradients. Its eight loaders share one host's processors, which is not modelled."});
  all.push_back({"TensorFlow with XLA, ResNet-50, 1 -> 8 A100", examples, rate_of("resnet50_v1.5", "A100", 2375, 256),
                 a100, 1, 8, 256, 0.92, false, "As 5, 16-bit gradients."});
}

// The base rates are of hosts with eight GPUs and include their communication, about 1 %.
void add_mlperf(std::vector<PublishedCurve>& all) {
  const ScaleOptions h100 = with_half_batch(options_of(8, "nvswitch-h200", "ib3200", 2, 64, false), 20.5);
  const MeasuredRate rate = rate_of("resnet50_v1.5", "H100", 7161, 400);
  all.push_back(
      {"MXNet, ResNet-50, 8 -> 16 A100, batch 408 -> 204", "MLPerf v3.0, Dell",
       rate_of("resnet50_v1.5", "A100", 3575, 408),
       with_half_batch(options_of(8, "nvswitch-a100", "ib400", 2, 64, false), 10.2), 8, 16, 204, 0.94, false,
       "No overlap, as configured; half_batch 10.2: the same time per step as the 20.5 of an H100, at half its "
       "rate; four ports of 100 Gb/s assumed."});
  all.push_back({"MXNet, ResNet-50, 8 -> 16 H100, batch 400 -> 200", "MLPerf v3.1, Dell", rate, h100, 8, 16, 200, 0.89,
                 false, "As 9. The two runs are of different machines."});
  all.push_back({"MXNet, ResNet-50, 8 -> 64 H100, batch 400 -> 50", "MLPerf v3.1, NVIDIA", rate, h100, 8, 64, 50, 0.70,
                 true, "No overlap, as configured; 8 NDR ports; half_batch 20.5 is chosen to match this row."});
  all.push_back({"MXNet, ResNet-50, 8 -> 3584 H100, batch 400 -> 16", "MLPerf v4.0, CoreWeave", rate, h100, 8, 3584, 16,
                 0.39, false, "As 9, with its half_batch."});
}

}  // namespace

const std::vector<PublishedCurve>& published_curves() {
  static const std::vector<PublishedCurve> curves = [] {
    std::vector<PublishedCurve> all;
    add_horovod(all);
    add_one_host(all);
    add_mlperf(all);
    return all;
  }();
  return curves;
}

}  // namespace dtrain::scale
