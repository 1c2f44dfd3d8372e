// dtrain-serve: HTTP inference server for classifiers and detectors, with weights from a file or the newest checkpoint
// of a training.
#include <filesystem>
#include <iostream>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "apps/cli/command_line.h"
#include "apps/cli/environment.h"
#include "apps/cli/run_main.h"
#include "apps/cli/stop_signals.h"
#include "apps/serve/browser_rules.h"
#include "apps/serve/endpoints.h"
#include "apps/serve/token.h"
#include "dtrain/core/error.h"
#include "dtrain/train/calibration_file.h"

namespace {

using namespace dtrain;

constexpr char kAbout[] =
    "Serves a trained classifier, Mask R-CNN or SSD300 over HTTP: a page for browsers at /, POST "
    "/v1/models/NAME:predict in TensorFlow Serving's form, PUT /predictions/NAME with the bytes of an image, GET "
    "/v1/models/NAME, /healthz, /readyz and /metrics. With --train_dir it serves the newest complete checkpoint and "
    "reloads when newer ones appear; until there is one, predictions are answered with 503. On SIGTERM and SIGINT it "
    "answers all accepted requests and exits.\n"
    "If --token_file or the variable DTRAIN_SERVE_TOKEN sets a token, requests need the header Authorization: Bearer "
    "TOKEN.\n"
    "Exit codes: 0 stopped on request, 1 usage or flags that do not go with the model, 2 images, annotations or a "
    "calibration that cannot be read, 3 weights that are not finite, 5 weights that cannot be read or do not fit, 6 "
    "the port is taken, memory or disk.";

struct Options {
  serve::ServedModelOptions model;
  serve::BatcherOptions batcher;
  std::string device = "auto", address = "127.0.0.1", token_file, hosts, name, compare, images;
  int64_t threads = 0, port = 8501, top = 5, max_batch = 8, max_waiting = 256, workers = 1, body_mb = 32,
          connections = 64, megapixels = 50;
  bool refuse_damaged_images = false;
  double delay_ms = 2, request_seconds = 30, idle_seconds = 5, drain_seconds = 20;

  void declare(cli::FlagSet& flags);
  void check();
  serve::HttpLimits limits() const;
  serve::ServedModelOptions second() const;  // of --compare
};

void Options::declare(cli::FlagSet& flags) {
  model.flags.declare(flags);
  flags.add("train_dir", model.train_dir, "serve the newest checkpoint in it, instead of --weights");
  flags.add("compare", compare, "a second train_dir, or file of weights, to serve under the name `compare`");
  flags.add("poll_seconds", model.poll_seconds, "interval of the check for newer checkpoints", {0.05, 3600});
  flags.group("Detectors (--model=mask_rcnn or ssd300, or a checkpoint of one)");
  flags.add("preset", model.preset, "for mask_rcnn: conventions of weights without a training record");
  flags.add("config_file", model.config_file,
            "for mask_rcnn: text file of KEY=VALUE lines that override the recorded settings");
  flags.add("annotations", model.annotations, "COCO annotations that define the categories of the classes");
  flags.group("Page");
  flags.add("images", images,
            "folder of labelled images for the page: CLASS/NAME.jpg, with class names or numbers, or as listed in "
            "--annotations");
  flags.group("Machine");
  flags.add("device", device, "cpu, gpu, or auto: a GPU if there is one");
  flags.add("num_intra_threads", threads, "compute threads; 0: OMP_NUM_THREADS or one per core", cli::kThreads);
  model.flags.declare_precision(flags);
  flags.group("Server");
  flags.add("address", address,
            "address to listen on; the default is reachable from this host only, 0.0.0.0 from everywhere");
  flags.add("port", port, "port to listen on; 0: any free port", {0, 65535});
  flags.add("name", name, "name of the model in URLs; default: --model, else `default`");
  flags.add("token_file", token_file, "file with the bearer token that requests need");
  flags.add("allowed_hosts", hosts,
            "comma-separated host names that a Host header may have without a token, besides localhost and IP "
            "addresses; .example.org stands for the domain and all its subdomains");
  flags.add("top", top, "number of most probable classes to print", cli::kPositiveCount);
  flags.group("Batches");
  flags.add("max_batch", max_batch, "maximum batch size", {1, 1024});
  flags.add("batch_delay_ms", delay_ms, "maximum time that an image waits for a batch to fill while a worker is idle",
            {0, 10000});
  flags.add("batch_threads", workers, "batches computed concurrently, with shared weights", {1, 64});
  flags.group("Limits");
  flags.add("max_waiting", max_waiting, "maximum number of queued images; more are answered with 503", {1, 1 << 20});
  flags.add("max_body_mb", body_mb, "maximum size of a request body in MiB", {1, 1024});
  flags.add("max_image_megapixels", megapixels,
            "maximum size of an image in megapixels; a request may have four times as many", {1, 1000});
  flags.add(
      "refuse_damaged_images", refuse_damaged_images,
      "answer damaged images, such as truncated ones, with status 400; else the response has the field \"warning\"");
  flags.add("max_connections", connections, "maximum number of connections; more are answered with 503", {1, 900});
  flags.add("request_seconds", request_seconds, "timeout of a request, from its first byte to its response",
            {0.1, 3600});
  flags.add("idle_seconds", idle_seconds, "idle timeout of a connection", {0.1, 3600});
  flags.add("drain_seconds", drain_seconds, "timeout for requests in progress when the server is asked to stop",
            {0.1, 3600});
}

void Options::check() {
  DT_CHECK(model.flags.weights.empty() != model.train_dir.empty(), "expected --weights or --train_dir; see --help");
  DT_CHECK(device == "auto" || device == "cpu" || device == "gpu", "--device=", device, ": expected auto, cpu or gpu");
  if (name.empty()) name = model.flags.model.empty() ? "default" : model.flags.model;
  DT_CHECK(compare.empty() || name != "compare", "--name=compare: this is the name of the model of --compare");
  DT_CHECK(serve::is_model_name(name), "--name=", name, ": expected letters, digits, '.', '_' and '-'");
  model.machine = cli::inference_machine(device, threads);
  model.flags.check_precision(model.machine);
  if (!model.flags.calibration.empty()) load_calibration(model.flags.calibration);
  DT_CHECK(!model.machine.gpu || workers == 1, "--batch_threads=", workers, ": a GPU computes one batch at a time");
  model.max_pixels = megapixels * 1'000'000;
  batcher.max_batch = static_cast<size_t>(max_batch);
  batcher.max_waiting = static_cast<size_t>(max_waiting);
  batcher.max_delay = std::chrono::microseconds(static_cast<int64_t>(delay_ms * 1000));
  batcher.threads = static_cast<int>(workers);
}

serve::HttpLimits Options::limits() const {
  const auto ms = [](double seconds) { return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000)); };
  return {static_cast<size_t>(body_mb) << 20, static_cast<size_t>(connections), ms(request_seconds), ms(idle_seconds),
          ms(drain_seconds)};
}

serve::ServedModelOptions Options::second() const {
  serve::ServedModelOptions options = model;
  const bool folder = std::filesystem::is_directory(compare);
  options.train_dir = folder ? compare : "";
  options.flags.weights = folder ? "" : compare;
  return options;
}

int serve_until_stopped(Options& options, const cli::FlagSet& flags) {
  serve::limit_malloc_arenas();
  const std::string token = serve::read_token(options.token_file, cli::environment());
  serve::Metrics metrics;
  serve::HttpServer server(options.limits(), token, serve::read_host_names(options.hosts),
                           [&](int status, double seconds) { metrics.answered(status, seconds); });
  const int port = server.bind(options.address, static_cast<int>(options.port));
  serve::ServedModel model(options.model, flags, [&](const serve::Session* session) {
    session ? metrics.reloaded(session->version()) : metrics.failed_to_reload();
  });
  std::vector<serve::NamedModel> models{{options.name, &model}};
  std::optional<serve::ServedModel> second;
  if (!options.compare.empty()) {
    second.emplace(options.second(), flags, [](const serve::Session*) {});
    models.push_back({"compare", &*second});
  }
  std::vector<serve::LabelledImage> images;
  if (!options.images.empty())
    images = serve::read_labelled_images(options.images, options.model.annotations, model.session().get());
  options.batcher.computed = [&](size_t count, double seconds) { metrics.computed(count, seconds); };
  serve::MemoryBudget budget(size_t{3} * serve::kLargestImages * static_cast<size_t>(options.model.max_pixels));
  serve::Batcher batcher(options.batcher);
  serve::add_endpoints(server, {models,
                                {static_cast<size_t>(options.top), 0},
                                {options.batcher.max_waiting, options.model.max_pixels, options.refuse_damaged_images},
                                options.limits().body_bytes,
                                cli::available_cores().usable,
                                std::move(images),
                                budget,
                                batcher,
                                metrics});
  std::thread listener([&] { server.run(); });
  std::cout << fmt::format("http://{}:{}/v1/models/{}{}", options.address, port, options.name,
                           model.session() ? "" : ", which has no checkpoint yet")
            << std::endl;
  cli::wait_for_stop_request();
  server.drain();
  listener.join();
  cli::ignore_stop_signals();
  return 0;
}

int run(const std::vector<std::string>& argv) {
  Options options;
  cli::FlagSet flags("dtrain-serve", "--weights F --model M | --train_dir D [flags]", kAbout);
  options.declare(flags);
  if (!cli::read_flags(flags, argv)) return 0;
  options.check();
  cli::catch_stop_signals();
  try {
    return serve_until_stopped(options, flags);
  } catch (const Error&) {
    if (!cli::stop_requested()) throw;  // a stop request may have aborted reading a large file
    return 0;
  }
}

}  // namespace

int main(int argc, char** argv) {
  cli::let_waiting_threads_sleep(argv, cli::Waiting::spin_first);
  return cli::run_main([&] { return run({argv, argv + argc}); });
}
