#include "models/nasnet.h"

#include <algorithm>
#include <cmath>

#include "dtrain/ops/concat_channels.h"
#include "dtrain/ops/pointwise.h"
#include "dtrain/ops/subsample.h"

namespace dtrain::models {
namespace {

using Action = NasNetAction;

struct Choice {
  Action action;
  int kernel;
  size_t input;  // state: 0 and 1 are the cell's inputs, then the sums of the pairs
};

// Cell architectures found by the search (figure 4): two operations for each of five pairs.
constexpr Choice kNormalCell[] = {
    {Action::separable, 5, 0}, {Action::separable, 3, 1}, {Action::separable, 5, 1}, {Action::separable, 3, 1},
    {Action::average, 3, 0},   {Action::none, 1, 1},      {Action::average, 3, 1},   {Action::average, 3, 1},
    {Action::separable, 3, 0}, {Action::none, 1, 0},
};
constexpr Choice kReductionCell[] = {
    {Action::separable, 5, 0}, {Action::separable, 7, 1}, {Action::maximum, 3, 0}, {Action::separable, 7, 1},
    {Action::average, 3, 0},   {Action::separable, 5, 1}, {Action::none, 1, 3},    {Action::average, 3, 2},
    {Action::separable, 3, 2}, {Action::maximum, 3, 0},
};
const PoolOptions kAuxiliaryPool{.kernel = 5, .stride = 3, .padding = 0};
// States that no pair reads; they are concatenated.
const std::vector<size_t> kNormalUnused{1, 2, 3, 4, 5, 6}, kReductionUnused{3, 4, 5, 6};

Init fan_out(int64_t count) { return Init::normal(std::sqrt(2.0f / static_cast<float>(count))); }

}  // namespace

// Builds layers and infers their shapes.
class NasNet::Builder {
 public:
  Builder(ParameterStore& store, Trace& trace, const NasNetOptions& options)
      : store_(store), trace_(trace), options_(options) {}

  ConvBnAct stem();
  std::vector<Step> steps(int64_t classes);
  Linear classifier(const std::string& path, int64_t classes);

 private:
  // Inputs of a cell, of which `previous` may be absent, and its index among all cells.
  struct Site {
    std::string path;
    bool reduction;
    int64_t filters;
    Shape x;
    std::optional<Shape> previous;
    int number, all;
  };

  Conv2d conv(const std::string& path, int64_t out, int kernel, int stride, const Padding& padding) {
    Conv2d made(store_, path, trace_.channels(), out, kernel, {.conv = {.stride = stride, .padding = padding}});
    trace_.pass(made);
    return made;
  }
  BatchNorm norm(const std::string& path) { return {store_, path, trace_.channels(), options_.batch_norm}; }
  ConvBnAct conv_bn(const std::string& path, const std::string& bn, int64_t out, int kernel = 1, int stride = 1,
                    const Padding& padding = 0, Activation activation = Activation::none) {
    const Conv2d made = conv(path, out, kernel, stride, padding);
    return {made, norm(bn), activation};
  }
  Padding same(int kernel, int stride) const { return Padding::same(trace_.shape[1], trace_.shape[2], kernel, stride); }
  Separable separable(const std::string& path, int kernel, int index, int stride, int64_t filters);
  Operation operation(const std::string& path, const Choice& choice, const Site& site);
  Adapter adapter(const Site& site);
  // Leaves the trace at the shape of the cell's output.
  Cell cell(const Site& site);
  AuxiliaryHead auxiliary(const std::string& path, int64_t classes);

  ParameterStore& store_;
  Trace& trace_;
  const NasNetOptions& options_;
};

ConvBnAct NasNet::Builder::stem() {
  if (options_.imagenet) return conv_bn("conv0", "conv0_bn", 32 * options_.stem_multiplier, 3, 2);
  return conv_bn("l1_stem_3x3", "l1_stem_bn", options_.filters * options_.stem_multiplier, 3, 1, same(3, 1));
}

NasNet::Separable NasNet::Builder::separable(const std::string& path, int kernel, int index, int stride,
                                             int64_t filters) {
  const std::string size = concat(kernel, "x", kernel, "_", index), layer = path + ".separable_" + size;
  const int64_t in = trace_.channels();
  const Conv2d::Options options{
      .conv = {.stride = stride, .padding = same(kernel, stride), .groups = static_cast<int>(in)},
      .init = fan_out(int64_t{kernel} * kernel)};
  const Conv2d depthwise(store_, layer + ".depthwise", in, in, kernel, options);
  trace_.pass(depthwise);
  return {depthwise, conv_bn(layer + ".pointwise", path + ".bn_sep_" + size, filters)};
}

// Starts at the trace's shape. Only operations on the cell's inputs are strided.
NasNet::Operation NasNet::Builder::operation(const std::string& path, const Choice& choice, const Site& site) {
  const int stride = site.reduction && choice.input < 2 ? 2 : 1;
  const float depth = static_cast<float>(site.number + 1) / static_cast<float>(site.all);
  Operation made{.action = choice.action, .input = choice.input};
  if (choice.action != Action::none)
    made.drop_path = {.rate = depth * options_.drop_path, .steps = options_.training_steps};
  if (choice.action == Action::separable) {
    made.layers.push_back(separable(path, choice.kernel, 1, stride, site.filters));
    made.layers.push_back(separable(path, choice.kernel, 2, 1, site.filters));
    return made;
  }
  const bool pools = choice.action != Action::none;
  if (pools) {
    made.pool = {choice.kernel, stride, same(choice.kernel, stride), false};
    trace_.pass(made.pool);
  }
  if ((!pools && stride > 1) || trace_.channels() != site.filters)
    made.projection = conv_bn(path + ".1x1", path + ".bn_1", site.filters, 1, pools ? 1 : stride);
  return made;
}

NasNet::Adapter NasNet::Builder::adapter(const Site& site) {
  if (!site.previous) return {};
  trace_.shape = *site.previous;
  if (trace_.shape[2] == site.x[2]) {
    if (trace_.channels() == site.filters) return {};
    return {.projection = conv_bn(site.path + ".prev_1x1", site.path + ".prev_bn", site.filters)};
  }
  DT_CHECK(site.filters % 2 == 0, site.path, ": ", site.filters, " filters, expected an even number");
  const Conv2d even = conv(site.path + ".path1_conv", site.filters / 2, 1, 2, 0);
  const Shape half = trace_.shape;
  trace_.shape = {1, half[1], half[2], (*site.previous)[3]};
  const Conv2d odd = conv(site.path + ".path2_conv", site.filters / 2, 1, 1, 0);
  trace_.shape = {1, half[1], half[2], site.filters};
  return {.halving = Halving{even, odd, norm(site.path + ".final_path_bn")}};
}

NasNet::Cell NasNet::Builder::cell(const Site& site) {
  const Adapter previous = adapter(site);
  const Shape adapted = site.previous ? trace_.shape : site.x;
  trace_.shape = site.x;
  Cell made{previous, conv_bn(site.path + ".1x1", site.path + ".beginning_bn", site.filters), {}, {}, {}};
  std::vector<Shape> states{trace_.shape, adapted};
  const auto& choices = site.reduction ? kReductionCell : kNormalCell;
  for (size_t i = 0; i < std::size(choices); ++i) {
    const std::string pair = concat(site.path, ".comb_iter_", i / 2, i % 2 == 0 ? ".left" : ".right");
    trace_.shape = states[choices[i].input];
    made.operations.push_back(operation(pair, choices[i], site));
    if (i % 2 == 1) states.push_back(trace_.shape);
  }
  made.joined = site.reduction ? kReductionUnused : kNormalUnused;
  if (!site.reduction && adapted[3] != site.filters) {
    const std::string path = site.path + ".cell_output.reduction_1";
    trace_.shape = adapted;
    made.joined_projection = conv_bn(path + ".path_conv", path + ".path_bn", site.filters);
  }
  const Shape& last = states.back();
  trace_.shape = {1, last[1], last[2], site.filters * static_cast<int64_t>(made.joined.size())};
  return made;
}

NasNet::AuxiliaryHead NasNet::Builder::auxiliary(const std::string& path, int64_t classes) {
  const Shape from = trace_.shape;
  trace_.pass(kAuxiliaryPool);
  const ConvBnAct projection = conv_bn(path + ".proj", path + ".aux_bn0", 128, 1, 1, 0, Activation::relu);
  const Size2 all{static_cast<int>(trace_.shape[1]), static_cast<int>(trace_.shape[2])};
  const Conv2d filters(store_, path + ".Conv", trace_.channels(), 768, all, {});
  trace_.pass(filters);
  const ConvBnAct whole{filters, norm(path + ".aux_bn1"), Activation::relu};
  AuxiliaryHead made{projection, whole, classifier(path + ".FC", classes)};
  trace_.shape = from;
  return made;
}

Linear NasNet::Builder::classifier(const std::string& path, int64_t classes) {
  const Linear made(store_, path, trace_.channels(), classes, fan_out(classes));
  trace_.pass(made);
  return made;
}

std::vector<NasNet::Step> NasNet::Builder::steps(int64_t classes) {
  std::vector<Step> made;
  std::vector<Shape> outputs{trace_.shape};
  const int stem_cells = options_.imagenet ? 2 : 0, all = options_.cells + 2 + stem_cells;
  const auto add = [&](const std::string& path, bool reduction, int64_t filters, size_t back) {
    Site site{path, reduction, filters, outputs.back(), {}, static_cast<int>(made.size()), all};
    const size_t previous = outputs.size() > back ? outputs.size() - 1 - back : outputs.size() - 1;
    if (outputs.size() > back) site.previous = outputs[previous];
    made.push_back({cell(site), previous});
    outputs.push_back(trace_.shape);
  };
  for (int i = 0; i < stem_cells; ++i)
    add("cell_stem_" + std::to_string(i), true, i == 0 ? options_.filters / 4 : options_.filters / 2, 1);
  const int reductions[] = {options_.cells / 3, 2 * options_.cells / 3};
  int64_t filters = options_.filters;
  for (int i = 0; i < options_.cells; ++i) {
    const auto* const found = std::ranges::find(reductions, i);
    const bool reduces = found != std::end(reductions);
    if (reduces) add("reduction_cell_" + std::to_string(found - reductions), true, filters *= 2, 1);
    add("cell_" + std::to_string(i), false, filters, reduces && options_.skip_reduction_input ? 2 : 1);
    if (options_.auxiliary_head && i == reductions[1] - 1)
      made.back().auxiliary = auxiliary(concat("aux_", i, ".aux_logits"), classes);
  }
  return made;
}

NasNet::NasNet(ParameterStore& store, Trace& trace, const NasNetOptions& options, int64_t classes)
    : dropout_(options.dropout),
      stem_(Builder(store, trace, options).stem()),
      steps_(Builder(store, trace, options).steps(classes)),
      classifier_(Builder(store, trace, options).classifier("final_layer.FC", classes)) {}

Var NasNet::Operation::operator()(Tape& tape, const Var& x) const {
  Var y = x;
  for (const Separable& layer : layers) y = layer.pointwise(tape, layer.depthwise(tape, relu(tape, y)));
  if (action == NasNetAction::average) y = average_pool(tape, y, pool);
  if (action == NasNetAction::maximum) y = max_pool(tape, y, pool);
  if (projection) y = (*projection)(tape, action == NasNetAction::none ? relu(tape, y) : y);
  return dtrain::drop_path(tape, y, drop_path);
}

Var NasNet::Adapter::operator()(Tape& tape, const Var& x) const {
  if (projection) return (*projection)(tape, relu(tape, x));
  if (!halving) return x;
  const Var y = relu(tape, x);
  const Var odd = halving->odd(tape, subsample(tape, y, 2, 1));
  return halving->bn(tape, concat_channels(tape, {halving->even(tape, y), odd}));
}

Var NasNet::Cell::operator()(Tape& tape, const Var& x, const Var& before) const {
  std::vector<Var> states(2);
  states[1] = previous(tape, before);
  states[0] = beginning(tape, relu(tape, x));
  for (size_t i = 0; i < operations.size(); i += 2) {
    const Operation &left = operations[i], &right = operations[i + 1];
    const Var a = left(tape, states[left.input]), b = right(tape, states[right.input]);
    states.push_back(add(tape, a, b));
  }
  std::vector<Var> parts;
  for (const size_t state : joined)
    parts.push_back(state == 1 && joined_projection ? (*joined_projection)(tape, states[1]) : states[state]);
  return concat_channels(tape, parts);
}

Var NasNet::AuxiliaryHead::operator()(Tape& tape, const Var& x) const {
  const Var y = average_pool(tape, relu(tape, x), kAuxiliaryPool);
  return classifier(tape, flatten(tape, whole(tape, projection(tape, y))));
}

Var NasNet::operator()(Tape& tape, const Var& x, std::vector<Var>* auxiliary) const {
  std::vector<Var> outputs{stem_(tape, x)};
  for (const Step& step : steps_) {
    outputs.push_back(step.cell(tape, outputs.back(), outputs[step.previous]));
    if (step.auxiliary && auxiliary && tape.training()) auxiliary->push_back((*step.auxiliary)(tape, outputs.back()));
  }
  const Var pooled = global_average_pool(tape, relu(tape, outputs.back()));
  return classifier_(tape, dropout(tape, pooled, dropout_));
}

namespace {

Entry entry(const ClassifierInfo& info, const NasNetOptions& options) {
  return {info, [options](const BuildInputs& in) {
            NasNetOptions with = options;
            with.batch_norm.communicator = in.statistics;
            with.auxiliary_head = in.auxiliary_head;
            return forward_of(NasNet(in.store, in.trace, with, in.classes));
          }};
}

}  // namespace

std::vector<Entry> nasnet_entries() {
  const NasNetOptions cifar{.cells = 18,
                            .filters = 32,
                            .stem_multiplier = 3,
                            .imagenet = false,
                            .dropout = 0,
                            .drop_path = 0.4f,
                            .training_steps = 937500,
                            .batch_norm = {.epsilon = 1e-5f, .momentum = 0.9f}};
  const NasNetOptions large{
      .cells = 18, .filters = 168, .stem_multiplier = 3, .skip_reduction_input = true, .drop_path = 0.3f};
  return {
      entry({.name = "nasnet",
             .dataset = "imagenet",
             .image_size = 224,
             .classes = 1001,
             .batch_size = 32,
             .auxiliary_head = true},
            {}),
      entry({.name = "nasnet",
             .dataset = "cifar10",
             .image_size = 32,
             .classes = 11,
             .batch_size = 32,
             .auxiliary_head = true,
             .base_rate = 0.025},
            cifar),
      entry({.name = "nasnetlarge",
             .dataset = "imagenet",
             .image_size = 331,
             .classes = 1001,
             .batch_size = 16,
             .auxiliary_head = true},
            large),
  };
}

}  // namespace dtrain::models
