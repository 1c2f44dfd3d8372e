// Optimizer update of a model's parameters by each rule: bandwidth of the compulsory traffic.
//   update_bench --device gpu --model resnet50
#include "benchmarks/devices.h"
#include "benchmarks/program.h"
#include "dtrain/models/catalog.h"
#include "dtrain/train/optimizer.h"

namespace dtrain {
namespace {

struct Rule {
  const char* name;
  UpdateRule rule;
};
constexpr Rule kRules[] = {{"sgd", UpdateRule::sgd},           {"momentum", UpdateRule::momentum},
                           {"nesterov", UpdateRule::nesterov}, {"adamw", UpdateRule::adamw},
                           {"rmsprop", UpdateRule::rmsprop},   {"lars", UpdateRule::lars}};

// Reads each gradient twice, once for its norm; reads and writes values and state; writes the low-precision copy. LARS
// reads the values once more.
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
      add_benchmark(concat(context.device(), "/", dtype, "/update_", rule.name),
                    [&context, model, dtype, rule](benchmark::State& state) {
                      measure(state, context, model, dtype, rule.rule);
                    });
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  using namespace dtrain;
  std::string model = "resnet50_v1.5";
  cli::FlagSet flags("update_bench", "[flags]", "Bandwidth of the optimizer update.");
  flags.add("model", model, "name of an ImageNet classifier");
  return run_op_program(flags, argc, argv, [&](Context& context) { register_all(context, model); });
}
