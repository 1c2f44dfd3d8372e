// A program outside the tree: a model of its own, trained with the installed library until the loss has fallen.
#include <cstdio>

#include "data/png.h"
#include "libdtrain/dtrain.h"
#include "models/classifier.h"

#if DTRAIN_VERSION_MAJOR == 0 && DTRAIN_VERSION_MINOR < 1
#error "a library of this version was not asked for"
#endif

struct SmallNet {
  dtrain::ConvBnAct stem;
  dtrain::Linear classifier;

  explicit SmallNet(dtrain::ParameterStore& store)
      : stem{{store, "stem", 3, 8, 3, {.conv = {.stride = 2, .padding = 1}}}, {store, "stem_bn", 8}},
        classifier(store, "classifier", 8, 2, dtrain::Init::normal(0.1f)) {}
  dtrain::Var operator()(dtrain::Tape& tape, const dtrain::Var& images) const {
    return classifier(tape, dtrain::global_average_pool(tape, stem(tape, images)));
  }
};

// Noise with more red in class 0 and more blue in class 1.
void draw(uint64_t step, const dtrain::Tensor& images, const dtrain::Tensor& labels) {
  dtrain::RandomStream random(/*seed=*/1, step);
  const int64_t values = images.count() / labels.count();
  for (int64_t row = 0; row < labels.count(); ++row) {
    const int32_t label = labels.data<int32_t>()[row] = static_cast<int32_t>(random.below(2));
    for (int64_t i = 0; i < values; ++i)
      images.data<float>()[row * values + i] = random.uniform(-1, 1) + (i % 3 == 2 * label ? 0.3f : 0.0f);
  }
}

int main() {
  const auto context = dtrain::make_cpu_context();
  dtrain::ParameterStore store(*context);
  const SmallNet model(store);
  store.allocate(/*seed=*/1);
  dtrain::Optimizer optimizer(store, {.weight_decay = 1e-4f});
  dtrain::Trainer trainer(store, optimizer, {.base = 0.1});
  const dtrain::Tensor images = context->empty({32, 16, 16, 3}), labels = context->empty({32}, dtrain::DType::i32);
  float first = 0, last = 0;
  for (uint64_t step = 0; step < 40; ++step) {
    draw(step, images, labels);
    last = trainer
               .step([&](dtrain::Tape& tape, int) {
                 return dtrain::softmax_cross_entropy(tape, model(tape, tape.constant(images)), labels);
               })
               .loss;
    if (step == 0) first = last;
  }
  // The other two libraries link too, and with them what they stand on.
  const std::vector<std::byte> png = dtrain::data::encode_png(dtrain::data::Image(8, 6).view());
  std::printf("loss %.4f -> %.4f; %zu models; a picture of %d px\n", first, last, dtrain::models::classifiers().size(),
              dtrain::data::ImageDecoder().open(png).width);
  return last < first / 4 ? 0 : 1;
}
