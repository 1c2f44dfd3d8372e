// Calibrated int8 inference of networks against f32: connections around ops without int8 support, and exclusions.
#include "dtrain/train/calibrator.h"

#include <algorithm>
#include <cmath>

#include "dtrain/autograd/prepared_weights.h"
#include "dtrain/layers.h"
#include "dtrain/ops/concat_channels.h"
#include "dtrain/ops/pointwise.h"
#include "dtrain/ops/relu6.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using Network = std::function<Var(Tape&, const Var&)>;

const Conv2d::Options kWindow{.conv = {.padding = {1, 1, 1, 1}}, .bias = true};
const Conv2d::Options kPoint{.bias = true};

class Calibrated : public testing::Test {
 protected:
  Calibrated() : context_(make_cpu_context({.threads = 2})), store_(*context_) {}

  // The last layer of all networks.
  Linear classifier(int64_t in) { return {store_, "classifier", in, 10, Init::normal(0.3f)}; }
  Tensor images(uint64_t stream) const { return to_device(*context_, random_array({2, 12, 10, 3}, stream, -1, 1)); }

  // Once all layers have been made.
  void calibrate(const Network& network, RangeRule rule = RangeRule::max) {
    store_.allocate(/*seed=*/1);
    Calibrator calibrator(store_);
    for (const uint64_t stream : {1, 2, 3, 4}) {
      Tape tape(*context_, floats_);
      calibrator.observe(tape);
      network(tape, tape.constant(images(stream)));
    }
    layers_ = calibrator.layers(rule);
    bytes_.quantize(layers_of(layers_, store_));
  }
  // By how much of their size the outputs in int8 are off, on images that were not seen before.
  double off_by(const Network& network) {
    double squares = 0, of = 0;
    Tape floats(*context_, floats_), bytes(*context_, bytes_);
    const Var x = floats.constant(images(9));
    const Array expected = to_host(*context_, network(floats, x).value);
    const Array found = to_host(*context_, network(bytes, x).value);
    for (size_t i = 0; i < expected.values.size(); ++i) {
      squares += std::pow(found.values[i] - expected.values[i], 2);
      of += std::pow(expected.values[i], 2);
    }
    return std::sqrt(squares / of);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, layer] : layers_) names.push_back(name.substr(0, name.rfind('.')));
    return names;
  }
  bool gives_bytes(const std::string& layer) const { return layers_.at(layer + ".weight").y.has_value(); }

  std::unique_ptr<Context> context_;
  ParameterStore store_;
  PreparedWeights floats_{store_}, bytes_{store_};
  NamedLayers layers_;
};

using Names = std::vector<std::string>;

// As in Inception: what branches give is joined as floats, of which the next layer makes bytes; and so is what a branch
// reads where it only pools.
TEST_F(Calibrated, BranchesThatAreJoined) {
  const Conv2d stem(store_, "stem", 3, 16, 3, kWindow), left(store_, "left", 16, 8, 1, kPoint),
      before(store_, "before", 16, 6, 1, kPoint), right(store_, "right", 6, 12, 3, kWindow),
      after(store_, "after", 36, 24, 3, kWindow);
  const Linear last = classifier(24);
  const Network network = [&](Tape& tape, const Var& x) {
    const Var y = relu(tape, stem(tape, x));
    const Var pooled = max_pool(tape, y, {.kernel = 3, .stride = 1, .padding = 1});
    const Var joined = concat_channels(
        tape, {relu(tape, left(tape, y)), relu(tape, right(tape, relu(tape, before(tape, y)))), pooled});
    return last(tape, global_average_pool(tape, relu(tape, after(tape, joined))));
  };
  calibrate(network);
  EXPECT_EQ(names(), (Names{"after", "before", "classifier", "left", "right", "stem"}));
  EXPECT_FALSE(gives_bytes("stem"));    // the pool of it is joined
  EXPECT_FALSE(gives_bytes("before"));  // six channels are no whole quads
  for (const char* layer : {"left", "right", "after", "classifier"}) EXPECT_FALSE(gives_bytes(layer)) << layer;
  EXPECT_EQ(layers_.at("after.weight").x.zero, 0);
  EXPECT_LT(off_by(network), 0.015);
}

// As in DenseNet: an image is joined with what is made of it, and normalised.
TEST_F(Calibrated, ImagesThatGrow) {
  const Conv2d stem(store_, "stem", 3, 16, 3, kWindow), first(store_, "first", 16, 12, 3, kWindow),
      second(store_, "second", 28, 12, 3, kWindow);
  const BatchNorm norm(store_, "norm", 16), wider(store_, "wider", 28);
  const Linear last = classifier(40);
  const Network network = [&](Tape& tape, const Var& x) {
    Var y = stem(tape, x);
    y = concat_channels(tape, {y, first(tape, norm(tape, y, Activation::relu))});
    y = concat_channels(tape, {y, second(tape, wider(tape, y, Activation::relu))});
    return last(tape, global_average_pool(tape, y));
  };
  calibrate(network, RangeRule::squared_error);
  EXPECT_EQ(names(), (Names{"classifier", "first", "second", "stem"}));
  for (const std::string& layer : names()) EXPECT_FALSE(gives_bytes(layer)) << layer;
  EXPECT_LT(off_by(network), 0.015);
}

// As in MobileNet: depthwise convolutions stay in floats, and so does all that they read and give.
TEST_F(Calibrated, DepthwiseConvolutions) {
  const Conv2d::Options depthwise{.conv = {.padding = {1, 1, 1, 1}, .groups = 24}, .init = Init::normal(0.4f)};
  const ConvBnAct stem{{store_, "stem", 3, 8, 3, kWindow}, {store_, "norm0", 8}, Activation::relu},
      wide{{store_, "wide", 8, 24, 1, {}}, {store_, "norm1", 24}, Activation::none},
      each{{store_, "each", 24, 24, 3, depthwise}, {store_, "norm2", 24}, Activation::none},
      narrow{{store_, "narrow", 24, 8, 1, {}}, {store_, "norm3", 8}, Activation::none};
  const Linear last = classifier(8);
  const Network network = [&](Tape& tape, const Var& x) {
    const Var y = stem(tape, x);
    const Var deep = relu6(tape, each(tape, relu6(tape, wide(tape, y))));
    return last(tape, global_average_pool(tape, narrow(tape, deep, &y)));
  };
  calibrate(network);
  EXPECT_EQ(names(), (Names{"classifier", "narrow", "stem", "wide"}));
  EXPECT_TRUE(gives_bytes("stem"));  // to `wide`, and to `narrow` as its residual
  EXPECT_TRUE(layers_.at("narrow.weight").residual);
  EXPECT_FALSE(gives_bytes("wide"));
  EXPECT_LT(off_by(network), 0.015);
}

// One range would have to do for all applications.
TEST_F(Calibrated, WeightsOfTwoApplicationsStayFloats) {
  const Conv2d stem(store_, "stem", 3, 8, 3, kWindow), twice(store_, "twice", 8, 8, 3, kWindow),
      after(store_, "after", 8, 8, 1, kPoint);
  const Linear last = classifier(8);
  const Network network = [&](Tape& tape, const Var& x) {
    const Var once = relu(tape, twice(tape, relu(tape, stem(tape, x))));
    return last(tape, global_average_pool(tape, relu(tape, after(tape, relu(tape, twice(tape, once))))));
  };
  calibrate(network);
  EXPECT_EQ(names(), (Names{"after", "classifier", "stem"}));
  EXPECT_FALSE(gives_bytes("stem"));
  EXPECT_LT(off_by(network), 0.015);
}

TEST_F(Calibrated, BytesPassThroughPoolsAndReshapes) {
  const Conv2d stem(store_, "stem", 3, 16, 3, kWindow), after(store_, "after", 16, 8, 3, kWindow);
  const Linear hidden(store_, "hidden", 240, 32, Init::normal(0.1f), 8), last = classifier(32);
  const Network network = [&](Tape& tape, const Var& x) {
    const Var y = relu(tape, after(tape, max_pool(tape, relu(tape, stem(tape, x)), kResNetPool)));
    return last(tape, relu(tape, hidden(tape, flatten(tape, y))));
  };
  calibrate(network, RangeRule::percentile);
  for (const char* layer : {"stem", "after", "hidden"}) EXPECT_TRUE(gives_bytes(layer)) << layer;
  EXPECT_LT(off_by(network), 0.015);
}

// An image that no op has made may lie where an earlier one has been.
TEST_F(Calibrated, ImagesFromOutsideHaveRangesOfTheirOwn) {
  const Conv2d small(store_, "small", 3, 8, 3, kWindow), large(store_, "large", 3, 8, 3, kWindow);
  const Linear last = classifier(8);
  const Network network = [&](Tape& tape, const Var& x) {
    const Tensor like = images(7);
    const auto drawn = [&](float factor) {
      const Tensor copy = context_->empty(like.shape());
      std::ranges::transform(like.span<float>(), copy.data<float>(), [&](float value) { return factor * value; });
      return copy;
    };
    const auto pooled = [&](const Conv2d& conv, float factor) {
      return global_average_pool(tape, relu(tape, conv(tape, tape.constant(drawn(factor)))));
    };
    const Var one = pooled(small, 1), other = pooled(large, 50);
    return last(tape, add(tape, add(tape, one, other), global_average_pool(tape, small(tape, x))));
  };
  store_.allocate(1);
  Calibrator calibrator(store_);
  Tape tape(*context_, floats_);
  calibrator.observe(tape);
  network(tape, tape.constant(images(1)));
  const NamedLayers layers = calibrator.layers(RangeRule::max);
  EXPECT_GT(layers.at("large.weight").x.scale, 0.3f);
}

TEST_F(Calibrated, FiltersThatAreNoParametersStayFloats) {
  const Tensor filters = to_device(*context_, random_array({8, 3, 3, 3}, 5, -1, 1));
  const Linear last = classifier(8);
  const Network network = [&](Tape& tape, const Var& x) {
    return last(tape, global_average_pool(tape, conv2d(tape, x, tape.constant(filters), nullptr, {})));
  };
  calibrate(network);
  EXPECT_EQ(names(), Names{"classifier"});
  EXPECT_LT(off_by(network), 0.015);
}

TEST_F(Calibrated, SaysWhatCannotBeCalibrated) {
  const BatchNorm norm(store_, "norm", 3);
  store_.allocate(1);
  Calibrator calibrator(store_);
  expect_error([&] { calibrator.layers(RangeRule::max); }, Fault::config, "no forward pass");
  const auto observe = [&](const Network& network) {
    Tape tape(*context_, floats_);
    calibrator.observe(tape);
    network(tape, tape.constant(images(1)));
  };
  observe([&](Tape& tape, const Var& x) { return norm(tape, x); });
  expect_error([&] { calibrator.layers(RangeRule::max); }, Fault::config, "no layer that int8 supports");
  expect_error([&] { observe([&](Tape& tape, const Var& x) { return relu(tape, x); }); }, Fault::config,
               "relu is op 0 of this forward pass, but was not so in the first");
}

}  // namespace
}  // namespace dtrain
