// Loads a model once and classifies on several threads: classify_server MODEL WEIGHTS CLASSES [THREADS] < PATHS
// Reads a path of a JPEG or PNG per line and answers with a line: the path, the most probable class and its
// probability, or what is wrong with the file. MODEL is a name of `dtrain-classify --help`, WEIGHTS a safetensors file.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "data/catalog.h"
#include "libdtrain/dtrain.h"
#include "models/catalog.h"
using namespace dtrain;

// What the threads share does not change: one set of weights, without gradients, and one context.
struct Server {
  Server(Context& c, const std::string& name, const std::string& weights, int64_t classes)
      : context(c),
        store(c),
        model(models::make_classifier(store, models::classifier_info(name, "imagenet"), {.classes = classes})) {
    store.allocate(/*seed=*/0, {.gradients = false});
    const WeightReport report = load_weights(store, weights);
    if (!report.complete()) throw Error(Fault::data, weights + " does not fit: " + report.summary());
    pixels.size = static_cast<int>(model.image_size);
    for (int i = 0; i < 3; ++i) {
      normalization.mean[i] = pixels.scale().mean[i];
      normalization.scale[i] = pixels.scale().scale[i];
    }
  }

  Context& context;
  ParameterStore store;
  models::Classifier model;
  data::Pixels pixels{.dataset = "imagenet", .preprocessing = "torchvision"};
  PixelNormalization normalization;
  mutable PreparedWeights prepared;  // filters as kernels read them
  std::mutex lines;                  // guards std::cin and std::cout
};

// Decodes with the thread's own `decode`, and runs the shared model.
std::string classify(const Server& server, const data::MakePreprocess& pixels, const data::Preprocess& decode,
                     const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return "cannot be opened";
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const Shape& shape = pixels.shape;
  const Tensor image = server.context.empty({1, shape[0], shape[1], shape[2]}, pixels.dtype);
  decode(std::as_bytes(std::span(bytes)), /*boxes=*/{}, /*key=*/{}, image.raw());
  Tape tape(server.context, server.prepared);
  const Tensor normalized = normalize_pixels(server.context, image, server.normalization);
  const Tensor shares = softmax(server.context, server.model.forward(tape, tape.constant(normalized)).value);
  const auto values = shares.span<float>();
  const auto best = std::max_element(values.begin(), values.end());
  return "class " + std::to_string(best - values.begin()) + ", probability " + std::to_string(*best);
}

void work(Server& server) {
  const data::MakePreprocess pixels = server.pixels.make(/*training=*/false);
  const data::Preprocess decode = pixels();
  for (std::string path;;) {
    {
      const std::lock_guard lock(server.lines);
      if (!std::getline(std::cin, path)) return;
    }
    std::string answer;
    try {
      answer = classify(server, pixels, decode, path);
    } catch (const Error& error) {
      answer = error.what();
    }
    const std::lock_guard lock(server.lines);
    std::cout << path << ": " << answer << std::endl;
  }
}

int main(int argc, char** argv) try {
  if (argc < 4) return std::fprintf(stderr, "usage: %s MODEL WEIGHTS CLASSES [THREADS] < PATHS\n", argv[0]), 1;
  // Each request is computed by one thread, so that several of them run side by side.
  const auto context = make_cpu_context({.threads = 1});
  Server server(*context, argv[1], argv[2], std::atoll(argv[3]));
  std::vector<std::thread> threads;
  for (int i = 0; i < (argc > 4 ? std::atoi(argv[4]) : 4); ++i) threads.emplace_back(work, std::ref(server));
  for (std::thread& thread : threads) thread.join();
} catch (const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return static_cast<int>(error.fault());
}
