// Concurrent inference of several threads with shared weights.
#include <atomic>
#include <thread>

#include "dtrain/autograd/prepared_weights.h"
#include "dtrain/models/catalog.h"
#include "dtrain/ops/loss.h"
#include "tests/testing.h"

namespace dtrain::models {
namespace {

constexpr int kThreads = 4, kPictures = 3;

// One network and some images for it.
struct Network {
  explicit Network(Context& on)
      : context(on), store(on), model(make_classifier(store, classifier_info("resnet20", "cifar10"), {.classes = 10})) {
    store.allocate(/*seed=*/1);
    for (uint64_t i = 0; i < kPictures; ++i) images.push_back(to_device(on, random_array({2, 32, 32, 3}, i)));
  }

  // With per-thread or shared prepared weights.
  std::vector<float> classify(size_t image) {
    Tape plain(context, Mode::eval), inferring(context, prepared);
    std::vector<float> results;
    for (Tape* tape : {&plain, &inferring}) {
      const Var logits = model.forward(*tape, tape->constant(images[image]));
      const std::vector<float> shares = values_of<float>(context, softmax(context, logits.value));
      results.insert(results.end(), shares.begin(), shares.end());
    }
    return results;
  }

  Context& context;
  ParameterStore store;
  Classifier model;
  std::vector<Tensor> images;
  PreparedWeights prepared{store};
};

TEST(ConcurrentInference, IsBitIdenticalToOneThread) {
  for (const int threads : {1, 2}) {
    const auto context = make_cpu_context({.threads = threads}), another = make_cpu_context({.threads = threads});
    Network alone(*another);
    std::vector<std::vector<float>> expected;
    for (size_t i = 0; i < kPictures; ++i) expected.push_back(alone.classify(i));
    // The context has no cached primitives yet: the threads create them concurrently.
    Network network(*context);
    std::atomic<int> ready = 0, different = 0;
    std::vector<std::thread> users;
    for (int user = 0; user < kThreads; ++user)
      users.emplace_back([&] {
        ++ready;
        while (ready < kThreads) std::this_thread::yield();
        for (size_t i = 0; i < kPictures; ++i) different += network.classify(i) != expected[i];
      });
    for (std::thread& user : users) user.join();
    EXPECT_EQ(different, 0) << "of contexts with " << threads << " threads";
  }
}

}  // namespace
}  // namespace dtrain::models
