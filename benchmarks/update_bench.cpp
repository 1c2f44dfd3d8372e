// The update of a model's parameters by each rule: GB/s of the bytes that it must move.
//   update_bench --device gpu --model resnet50
#include <iostream>

#include "benchmarks/devices.h"
#include "libdtrain/train/optimizer.h"
#include "models/catalog.h"

namespace dtrain {
namespace {

struct Rule {
  const char* name;
  UpdateRule rule;
};
constexpr Rule kRules[] = {{"sgd", UpdateRule::sgd},           {"momentum", UpdateRule::momentum},
                           {"nesterov", UpdateRule::nesterov}, {"adamw", UpdateRule::adamw},
                           {"rmsprop", UpdateRule::rmsprop},   {"lars", UpdateRule::lars}};

// Each parameter's gradient is read twice, once for its norm; value and state are read and written, and the copy is
// written; LARS reads the value once more.
size_t bytes_of(const ParameterStore& store, UpdateRule rule, DType dtype) {
  const size_t copy = dtype == DType::f32 ? 0 : size_of(dtype);
  const size_t reread = rule == UpdateRule::lars ? 4 : 0;
  const auto states = static_cast<size_t>(state_arenas(rule));
  return static_cast<size_t>(store.parameter_count()) * (8 + 8 + 8 * states + copy + reread);
}

void measure(benchmark::State& state, Context& context, const std::string& model, DType dtype, UpdateRule rule) {
  ParameterStore store(context);
  models::make_classifier(store, models::classifier_info(model, "imagenet"));
  store.allocate(1, {.dtype = dtype});
  Optimizer optimizer(store, {.update = {.rule = rule}, .weight_decay = 1e-4f});
  context.set_step_state({});
  context.set_scalars({.learning_rate = 0.1f});
  measure_bandwidth(state, context, bytes_of(store, rule, dtype), [&] { optimizer.step(); });
}

void register_all(Context& context, const std::string& model) {
  for (const DType dtype : types_of(context))
    for (const Rule& rule : kRules)
      benchmark::RegisterBenchmark(
          concat(context.device(), "/", dtype, "/update_", rule.name).c_str(),
          [&context, model, dtype, rule](benchmark::State& state) { measure(state, context, model, dtype, rule.rule); })
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
}

int run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  std::string device = "all", model = "resnet50_v1.5";
  CLI::App app("GB/s of the update of a model's parameters; Google Benchmark's flags besides");
  add_device_flag(app, device);
  app.add_option("--model", model, "a model for ImageNet");
  CLI11_PARSE(app, argc, argv);
  const auto contexts = make_contexts(device);
  for (const auto& context : contexts) register_all(*context, model);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  try {
    return dtrain::run(argc, argv);
  } catch (const dtrain::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
