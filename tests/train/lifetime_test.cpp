// Use after the referenced object's destruction throws Error.
#include "dtrain/core/checked_ref.h"

#include <memory>

#include "dtrain/autograd/prepared_weights.h"
#include "dtrain/layers.h"
#include "dtrain/train/batch_feed.h"
#include "dtrain/train/trainer.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

TEST(Lifetime, OfAContext) {
  auto context = make_cpu_context({.threads = 1});
  ParameterStore store(*context);
  store.add("w", {1}, Init::constant(0));
  Tape tape(*context, Mode::eval);
  BatchFeed feed(*context);
  context.reset();
  expect_error([&] { store.allocate(1); }, Fault::config,
               "a ParameterStore is used after its Context has been destroyed");
  expect_error([&] { tape.context(); }, Fault::config, "a Tape is used after its Context");
  expect_error([&] { feed.put({}); }, Fault::config, "a BatchFeed is used after its Context");
  Tape temporary(*make_cpu_context({.threads = 1}));
  expect_error([&] { temporary.context(); }, Fault::config, "expected one that outlives it");
}

TEST(Lifetime, OfAStore) {
  const auto context = make_cpu_context({.threads = 1});
  auto store = std::make_unique<ParameterStore>(*context);
  const Linear linear(*store, "fc", 2, 3, Init::normal(1));
  const BatchNorm norm(*store, "bn", 3);
  store->allocate(1);
  Optimizer optimizer(*store, {});
  Trainer trainer(*store, optimizer, {});
  PreparedWeights prepared(*store);
  store.reset();
  Tape tape(*context, Mode::eval);
  const Var x = tape.constant(context->zeros({4, 2}));
  expect_error([&] { linear(tape, x); }, Fault::config, "a layer is used after its ParameterStore has been destroyed");
  expect_error([&] { norm.state(); }, Fault::config, "expected a store that outlives the model");
  expect_error([&] { optimizer.step(); }, Fault::config, "an Optimizer is used after its ParameterStore");
  expect_error([&] { trainer.step([](Tape&, int) -> Loss { throw Error("nobody comes here"); }); }, Fault::config,
               "a Trainer is used after its ParameterStore");
  expect_error([&] { prepared.of<int>({}, [] { return std::make_shared<int>(1); }); }, Fault::config,
               "PreparedWeights are used after their ParameterStore has been destroyed");
}

TEST(Lifetime, OfAnOptimizer) {
  const auto context = make_cpu_context({.threads = 1});
  ParameterStore store(*context);
  store.add("w", {1}, Init::constant(0));
  store.allocate(1);
  auto optimizer = std::make_unique<Optimizer>(store, OptimizerOptions{});
  const Trainer trainer(store, *optimizer, {});
  optimizer.reset();
  expect_error([&] { trainer.optimizer(); }, Fault::config, "a Trainer is used after its Optimizer");
}

}  // namespace
}  // namespace dtrain
