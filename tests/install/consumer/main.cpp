// A program outside the tree: a model of its own, trained with the installed library until the loss has fallen.
#include <cstdio>

#include <dtrain/data/png.h>
#include <dtrain/dtrain.h>
#include <dtrain/models/catalog.h>
#include <dtrain/testing/check_op.h>

#if DTRAIN_VERSION_MAJOR == 0 && DTRAIN_VERSION_MINOR < 1
#error "a library of this version was not asked for"
#endif

namespace dt = dtrain;

struct SmallNet {
  dt::ConvBnAct stem;
  dt::Linear classifier;

  explicit SmallNet(dt::ParameterStore& store)
      : stem{{store, "stem", 3, 8, 3, {.conv = {.stride = 2, .padding = 1}}}, {store, "stem_bn", 8}},
        classifier(store, "classifier", 8, 2, dt::Init::normal(0.1f)) {}
  dt::Var operator()(dt::Tape& tape, const dt::Var& images) const {
    return classifier(tape, dt::global_average_pool(tape, stem(tape, images)));
  }
};

// Noise with more red in class 0 and more blue in class 1.
void draw(uint64_t step, const dt::Tensor& images, const dt::Tensor& labels) {
  dt::RandomStream random(/*seed=*/1, step);
  const int64_t values = images.count() / labels.count();
  for (int64_t row = 0; row < labels.count(); ++row) {
    const int32_t label = labels.data<int32_t>()[row] = static_cast<int32_t>(random.below(2));
    for (int64_t i = 0; i < values; ++i)
      images.data<float>()[row * values + i] = random.uniform(-1, 1) + (i % 3 == 2 * label ? 0.3f : 0.0f);
  }
}

// An op of the program's own: y = x^3, on a CPU.
dt::Var cube(dt::Tape& tape, const dt::Var& x) {
  const dt::Tensor y = tape.context().empty(x.shape());
  const float* from = x.value.data<float>();
  for (int64_t i = 0; i < y.count(); ++i) y.data<float>()[i] = from[i] * from[i] * from[i];
  return tape.record("cube", y, {&x}, [x](dt::Tape& t, const dt::Tensor& dy) {
    const auto target = t.grad_target(x);
    if (!target) return;
    const float *values = x.value.data<float>(), *upstream = dy.data<float>();
    float* dx = target->dx.data<float>();
    for (int64_t i = 0; i < dy.count(); ++i)
      dx[i] = (target->add ? dx[i] : 0) + 3 * values[i] * values[i] * upstream[i];
  });
}

void check_cube(dt::Context& context) {
  dt::check_op(context, {.name = "cube",
                         .inputs = {dt::random_array({3, 7}, 1)},
                         .op = [](dt::Tape& t, const std::vector<dt::Var>& v) { return cube(t, v[0]); },
                         .reference =
                             [](const std::vector<dt::Array>& a) {
                               dt::Array y = a[0];
                               for (double& value : y.values) value *= value * value;
                               return y;
                             },
                         .f32_only = true});
}

int main() {
  const auto context = dt::make_cpu_context();
  check_cube(*context);
  dt::ParameterStore store(*context);
  const SmallNet model(store);
  store.allocate(/*seed=*/1);
  dt::Optimizer optimizer(store, {.weight_decay = 1e-4f});
  dt::Trainer trainer(store, optimizer, {.base = 0.1});
  const dt::Tensor images = context->empty({32, 16, 16, 3}), labels = context->empty({32}, dt::DType::i32);
  float first = 0, last = 0;
  for (uint64_t step = 0; step < 40; ++step) {
    draw(step, images, labels);
    last = trainer
               .step([&](dt::Tape& tape, int) {
                 return dt::softmax_cross_entropy(tape, model(tape, tape.constant(images)), labels);
               })
               .loss;
    if (step == 0) first = last;
  }
  // The other two libraries link too, and with them what they stand on.
  const std::vector<std::byte> png = dt::data::encode_png(dt::data::Image(8, 6).view());
  std::printf("loss %.4f -> %.4f; %zu models; a picture of %d px\n", first, last, dt::models::classifiers().size(),
              dt::data::ImageDecoder().open(png).width);
  return last < first / 4 ? 0 : 1;
}
