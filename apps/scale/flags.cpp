// The declarations of the flags, and what the help says.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/cli/vision.h"
#include "apps/scale/options.h"
#include "libdtrain/core/error.h"

namespace dtrain::scale {
namespace {

constexpr char kAbout[] =
    "Predicts the training step on many GPUs from the times of the layers on one and a model of the network: step "
    "time, exposed communication, efficiency, and the interval of checkpoints that loses least.\n"
    "Step = forward + backward + exposed + update + straggler. Buckets of gradients become ready as backward goes "
    "through the layers, and are reduced one at a time, in order; exposed is what is left when backward has ended. "
    "Straggler: each rank's computing time is drawn from a normal distribution with a deviation of --jitter, and all "
    "wait for the slowest: jitter * compute * the mean of the largest of N standard normal draws, which is the "
    "integral of 1 - F(x)^N over x > 0 less that of F(x)^N over x < 0.\n"
    "All-reduce of S bytes over N GPUs, H hosts of G, latencies ai, ab and bandwidths Bi, Bb inside and between: ring "
    "2(N-1) a + 2(N-1)/N S/min(Bi,Bb); hierarchical 2(G-1) ai + 2(G-1)/G S/Bi + 2(H-1) ab + 2(H-1)/H S/Bb; tree "
    "2(log2(G) ai + log2(H) ab) + 2 S/min(Bi,Bb); --collective_us comes on top of each.\n"
    "Failures: each GPU fails once in --gpu_mtbf_hours, so M = that / N for the job. The share that is lost, by Daly "
    "(2006), with a checkpoint of C seconds after each tau of training and restarts of R: 1 - tau / (M exp(R/M) "
    "(exp((tau+C)/M) - 1)). Its minimum stands beside Young's sqrt(2CM) and Daly's approximation of it.\n"
    "What is not modelled: input pipelines, GPUs slowed down by the collectives beside them, congestion between jobs.\n"
    "--layers reads what --measure writes: {\"model\", \"device\", \"batch\", \"forward_seconds\", \"update_seconds\", "
    "\"layers\": [{\"name\", \"gradient_bytes\" (fp32), \"backward_seconds\"}, ...]}, in the order of backward. "
    "--images_per_sec divides a measured step among the layers of a model by their multiply-adds.\n"
    "--measured compares with runs: {\"runs\": [{\"ranks\": 2, \"step_seconds\": 1.52, \"exposed_seconds\": 0.03}, "
    "...]}, with \"batch\", images per rank, where it is not that of the layers. The layers are to be measured with as "
    "many threads as a rank had.\n"
    "Exit codes: 0 done, 1 usage or an input that is not as described, 6 disk or memory.";

// Rates, times and sizes that a table can show.
constexpr cli::Range<double> kAmount{0, 1e9}, kRate{1e-6, 1e9};

// The precision of gradients of so many bytes.
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
  flags.add("images_per_sec", o.images_per_sec, "training rate of one device, in place of --layers", kRate);
  flags.add("batch_size", o.batch_size, "images per device of that rate, or to measure with", cli::kBatch);
  flags.add("update_ms", o.update_ms, "milliseconds of that step that the optimiser takes", kAmount);
  flags.add("device_name", o.device_name, "its name in the table");
  flags.add("image_size", o.image_size, "side in pixels; 0: the model's own", cli::kImageSize);
  flags.add("num_classes", o.num_classes, "outputs of the model", {1, cli::kClasses.high});
  flags.group("Measuring it");
  flags.add(
      "measure", o.measure,
      "measure the layers of --model on this machine, and write them instead of predicting; a GPU runs the step op "
      "by op, not as a graph");
  flags.add("layers_out", o.layers_out, "file to write; standard output if empty");
  flags.add_choice("device", o.device, {"cpu", "gpu"}, "what to measure");
  flags.add_choice("precision", o.precision, {"fp32", "bf16", "fp16"}, "type of activations; bf16 and fp16 need a GPU");
  flags
      .add("num_intra_threads", o.threads, "compute threads of a CPU; 0: OMP_NUM_THREADS or one per core",
           cli::kThreads)
      .former_name("threads");
  flags.add("steps", o.steps, "measured steps, of which the medians are taken", {1, 1'000'000});
}

void declare_network(cli::FlagSet& flags, Options& o) {
  flags.group("The network");
  flags.add("gpus", o.gpus, "numbers of GPUs to predict");
  flags.add("gpus_per_host", o.gpus_per_host, "GPUs that share a host's links", {1, 1 << 20});
  flags.add("inside", o.inside, "links in a host, per GPU: " + describe(presets_inside()));
  flags.add("inside_gbs", o.inside_gbs, "their bandwidth in GB/s per GPU and direction, in place of the preset's",
            kRate);
  flags.add("inside_us", o.inside_us, "their latency per message in microseconds", kAmount);
  flags.add("between", o.between, "links of a host, all together: " + describe(presets_between()));
  flags.add("between_gbs", o.between_gbs, "their bandwidth in GB/s per host and direction", kRate);
  flags.add("between_us", o.between_us, "their latency per message in microseconds", kAmount);
  flags.add("collective_us", o.collective_us, "microseconds that a collective takes at least", kAmount);
  flags.add_choice("all_reduce_algorithm", o.algorithm, algorithm_names(), "auto: the fastest for each size")
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
                  "type in which gradients are sent between GPUs")
      .former_name("wire_bytes", precision_of_bytes);
  flags.add("overlap", o.overlap, "reduce during backward");
  flags.add("jitter", o.jitter, "standard deviation of a rank's computing time, as a share of it; 0.01 is assumed",
            {0, 1});
  flags.add("global_batch", o.global_batch,
            "if not 0, also predict with this fixed batch of all GPUs together (strong "
            "scaling)",
            {0, cli::kMostSamplesOfStep});
  flags.add("half_batch", o.half_batch,
            "h: at batch b a device reaches b / (b + h) of its largest rate; 0: always all of it", kAmount);
  flags.group("Failures");
  flags.add("gpu_mtbf_hours", o.gpu_mtbf_hours,
            "mean time between failures of one GPU with its share of the host; 50000 is Llama 3's (419 in 54 days of "
            "16,384 GPUs), Meta's research clusters had 8,000 (7.9 h at 1,024)",
            {1e-3, kAmount.high});
  flags.add("checkpoint_seconds", o.checkpoint_seconds, "seconds for which a checkpoint holds up training",
            {1e-3, kAmount.high});
  flags.add("restart_seconds", o.restart_seconds, "seconds from a failure until training goes on", kAmount);
  flags.group("Output");
  flags.add("plot", o.plot, "SVG file to write");
  flags.add("json", o.json, "end with a line of JSON that has the predictions");
  flags.add("validate", o.validate, "compare with published curves, each with its own assumptions, and end");
  flags.add("measured", o.measured, "JSON file of runs to compare with");
  return flags;
}

}  // namespace dtrain::scale
