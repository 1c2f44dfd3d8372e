// Flag declarations and help text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/cli/vision.h"
#include "apps/scale/options.h"
#include "dtrain/core/error.h"

namespace dtrain::scale {
namespace {

constexpr char kAbout[] =
    "Predicts data-parallel training on many GPUs from layer times on one GPU and a network model: step time, exposed "
    "communication, scaling efficiency, and the optimal checkpoint interval.\n"
    "Step = forward + backward + exposed + update + straggler. Gradient buckets become ready during backward and are "
    "all-reduced one at a time, in order; exposed is the communication time after backward has ended. Straggler: each "
    "rank's compute time is normally distributed with relative standard deviation --jitter, and all wait for the "
    "slowest: jitter * compute * the expected maximum of N standard normal draws, which is the integral of 1 - F(x)^N "
    "over x > 0 minus the integral of F(x)^N over x < 0.\n"
    "All-reduce of S bytes over N GPUs, H hosts of G, latencies ai, ab and bandwidths Bi, Bb within and between hosts: "
    "ring 2(N-1) a + 2(N-1)/N S/min(Bi,Bb); hierarchical 2(G-1) ai + 2(G-1)/G S/Bi + 2(H-1) ab + 2(H-1)/H S/Bb; tree "
    "2(log2(G) ai + log2(H) ab) + 2 S/min(Bi,Bb); --collective_us is added to each.\n"
    "Failures: the job's mean time between failures is M = --gpu_mtbf_hours / N. The fraction of time lost (Daly "
    "2006), with a checkpoint of C seconds after each tau of training and restarts of R seconds: 1 - tau / (M exp(R/M) "
    "(exp((tau+C)/M) - 1)). Its minimum is shown beside Young's sqrt(2CM) and Daly's approximation.\n"
    "Not modelled: input pipelines, slowdown of kernels by concurrent collectives, congestion between jobs.\n"
    "--layers reads the output of --measure: {\"model\", \"device\", \"batch\", \"forward_seconds\", "
    "\"update_seconds\", \"layers\": [{\"name\", \"gradient_bytes\" (fp32), \"backward_seconds\"}, ...]}, in backward "
    "order. --images_per_sec divides a measured step among a model's layers in proportion to their multiply-adds.\n"
    "--measured compares with runs: {\"runs\": [{\"ranks\": 2, \"step_seconds\": 1.52, \"exposed_seconds\": 0.03}, "
    "...]}, with \"batch\", images per rank, if it differs from the batch of the layers. Measure the layers with as "
    "many threads as a rank had.\n"
    "Exit codes: 0 done, 1 usage or invalid input, 6 disk or memory.";

// Ranges of rates, times and sizes that fit a table.
constexpr cli::Range<double> kAmount{0, 1e9}, kRate{1e-6, 1e9};

// Gradient precision by bytes per element.
std::optional<std::string> precision_of_bytes(const std::string& bytes) {
  DT_CHECK(bytes == "4" || bytes == "2", "expected 4 or 2, found '", bytes, "'");
  return bytes == "4" ? "fp32" : "bf16";
}

std::string describe(const std::vector<Preset>& presets) {
  std::string text;
  for (const Preset& preset : presets)
    text += fmt::format("{}{} ({:.4g} GB/s, {:.3g} us: {})", text.empty() ? "" : "; ", preset.name,
                        preset.level.bandwidth / 1e9, preset.level.latency * 1e6, preset.source);
  return text;
}

void declare_device(cli::FlagSet& flags, Options& o) {
  flags.group("The device");
  flags.add("layers", o.layers, "JSON file of layer times");
  flags.add("model", o.model, fmt::format("{}", fmt::join(models::classifier_names(), ", ")));
  flags.add("images_per_sec", o.images_per_sec, "training throughput of one device, instead of --layers", kRate);
  flags.add("batch_size", o.batch_size, "images per device, for --images_per_sec or --measure", cli::kBatch);
  flags.add("update_ms", o.update_ms, "optimiser's part of that step in milliseconds", kAmount);
  flags.add("device_name", o.device_name, "name of the device in the table");
  flags.add("image_size", o.image_size, "side of the images in pixels; 0: the model's default", cli::kImageSize);
  flags.add("num_classes", o.num_classes, "outputs of the model", {1, cli::kClasses.high});
  flags.group("Measuring it");
  flags.add("measure", o.measure,
            "measure the layers of --model on this machine and write their times, instead of predicting; a GPU runs "
            "eager steps, not CUDA graphs");
  flags.add("layers_out", o.layers_out, "output file; default: standard output");
  flags.add_choice("device", o.device, {"cpu", "gpu"}, "device to measure");
  flags.add_choice("precision", o.precision, {"fp32", "bf16", "fp16"}, "type of activations; bf16 and fp16 need a GPU");
  flags
      .add("num_intra_threads", o.threads, "compute threads of a CPU; 0: OMP_NUM_THREADS or one per core",
           cli::kThreads)
      .former_name("threads");
  flags.add("steps", o.steps, "measured steps; times are medians", {1, 1'000'000});
}

void declare_network(cli::FlagSet& flags, Options& o) {
  flags.group("The network");
  flags.add("gpus", o.gpus, "numbers of GPUs to predict");
  flags.add("gpus_per_host", o.gpus_per_host, "GPUs per host", {1, 1 << 20});
  flags.add("inside", o.inside, "links within a host, per GPU: " + describe(presets_inside()));
  flags.add("inside_gbs", o.inside_gbs, "bandwidth within a host in GB/s per GPU and direction; overrides the preset",
            kRate);
  flags.add("inside_us", o.inside_us, "their latency per message in microseconds", kAmount);
  flags.add("between", o.between, "links between hosts, total per host: " + describe(presets_between()));
  flags.add("between_gbs", o.between_gbs,
            "bandwidth between hosts in GB/s per host and direction; overrides the preset", kRate);
  flags.add("between_us", o.between_us, "their latency per message in microseconds", kAmount);
  flags.add("collective_us", o.collective_us, "fixed overhead of a collective in microseconds", kAmount);
  flags.add_choice("all_reduce_algorithm", o.algorithm, algorithm_names(), "auto: the fastest for each message size")
      .former_name("algorithm");
}

}  // namespace

cli::FlagSet declare_flags(Options& o) {
  cli::FlagSet flags("dtrain-scale", "--layers FILE | --images_per_sec R --batch_size B | --measure | --validate",
                     kAbout);
  declare_device(flags, o);
  declare_network(flags, o);
  flags.group("The step");
  const auto [bucket, last_bucket] = o.buckets.declare(flags);
  bucket.former_name("bucket_mib");
  last_bucket.former_name("last_bucket_mib");
  flags
      .add_choice("wire_precision", o.wire_precision, {"fp32", "bf16", "fp16"},
                  "data type of gradients in the all-reduce")
      .former_name("wire_bytes", precision_of_bytes);
  flags.add("overlap", o.overlap, "overlap the all-reduce with backward");
  flags.add("jitter", o.jitter, "relative standard deviation of a rank's compute time; 0.01 is assumed", {0, 1});
  flags.add("global_batch", o.global_batch, "if not 0: also predict strong scaling with this fixed global batch",
            {0, cli::kMostSamplesOfStep});
  flags.add("half_batch", o.half_batch,
            "h: at batch b a device reaches b / (b + h) of its peak throughput; 0: the peak at every batch", kAmount);
  flags.group("Failures");
  flags.add("gpu_mtbf_hours", o.gpu_mtbf_hours,
            "mean time between failures of one GPU, including its share of the host; 50000 is Llama 3's (419 in 54 "
            "days of 16,384 GPUs), Meta's research clusters had 8,000 (7.9 h at 1,024)",
            {1e-3, kAmount.high});
  flags.add("checkpoint_seconds", o.checkpoint_seconds, "seconds that training stalls for a checkpoint",
            {1e-3, kAmount.high});
  flags.add("restart_seconds", o.restart_seconds, "seconds from a failure until training resumes", kAmount);
  flags.group("Output");
  flags.add("plot", o.plot, "SVG file for a plot");
  flags.add("json", o.json, "print the predictions as a final JSON line");
  flags.add("validate", o.validate, "compare predictions with published scaling results and exit");
  flags.add("measured", o.measured, "JSON file of runs to compare with");
  return flags;
}

}  // namespace dtrain::scale
