// The engine's side of ops.py and detection_ops.py: runs ops on tensors from a file.
//   parity_ops CASES RESULTS cpu|gpu     both files are safetensors
// The metadata of CASES maps each case to an op and its options, as in "conv2d stride=2,2 groups=4". Its inputs are the
// tensors `<case>.<input>`, the gradient of its output `<case>.dy`; its results `<case>.y`, `<case>.d<input>` and the
// state that the op changed.
#include <cstdio>
#include <functional>
#include <map>
#include <sstream>

#include "dtrain/ops/anchors.h"
#include "dtrain/ops/boxes.h"
#include "dtrain/ops/concat_channels.h"
#include "dtrain/ops/conv_bn_act.h"
#include "dtrain/ops/conv_transpose2d.h"
#include "dtrain/ops/gating.h"
#include "dtrain/ops/group_norm.h"
#include "dtrain/ops/local_response_norm.h"
#include "dtrain/ops/loss.h"
#include "dtrain/ops/masked_losses.h"
#include "dtrain/ops/match_boxes.h"
#include "dtrain/ops/matmul.h"
#include "dtrain/ops/pointwise.h"
#include "dtrain/ops/pool.h"
#include "dtrain/ops/relu6.h"
#include "dtrain/ops/roi_align.h"
#include "dtrain/ops/scalar_loss.h"
#include "dtrain/ops/slice_rows.h"
#include "dtrain/ops/subsample.h"
#include "dtrain/ops/top_k.h"
#include "dtrain/ops/upsample.h"
#include "dtrain/train/optimizer.h"
#include "libdtrain/ops/gather_rows.h"
#include "tests/parity/tensors.h"

namespace dtrain {
namespace {

class Case {
 public:
  Case(Context& c, const SafetensorsFile& file, const std::string& name, const std::string& text, TensorFile& results)
      : context(c), file_(file), name_(name), results_(results) {
    std::istringstream words(text);
    words >> op;
    for (std::string word; words >> word;) {
      const size_t equals = word.find('=');
      options_[word.substr(0, equals)] = word.substr(equals + 1);
    }
    const bool eval = options_.contains("mode") && options_.at("mode") == "eval";
    tape.emplace(context, eval ? Mode::eval : Mode::train);
  }

  std::string word(const std::string& key) const { return options_.contains(key) ? options_.at(key) : ""; }
  float number(const std::string& key, float fallback) const {
    return options_.contains(key) ? std::stof(options_.at(key)) : fallback;
  }
  std::vector<int> integers(const std::string& key) const {
    std::vector<int> values;
    std::istringstream parts(word(key));
    for (std::string part; std::getline(parts, part, ',');) values.push_back(std::stoi(part));
    return values;
  }
  bool has(const std::string& input) const { return file_.find(name_ + "." + input) != nullptr; }
  Tensor tensor(const std::string& input) const { return read_tensor(context, file_, name_ + "." + input); }
  const Var& var(const std::string& input) { return vars_[input] = tape->variable(tensor(input)); }
  void result(const std::string& output, const Tensor& tensor) { results_.add(context, name_ + "." + output, tensor); }

  // Stores y and, if an upstream gradient is given, the gradients of all inputs.
  void finish(const Var& y) {
    result("y", y.value);
    if (!has("dy")) return;
    const Tensor dy = tensor("dy").view(y.shape());
    const Var loss =
        tape->record("functional", context.zeros({1}), {&y}, [y, dy](Tape& t, const Tensor&) { t.pass_grad(y, dy); });
    tape->backward(loss);
    for (const auto& [input, variable] : vars_) result("d" + input, tape->grad(variable));
  }

  Context& context;
  std::string op;
  std::optional<Tape> tape;

 private:
  const SafetensorsFile& file_;
  std::string name_;
  TensorFile& results_;
  std::map<std::string, std::string> options_;
  std::map<std::string, Var> vars_;
};

Conv2dOptions conv_options(const Case& test) {
  Conv2dOptions options;
  const auto stride = test.integers("stride"), padding = test.integers("padding"), dilation = test.integers("dilation");
  if (!stride.empty()) options.stride = {stride.at(0), stride.at(1)};
  if (!dilation.empty()) options.dilation = {dilation.at(0), dilation.at(1)};
  options.padding = static_cast<int>(test.number("pad", 0));
  if (!padding.empty()) options.padding = {padding.at(0), padding.at(1), padding.at(2), padding.at(3)};
  options.groups = static_cast<int>(test.number("groups", 1));
  return options;
}

PoolOptions pool_options(const Case& test) {
  const auto integer = [&](const char* key) { return static_cast<int>(test.number(key, 0)); };
  PoolOptions options{.kernel = integer("kernel"), .stride = integer("stride"), .padding = integer("pad")};
  options.count_padding = test.number("count_padding", 1) != 0;
  return options;
}

void run_conv2d(Case& test) {
  const Var &x = test.var("x"), &w = test.var("w");
  const Var* bias = test.has("b") ? &test.var("b") : nullptr;
  test.finish(conv2d(*test.tape, x, w, bias, conv_options(test)));
}

// batch_norm, or conv_bn_act if there is a `w`.
void run_batch_norm(Case& test) {
  const Var &x = test.var("x"), &gamma = test.var("gamma"), &beta = test.var("beta");
  const Var* residual = test.has("residual") ? &test.var("residual") : nullptr;
  const BatchNormState state{test.tensor("running_mean"), test.tensor("running_var")};
  BatchNormOptions options;
  options.frozen = test.word("mode") == "frozen";
  if (test.has("w")) {
    test.finish(conv_bn_act(*test.tape, x, test.var("w"), conv_options(test), gamma, beta, state, options,
                            Activation::relu, residual));
  } else {
    const Activation activation = test.number("relu", 0) != 0 ? Activation::relu : Activation::none;
    test.finish(batch_norm(*test.tape, x, gamma, beta, state, options, activation, residual));
  }
  test.result("running_mean", state.running_mean);
  test.result("running_var", state.running_var);
}

void run_roi_align(Case& test) {
  RoiAlignOptions options{.height = static_cast<int>(test.number("height", 7)),
                          .width = static_cast<int>(test.number("width", 7)),
                          .sampling_ratio = static_cast<int>(test.number("ratio", 2)),
                          .aligned = test.number("aligned", 1) != 0};
  std::vector<Var> maps;
  for (const int pixels : test.integers("scales")) {
    options.scales.push_back(1 / static_cast<float>(pixels));
    maps.push_back(test.var(concat("map", maps.size())));
  }
  test.finish(roi_align(*test.tape, maps, test.tensor("rois"), test.tensor("images"), test.tensor("levels"), options));
}

void run_conv_transpose2d(Case& test) {
  const Var &x = test.var("x"), &w = test.var("w");
  const Var* bias = test.has("b") ? &test.var("b") : nullptr;
  test.finish(conv_transpose2d(*test.tape, x, w, bias, conv_options(test)));
}

void run_upsample_nearest(Case& test) {
  const auto extent = [&](const char* key) { return static_cast<int64_t>(test.number(key, 1)); };
  test.finish(upsample_nearest(*test.tape, test.var("x"), extent("height"), extent("width")));
}

void run_local_response_norm(Case& test) {
  const LocalResponseNormOptions options{.radius = static_cast<int>(test.number("radius", 5)),
                                         .bias = test.number("bias", 1),
                                         .alpha = test.number("alpha", 1),
                                         .beta = test.number("beta", 0.5f)};
  test.finish(local_response_norm(*test.tape, test.var("x"), options));
}

void run_optimizer(Case& test) {
  ParameterStore store(test.context);
  const Tensor initial = test.tensor("p"), gradients = test.tensor("gradients");
  Parameter& parameter = store.add("p", initial.shape(), Init::constant(0));
  store.allocate(0);
  test.context.copy(initial, parameter.value);
  OptimizerOptions options;
  options.update.rule = static_cast<UpdateRule>(static_cast<int>(test.number("rule", 0)));
  options.update.momentum = test.number("momentum", 0);
  options.weight_decay = test.number("weight_decay", 0);
  Optimizer optimizer(store, options);
  for (int64_t step = 0; step < gradients.dim(0); ++step) {
    test.context.copy(gradients.slice(step, step + 1), parameter.grad);
    test.context.set_scalars({.learning_rate = test.number("lr", 0), .step = static_cast<uint64_t>(step)});
    optimizer.step();
  }
  test.result("p_after", parameter.value);
}

void run_box_iou(Case& test) {
  const Tensor boxes = test.tensor("boxes"), others = test.tensor("others");
  const Tensor iou = test.context.empty({boxes.dim(0), others.dim(0)});
  box_iou(test.context, boxes, others, false, iou);
  test.result("iou", iou);
}

void run_box_coder(Case& test) {
  const Tensor boxes = test.tensor("boxes"), anchors = test.tensor("anchors"), codes = test.tensor("codes");
  const BoxCoder coder{
      .wx = test.number("wx", 1), .wy = test.number("wy", 1), .ww = test.number("ww", 1), .wh = test.number("wh", 1)};
  const Tensor deltas = test.context.empty(boxes.shape());
  encode_boxes(test.context, boxes, anchors, coder, deltas);
  test.result("deltas", deltas);
  const Tensor limits = test.has("limits") ? test.tensor("limits") : Tensor(),
               decoded = test.context.empty(codes.shape());
  decode_boxes(test.context, codes, anchors, limits, coder, decoded);
  test.result("decoded", decoded);
}

void run_match_boxes(Case& test) {
  const Tensor boxes = test.tensor("boxes"), truth = test.tensor("truth"), counts = test.tensor("counts");
  const MatchOptions options{.positive = test.number("positive", 0.7f),
                             .negative = test.number("negative", 0.3f),
                             .keep_best = test.number("keep_best", 0) != 0};
  const Tensor matched = test.context.empty({truth.dim(0), boxes.dim(0)}, DType::i32);
  match_boxes(test.context, boxes, Tensor(), truth, counts, Tensor(), options, matched);
  test.result("matched", matched);
}

// Top-k scores of a row of boxes, and non-maximum suppression.
void run_nms(Case& test) {
  const Tensor scores = test.tensor("scores"), boxes = test.tensor("boxes");
  const auto k = static_cast<int64_t>(test.number("k", 1)), m = static_cast<int64_t>(test.number("m", 1));
  Context& context = test.context;
  const Tensor values = context.empty({1, k}), top = context.empty({1, k}, DType::i32);
  top_k(context, scores, Tensor(), values, top);
  const Tensor sorted = context.empty({1, k, 4}), groups = context.empty({1, k}, DType::i32);
  gather_rows(context, boxes, top, sorted);
  gather_rows(context, test.tensor("groups"), top, groups);
  const Tensor places = context.empty({1, m}, DType::i32), kept = context.empty({1, m}, DType::i32);
  const Tensor counts = context.empty({1}, DType::i32);
  nms(context, sorted, values, groups, {.threshold = test.number("threshold", 0.5f)}, places, counts);
  gather_rows(context, top, places, kept);
  for (const auto& [name, tensor] : {std::pair{"values", values}, {"top", top}, {"counts", counts}, {"kept", kept}})
    test.result(name, tensor);
}

void run_anchors(Case& test) {
  AnchorOptions options{.stride_h = test.number("stride_h", 1),
                        .stride_w = test.number("stride_w", 1),
                        .rounding = AnchorOptions::Rounding::corners};
  for (const int size : test.integers("sizes")) options.sizes.push_back(static_cast<float>(size));
  for (const int ratio : test.integers("quarters")) options.ratios.push_back(static_cast<float>(ratio) / 4);
  const auto map = test.integers("map");
  const std::vector<float> anchors = make_anchors(options, map.at(0), map.at(1));
  const Tensor result = test.context.empty({static_cast<int64_t>(anchors.size()) / 4, 4});
  test.context.upload(anchors.data(), result);
  test.result("anchors", result);
}

const std::map<std::string, std::function<void(Case&)>> kOps = {
    {"conv2d", run_conv2d},
    {"batch_norm", run_batch_norm},
    {"conv_bn_act", run_batch_norm},
    {"max_pool", [](Case& t) { t.finish(max_pool(*t.tape, t.var("x"), pool_options(t))); }},
    {"average_pool", [](Case& t) { t.finish(average_pool(*t.tape, t.var("x"), pool_options(t))); }},
    {"global_average_pool", [](Case& t) { t.finish(global_average_pool(*t.tape, t.var("x"))); }},
    {"relu", [](Case& t) { t.finish(relu(*t.tape, t.var("x"))); }},
    {"add", [](Case& t) { t.finish(add(*t.tape, t.var("a"), t.var("b"))); }},
    {"add_relu", [](Case& t) { t.finish(add_relu(*t.tape, t.var("a"), t.var("b"))); }},
    {"mul", [](Case& t) { t.finish(mul(*t.tape, t.var("a"), t.var("b"))); }},
    {"scale", [](Case& t) { t.finish(scale(*t.tape, t.var("x"), t.number("factor", 1))); }},
    {"sigmoid", [](Case& t) { t.finish(sigmoid(*t.tape, t.var("x"))); }},
    {"silu", [](Case& t) { t.finish(silu(*t.tape, t.var("x"))); }},
    {"relu6", [](Case& t) { t.finish(relu6(*t.tape, t.var("x"))); }},
    {"subsample", [](Case& t) { t.finish(subsample(*t.tape, t.var("x"), 2, 1)); }},
    {"concat_channels",
     [](Case& t) {
       t.finish(concat_channels(*t.tape, {t.var("a"), t.var("b")}));
     }},
    {"slice_rows",
     [](Case& t) {
       const auto row = [&](const char* name) { return static_cast<int64_t>(t.number(name, 0)); };
       t.finish(slice_rows(*t.tape, t.var("x"), row("begin"), row("end")));
     }},
    {"group_norm",
     [](Case& t) {
       const int groups = static_cast<int>(t.number("groups", 1));
       t.finish(group_norm(*t.tape, t.var("x"), t.var("gamma"), t.var("beta"), groups));
     }},
    {"layer_norm", [](Case& t) { t.finish(layer_norm(*t.tape, t.var("x"), t.var("gamma"), t.var("beta"))); }},
    {"mean_squared_error", [](Case& t) { t.finish(mean_squared_error(*t.tape, t.var("x"), t.tensor("target"))); }},
    {"weighted_sum",
     [](Case& t) {
       t.finish(weighted_sum(*t.tape, {t.var("a"), t.var("b")}, {1, -0.375f}));
     }},
    {"linear", [](Case& t) { t.finish(linear(*t.tape, t.var("x"), t.var("w"), &t.var("b"))); }},
    {"cross_entropy",
     [](Case& t) {
       const SoftmaxCrossEntropyOptions options{t.number("smoothing", 0)};
       t.finish(softmax_cross_entropy(*t.tape, t.var("logits"), t.tensor("labels"), options).loss);
     }},
    {"roi_align", run_roi_align},
    {"conv_transpose2d", run_conv_transpose2d},
    {"upsample_nearest", run_upsample_nearest},
    {"sigmoid_cross_entropy",
     [](Case& t) {
       t.finish(sigmoid_cross_entropy(*t.tape, t.var("x"), t.tensor("target"), t.tensor("weights"), {2.5f}));
     }},
    {"smooth_l1",
     [](Case& t) {
       const float beta = t.number("beta", 1);
       t.finish(smooth_l1(*t.tape, t.var("x"), t.tensor("target"), t.tensor("weights"), beta, {2.5f}));
     }},
    {"local_response_norm", run_local_response_norm},
    {"optimizer", run_optimizer},
    {"box_iou", run_box_iou},
    {"box_coder", run_box_coder},
    {"match_boxes", run_match_boxes},
    {"nms", run_nms},
    {"anchors", run_anchors},
};

void run(const std::string& cases, const std::string& path, const std::string& device) {
  const auto context = parity_context(device);
  const SafetensorsFile file(cases);
  TensorFile results;
  for (const auto& [name, text] : file.metadata()) {
    Case test(*context, file, name, text, results);
    DT_CHECK(kOps.contains(test.op), name, ": unknown op ", test.op);
    kOps.at(test.op)(test);
  }
  results.write(path);
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  try {
    DT_CHECK(argc == 4, "usage: parity_ops CASES RESULTS cpu|gpu");
    dtrain::run(argv[1], argv[2], argv[3]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "parity_ops: %s\n", error.what());
    return 1;
  }
}
