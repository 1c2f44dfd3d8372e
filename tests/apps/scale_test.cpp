// dtrain-scale: the model against hand-computed cases, its validation, and input errors.
#include <cmath>
#include <numbers>

#include <nlohmann/json.hpp>

#include "apps/scale/report.h"
#include "apps/scale/validation.h"
#include "dtrain/core/rng.h"
#include "tests/apps/program.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::scale {
namespace {

// 1 GB/s inside hosts of four, 0.1 GB/s between them.
Network small_network(Algorithm algorithm, double latency_inside = 0, double latency_between = 0) {
  return {.gpus_per_host = 4,
          .inside = {1e9, latency_inside},
          .between = {1e8, latency_between},
          .collective = 0,
          .algorithm = algorithm};
}

TEST(Network, RingByHand) {
  const Network free = small_network(Algorithm::ring);
  EXPECT_EQ(all_reduce_seconds(free, 1, 1e8), 0);
  EXPECT_DOUBLE_EQ(all_reduce_seconds(free, 4, 1e8), 0.15);  // 2 * 3/4 * 0.1 s
  EXPECT_DOUBLE_EQ(all_reduce_seconds(free, 8, 1e8), 1.75);  // 2 * 7/8 * 1 s: bound by the slow link
  EXPECT_DOUBLE_EQ(all_reduce_seconds(small_network(Algorithm::ring, 1e-3), 4, 1e8), 0.156);  // 6 messages
  // Two of the ring's eight links are between hosts: mean latency (6 * 1 + 2 * 9) / 8 = 3 ms, 14 times.
  EXPECT_DOUBLE_EQ(all_reduce_seconds(small_network(Algorithm::ring, 1e-3, 9e-3), 8, 1e8), 1.75 + 14 * 3e-3);
  Network launched = free;
  launched.collective = 0.5;
  EXPECT_DOUBLE_EQ(all_reduce_seconds(launched, 4, 1e8), 0.65);
  EXPECT_EQ(all_reduce_seconds(launched, 1, 1e8), 0);
}

TEST(Network, HierarchicalAndTreeByHand) {
  // 0.15 s inside, 2 * 2/3 * 1 s between three hosts; 6 and 4 messages.
  EXPECT_DOUBLE_EQ(all_reduce_seconds(small_network(Algorithm::hierarchical, 1e-3, 9e-3), 12, 1e8),
                   0.15 + 4.0 / 3 + 6e-3 + 36e-3);
  EXPECT_DOUBLE_EQ(all_reduce_seconds(small_network(Algorithm::hierarchical), 4, 1e8), 0.15);
  // Depth 2 inside and, over three hosts, 2 between: up and down.
  EXPECT_DOUBLE_EQ(all_reduce_seconds(small_network(Algorithm::tree, 1e-3, 9e-3), 12, 1e8), 2 + 4e-3 + 36e-3);
  EXPECT_DOUBLE_EQ(all_reduce_seconds(small_network(Algorithm::tree), 4, 1e8), 0.2);
}

TEST(Network, TheFastestAlgorithmIsChosen) {
  const Network network = small_network(Algorithm::automatic, 1e-3, 9e-3);
  EXPECT_EQ(choose_algorithm(network, 400, 1), Algorithm::tree);           // latency
  EXPECT_EQ(choose_algorithm(network, 12, 1e9), Algorithm::hierarchical);  // traffic between hosts
  EXPECT_EQ(choose_algorithm(network, 4, 1e9), Algorithm::ring);
  for (const double bytes : {1.0, 1e6, 1e9}) {
    double best = 1e9;
    for (const Algorithm algorithm : {Algorithm::ring, Algorithm::hierarchical, Algorithm::tree})
      best = std::min(best, all_reduce_seconds(small_network(algorithm, 1e-3, 9e-3), 400, bytes));
    EXPECT_DOUBLE_EQ(all_reduce_seconds(network, 400, bytes), best);
  }
  EXPECT_THROW(hosts_of(network, 6), Error);
  EXPECT_EQ(hosts_of(network, 3), 1);
  EXPECT_EQ(hosts_of(network, 12), 3);
}

// Three layers of 40, 40 and 1 MB; backward takes 0.1, 0.2 and 0.3 s, forward 0.3 and the update 0.1: a step of 1 s.
DeviceStep three_layers() { return {"m", "d", 10, 0.3, 0.1, {{"c", 4e7, 0.1}, {"b", 4e7, 0.2}, {"a", 1e6, 0.3}}}; }

TEST(Model, BucketsByHand) {
  const std::vector<LayerTime> layers = three_layers().layers;
  const auto one_each = make_buckets(layers, {});
  ASSERT_EQ(one_each.size(), 3u);
  EXPECT_EQ(one_each[0].bytes, 4e7);
  EXPECT_DOUBLE_EQ(one_each[1].ready, 0.3);
  EXPECT_DOUBLE_EQ(one_each[2].ready, 0.6);
  EXPECT_EQ(one_each[2].bytes, 1e6);
  EXPECT_EQ(make_buckets(layers, {.bytes = 79'999'999, .last_bytes = 1'000'000}).size(), 3u);
  const auto two = make_buckets(layers, {.bytes = 80'000'000, .last_bytes = 1'000'000});
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].bytes, 8e7);
  EXPECT_DOUBLE_EQ(two[0].ready, 0.3);
  // The last bucket takes all layers that fit, or a single layer.
  EXPECT_EQ(make_buckets(layers, {.bytes = 1, .last_bytes = 41'000'000}).back().bytes, 4.1e7);
  EXPECT_EQ(make_buckets(layers, {.bytes = 1'000'000'000, .last_bytes = 1}).back().bytes, 1e6);
  EXPECT_EQ(make_buckets(layers, {.bytes = 1'000'000'000, .last_bytes = 1'000'000'000}).size(), 1u);
}

ScaleOptions small_options() {
  ScaleOptions options;
  options.network = small_network(Algorithm::ring);
  options.jitter = 0;
  return options;
}

// The all-reduces take 0.06, 0.06 and 0.0015 s on four GPUs.
TEST(Model, OverlapWithBackward) {
  const Prediction hidden = predict(three_layers(), small_options(), 4, 10);
  EXPECT_NEAR(hidden.communication, 0.1215, 1e-12);
  EXPECT_NEAR(hidden.exposed, 0.0015, 1e-12);  // the last bucket
  EXPECT_NEAR(hidden.step(), 1.0015, 1e-12);
  EXPECT_NEAR(hidden.efficiency, 1 / 1.0015, 1e-12);
  EXPECT_NEAR(hidden.images_per_second(), 40 / 1.0015, 1e-9);
  ScaleOptions options = small_options();
  options.overlap = false;
  EXPECT_NEAR(predict(three_layers(), options, 4, 10).exposed, 0.1215, 1e-12);  // nothing
  options = small_options();
  options.wire_bytes = 2;
  EXPECT_NEAR(predict(three_layers(), options, 4, 10).exposed, 0.00075, 1e-12);
  // On eight GPUs 0.7 s each: the first starts at 0.1, and the others queue up until 1.5175.
  EXPECT_NEAR(predict(three_layers(), small_options(), 8, 10).exposed, 1.5175 - 0.6, 1e-12);
  // All gradients in the last layer: no overlap.
  DeviceStep late = three_layers();
  late.layers = {{"b", 0, 0.3}, {"a", 4e7, 0.3}};
  EXPECT_NEAR(predict(late, small_options(), 4, 10).exposed, 0.06, 1e-12);
  EXPECT_EQ(predict(three_layers(), small_options(), 1, 10).exposed, 0);
  EXPECT_NEAR(predict(three_layers(), small_options(), 1, 10).efficiency, 1, 1e-12);
}

TEST(Model, SmallerBatchesByHand) {
  ScaleOptions options = small_options();
  options.half_batch = 5;  // (5 + 5) / (10 + 5) of the time, except the update
  const Prediction half = predict(three_layers(), options, 1, 5);
  EXPECT_NEAR(half.compute, 0.9 * 2 / 3 + 0.1, 1e-12);
  EXPECT_NEAR(half.efficiency, 5 / 0.7 / 10, 1e-12);
}

// Tables of order statistics; closed form for two and three draws.
TEST(Model, ExpectedMaximumOfNormalDraws) {
  EXPECT_NEAR(expected_maximum(1), 0, 1e-12);
  EXPECT_NEAR(expected_maximum(2), 1 / std::sqrt(std::numbers::pi), 1e-12);
  EXPECT_NEAR(expected_maximum(3), 1.5 / std::sqrt(std::numbers::pi), 1e-12);
  EXPECT_NEAR(expected_maximum(10), 1.53875, 1e-5);
  EXPECT_NEAR(expected_maximum(100), 2.50759, 1e-5);
  EXPECT_NEAR(expected_maximum(1000), 3.24144, 1e-5);
  ScaleOptions options = small_options();
  options.jitter = 0.1;
  EXPECT_NEAR(predict(three_layers(), options, 2, 10).straggler, 0.1 / std::sqrt(std::numbers::pi), 1e-12);
}

TEST(Checkpointing, YoungAndDalyByHand) {
  const FailureModel model{.gpu_mtbf = 80000, .checkpoint = 50, .restart = 0};
  EXPECT_DOUBLE_EQ(young_interval(model, 8), 1000);                                          // sqrt(2 * 50 * 10000)
  EXPECT_DOUBLE_EQ(daly_interval(model, 8), 1000 * (1 + 0.05 / 3 + 0.0025 / 9) - 50);        // sqrt(C / 2M) = 0.05
  EXPECT_DOUBLE_EQ(daly_interval({.gpu_mtbf = 80, .checkpoint = 50, .restart = 0}, 8), 10);  // C above 2 M
}

TEST(Checkpointing, TheBestIntervalIsAMinimum) {
  for (const double mtbf : {1e3, 1e4, 1e6, 1e9}) {
    const FailureModel model{.gpu_mtbf = mtbf, .checkpoint = 20, .restart = 100};
    const double tau = best_interval(model, 1);
    // At the zero of the derivative.
    EXPECT_NEAR(std::exp((tau + 20) / mtbf) * (1 - tau / mtbf), 1, 1e-6) << mtbf;
    EXPECT_LT(lost_share(model, 1, tau), lost_share(model, 1, 0.9 * tau));
    EXPECT_LT(lost_share(model, 1, tau), lost_share(model, 1, 1.1 * tau));
    EXPECT_NEAR(daly_interval(model, 1) / tau, 1, 0.01);
  }
}

// Monte Carlo simulation of failures.
TEST(Checkpointing, LostShareAsSimulated) {
  const FailureModel model{.gpu_mtbf = 8000, .checkpoint = 30, .restart = 200};
  const double mtbf = model.mtbf(8), tau = 300;
  RandomStream random(7, 0);
  double time = 0;
  auto until_failure = [&] { return -mtbf * std::log(1 - static_cast<double>(random.uniform(0, 1))); };
  constexpr int kIntervals = 200000;
  for (int i = 0; i < kIntervals; ++i) {
    for (double left = until_failure(); left < tau + 30; left = until_failure()) {
      time += left;
      for (double again = until_failure(); again < 200; again = until_failure()) time += again;
      time += 200;
    }
    time += tau + 30;
  }
  EXPECT_NEAR(lost_share(model, 8, tau), 1 - kIntervals * tau / time, 0.002);
  EXPECT_GT(lost_share(model, 8, tau), 0.3);
}

TEST(Layers, DividedByMultiplyAdds) {
  const DeviceStep step =
      derive_layers({.model = "resnet50_v1.5", .images_per_second = 100, .batch = 50, .update_seconds = 0.05});
  EXPECT_NEAR(step.seconds(), 0.5, 1e-12);
  EXPECT_EQ(step.gradient_bytes(), 4.0 * 25557032);
  EXPECT_EQ(step.layers.front().name, "fc");
  EXPECT_EQ(step.layers.back().name, "conv1");
  // 4.089 GMAC forward; backward twice, less the 0.118 of the first layer's input.
  const double forward = 4089184256, stem = 118013952;
  EXPECT_NEAR(step.forward_seconds, 0.45 * forward / (3 * forward - stem), 1e-12);
  EXPECT_NEAR(step.layers.back().backward_seconds, 0.45 * stem / (3 * forward - stem), 1e-12);
  EXPECT_THROW(derive_layers({.model = "lenet", .images_per_second = 100, .batch = 1, .update_seconds = 1}), Error);
}

TEST(Layers, Measured) {
  const DeviceStep step =
      measure_layers({.model = "resnet20", .machine = {.threads = 1}, .batch = 2, .classes = 10, .steps = 3});
  EXPECT_EQ(step.gradient_bytes(), 4.0 * 272474);
  EXPECT_EQ(step.layers.front().name, "fc");
  EXPECT_EQ(step.layers.back().name, "conv1");
  EXPECT_EQ(step.layers.size(), 43u);  // 21 convolutions, with the shortcuts', their batch norms, fc
  EXPECT_GT(step.forward_seconds, 0);
  EXPECT_GT(step.update_seconds, 0);
  for (const LayerTime& layer : step.layers) EXPECT_GE(layer.backward_seconds, 0) << layer.name;
}

// Values in the documentation; the fitted one matches.
TEST(Validation, PublishedCurves) {
  const std::vector<double> predicted = {0.969, 0.761, 0.986, 0.982, 0.986, 0.986, 0.950, 0.942, 0.700, 0.373};
  const auto& curves = published_curves();
  ASSERT_EQ(curves.size(), predicted.size());
  for (size_t i = 0; i < curves.size(); ++i) {
    EXPECT_NEAR(predicted_efficiency(curves[i]), predicted[i], 0.002) << curves[i].name;
    if (curves[i].fitted) {
      EXPECT_NEAR(predicted_efficiency(curves[i]), curves[i].efficiency, 0.002);
    }
  }
  for (const BusBandwidth& point : bus_bandwidths()) EXPECT_NEAR(point.predicted / point.published, 1, 0.2);
}

TEST(Plot, PointCoordinates) {
  const Plot plot{"a < b & c", {}, {1, 2, 4}, "GPUs", {{"panel", 1, {{"curve", {0, 0.5, 1}, 0, true}}}}};
  const std::string svg = to_svg(plot);
  EXPECT_NE(svg.find("a &lt; b &amp; c"), std::string::npos);
  // The panel is 250 high and begins 84 below the top; points of 1, 2 and 4 are equally far apart.
  EXPECT_NE(svg.find("<polyline points=\"100.0,334.0 410.0,209.0 720.0,84.0\""), std::string::npos) << svg;
  EXPECT_NE(svg.find(">100 %<"), std::string::npos);
  EXPECT_NE(svg.find("stroke-dasharray"), std::string::npos);
}

class ScaleProgram : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    write_file((root / name).string(), text);
    return (root / name).string();
  }
  void expect_error(const std::vector<std::string>& arguments, const std::string& part) const {
    const ProgramResult result = run_program("dtrain-scale", arguments);
    EXPECT_EQ(result.code, 1) << part;
    EXPECT_TRUE(result.err.starts_with("error: ")) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "");
  }
  TempDirectory root;
};

TEST_F(ScaleProgram, MeasuresPredictsAndCompares) {
  const std::string layers = (root / "layers.json").string(), plot = (root / "plot.svg").string();
  const ProgramResult measured = run_program(
      "dtrain-scale", {"--measure", "--model=lenet", "--batch_size=4", "--steps=1", "--layers_out=" + layers});
  ASSERT_EQ(measured.code, 0) << measured.err;
  const DeviceStep step = read_layers(layers);
  EXPECT_EQ(step.batch, 4);
  EXPECT_EQ(step.layers.size(), 4u);
  const std::string runs = file("runs.json", R"({"runs": [{"ranks": 2, "step_seconds": 2, "exposed_seconds": 0.5}]})");
  const ProgramResult result =
      run_program("dtrain-scale", {"--layers=" + layers, "--gpus=8,1,16", "--global_batch=64", "--half_batch=2",
                                   "--measured=" + runs, "--plot=" + plot, "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  for (const char* part : {"Weak scaling", "Strong scaling: 64 images", "Checkpoints", "2000.00", "500.00"})
    EXPECT_NE(result.out.find(part), std::string::npos) << part;
  const auto json = nlohmann::json::parse(result.out.substr(result.out.rfind("\n{")));
  ASSERT_EQ(json.at("weak").size(), 3u);
  EXPECT_EQ(json.at("weak")[0].at("gpus"), 1);
  EXPECT_DOUBLE_EQ(json.at("weak")[0].at("efficiency"), 1);
  EXPECT_EQ(json.at("strong")[2].at("batch"), 4);
  EXPECT_TRUE(read_file(plot).starts_with("<svg "));
  EXPECT_EQ(run_program("dtrain-scale", {"--validate"}).code, 0);
  EXPECT_EQ(run_program("dtrain-scale", {"--help"}).code, 0);
}

TEST_F(ScaleProgram, HasTheNamesOfTraining) {
  const std::vector<std::string> rate = {"--images_per_sec=100", "--batch_size=8", "--gpus=8,16"};
  const auto predict = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), rate.begin(), rate.end());
    return run_program("dtrain-scale", arguments);
  };
  const ProgramResult now =
      predict({"--bucket_mb=5", "--last_bucket_mb=0.5", "--wire_precision=bf16", "--all_reduce_algorithm=ring"});
  const ProgramResult formerly =
      predict({"--bucket_mib=5", "--last_bucket_mib=0.5", "--wire_bytes=2", "--algorithm=ring"});
  ASSERT_EQ(now.code, 0) << now.err;
  EXPECT_EQ(now.err, "");
  EXPECT_EQ(formerly.out, now.out);
  EXPECT_EQ(formerly.err,
            "note: --bucket_mib has been renamed: taken as --bucket_mb=5\n"
            "note: --last_bucket_mib has been renamed: taken as --last_bucket_mb=0.5\n"
            "note: --wire_bytes has been renamed: taken as --wire_precision=bf16\n"
            "note: --algorithm has been renamed: taken as --all_reduce_algorithm=ring\n");
  EXPECT_NE(predict({}).out, now.out);
  expect_error({"--wire_bytes=3"}, "--wire_bytes=3: expected 4 or 2, found '3'");
}

TEST_F(ScaleProgram, BadInputsAreNamed) {
  const std::vector<std::string> rate = {"--images_per_sec=100", "--batch_size=8"};
  const auto with = [&](const std::string& flag) { return std::vector<std::string>{rate[0], rate[1], flag}; };
  expect_error({}, "expected --layers, or --images_per_sec");
  expect_error({"--images_per_sec=100"}, "needs --batch_size");
  expect_error({"x"}, "unexpected argument 'x'");
  expect_error(with("--gpus=12"), "12 GPUs do not fill hosts of 8");
  expect_error(with("--gpus=8,x"), "--gpus: ");
  expect_error(with("--gpus="), "--gpus: expected at least one number");
  expect_error(with("--model=resnet51"), "did you mean");
  expect_error(with("--between=carrier"), "no network is called 'carrier'");
  expect_error(with("--global_batch=64"), "needs --half_batch");
  expect_error({rate[0], rate[1], "--global_batch=64", "--half_batch=2"}, "less than an image each");
  expect_error(with("--update_ms=90"), "an update of 90 ms in a step of 80 ms");
  expect_error({"--measure"}, "--measure needs --batch_size");
  expect_error({"--measure", "--batch_size=1", "--precision=bf16"}, "needs --device=gpu");
  expect_error({"--layers=nowhere.json"}, "open nowhere.json: No such file");
  const auto layers = [&](const std::string& text) { return "--layers=" + file("layers.json", text); };
  expect_error({layers("{")}, "layers.json: invalid JSON");
  expect_error({layers("[]")}, "expected an object, found array");
  expect_error({layers("{}")}, "layers.json: model is missing");
  const std::string head = R"({"model": "m", "device": "d", "batch": 1, "forward_seconds": 1, "update_seconds": 1, )";
  expect_error({layers(head + R"("layers": []})")}, "layers: expected an array");
  expect_error({layers(head + R"("layers": [{"name": "a", "gradient_bytes": -1, "backward_seconds": 1}]})")},
               "layers[0].gradient_bytes: expected a number that is not negative, found -1");
  const std::string good = layers(head + R"("layers": [{"name": "a", "gradient_bytes": 1, "backward_seconds": 1}]})");
  expect_error({good, rate[1]}, "--layers has its own");
  const auto runs = [&](const std::string& text) { return "--measured=" + file("runs.json", text); };
  expect_error({good, runs(R"({"runs": [{"ranks": 1.5, "step_seconds": 1, "exposed_seconds": 0}]})")}, "whole number");
  expect_error({good, runs(R"({"runs": [{"ranks": 2, "step_seconds": 0, "exposed_seconds": 0}]})")}, "above 0");
  expect_error({good, runs(R"({"runs": [{"ranks": 12, "step_seconds": 1, "exposed_seconds": 0}]})")}, "do not fill");
}

}  // namespace
}  // namespace dtrain::scale
