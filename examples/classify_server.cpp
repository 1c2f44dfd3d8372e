// Multi-threaded image classification with one loaded model: classify_server MODEL WEIGHTS CLASSES [THREADS] < PATHS
// Reads one image path per line and prints a line with the path, the most probable class and its probability, or an
// error. MODEL is a name of `dtrain-classify --help`, WEIGHTS a safetensors file.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <dtrain/data/catalog.h>
#include <dtrain/dtrain.h>
#include <dtrain/models/catalog.h>

namespace dt = dtrain;

// State shared by the threads, immutable after construction: one set of weights without gradients, and a context.
struct Server {
  Server(dt::Context& c, const std::string& name, const std::string& weights, int64_t classes)
      : context(c),
        store(c),
        model(dt::models::make_classifier(store, dt::models::classifier_info(name, "imagenet"), {.classes = classes})) {
    store.allocate(/*seed=*/0, {.gradients = false});
    const dt::WeightReport report = dt::load_weights(store, weights);
    if (!report.complete()) throw dt::Error(dt::Fault::data, weights + " does not fit: " + report.summary());
    pixels.size = static_cast<int>(model.image_size);
    for (int i = 0; i < 3; ++i) {
      normalization.mean[i] = pixels.scale().mean[i];
      normalization.scale[i] = pixels.scale().scale[i];
    }
  }

  dt::Context& context;
  dt::ParameterStore store;
  dt::models::Classifier model;
  dt::data::Pixels pixels{.dataset = "imagenet", .preprocessing = "torchvision"};
  dt::PixelNormalization normalization;
  mutable dt::PreparedWeights prepared{store};  // weights packed for the kernels
  std::mutex lines;                             // guards std::cin and std::cout
};

// Decodes with the thread's `preprocessor` and runs the shared model.
std::string classify(const Server& server, const dt::data::PreprocessorFactory& pixels,
                     dt::data::Preprocessor& preprocessor, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return "cannot be opened";
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const dt::Shape& shape = pixels.shape;
  const dt::Tensor image = server.context.empty({1, shape[0], shape[1], shape[2]}, pixels.dtype);
  preprocessor.run(std::as_bytes(std::span(bytes)), /*boxes=*/{}, /*key=*/{}, image.raw());
  dt::Tape tape(server.context, server.prepared);
  const dt::Tensor normalized = dt::normalize_pixels(server.context, image, server.normalization);
  const dt::Tensor probabilities =
      dt::softmax(server.context, server.model.forward(tape, tape.constant(normalized)).value);
  const auto values = probabilities.span<float>();
  const auto best = std::max_element(values.begin(), values.end());
  return "class " + std::to_string(best - values.begin()) + ", probability " + std::to_string(*best);
}

void work(Server& server) {
  const dt::data::PreprocessorFactory pixels = server.pixels.make(/*training=*/false);
  const std::unique_ptr<dt::data::Preprocessor> preprocessor = pixels();
  for (std::string path;;) {
    {
      const std::lock_guard lock(server.lines);
      if (!std::getline(std::cin, path)) return;
    }
    std::string answer;
    try {
      answer = classify(server, pixels, *preprocessor, path);
    } catch (const dt::Error& error) {
      answer = error.what();
    }
    const std::lock_guard lock(server.lines);
    std::cout << path << ": " << answer << std::endl;
  }
}

int main(int argc, char** argv) try {
  if (argc < 4) return std::fprintf(stderr, "usage: %s MODEL WEIGHTS CLASSES [THREADS] < PATHS\n", argv[0]), 1;
  // One thread per request; requests run in parallel.
  const auto context = dt::make_cpu_context({.threads = 1});
  Server server(*context, argv[1], argv[2], std::atoll(argv[3]));
  std::vector<std::thread> threads;
  for (int i = 0; i < (argc > 4 ? std::atoi(argv[4]) : 4); ++i) threads.emplace_back(work, std::ref(server));
  for (std::thread& thread : threads) thread.join();
} catch (const dt::Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return static_cast<int>(error.fault());
}
