#include "models/inception_parts.h"

namespace dtrain::models {
namespace {

// Blocks have torchvision's names and paths.
void mixed_a(Chain& net, const std::string& path, int64_t pooled) {
  const auto branch = [&] { return net.branch(path); };
  net.join({branch().basic_conv("branch1x1", 64, 1),
            branch().basic_conv("branch5x5_1", 48, 1).basic_conv("branch5x5_2", 64, 5),
            branch()
                .basic_conv("branch3x3dbl_1", 64, 1)
                .basic_conv("branch3x3dbl_2", 96, 3)
                .basic_conv("branch3x3dbl_3", 96, 3),
            branch().average_pool(3, 1, Border::same).basic_conv("branch_pool", pooled, 1)});
}

void mixed_b(Chain& net, const std::string& path) {
  const auto branch = [&] { return net.branch(path); };
  net.join({branch().basic_conv("branch3x3", 384, 3, kHalving),
            branch()
                .basic_conv("branch3x3dbl_1", 64, 1)
                .basic_conv("branch3x3dbl_2", 96, 3)
                .basic_conv("branch3x3dbl_3", 96, 3, kHalving),
            branch().max_pool(3, 2, Border::valid)});
}

void mixed_c(Chain& net, const std::string& path, int64_t width) {
  const auto branch = [&] { return net.branch(path); };
  net.join({branch().basic_conv("branch1x1", 192, 1),
            branch()
                .basic_conv("branch7x7_1", width, 1)
                .basic_conv("branch7x7_2", width, {1, 7})
                .basic_conv("branch7x7_3", 192, {7, 1}),
            branch()
                .basic_conv("branch7x7dbl_1", width, 1)
                .basic_conv("branch7x7dbl_2", width, {7, 1})
                .basic_conv("branch7x7dbl_3", width, {1, 7})
                .basic_conv("branch7x7dbl_4", width, {7, 1})
                .basic_conv("branch7x7dbl_5", 192, {1, 7}),
            branch().average_pool(3, 1, Border::same).basic_conv("branch_pool", 192, 1)});
}

void mixed_d(Chain& net, const std::string& path) {
  const auto branch = [&] { return net.branch(path); };
  net.join({branch().basic_conv("branch3x3_1", 192, 1).basic_conv("branch3x3_2", 320, 3, kHalving),
            branch()
                .basic_conv("branch7x7x3_1", 192, 1)
                .basic_conv("branch7x7x3_2", 192, {1, 7})
                .basic_conv("branch7x7x3_3", 192, {7, 1})
                .basic_conv("branch7x7x3_4", 192, 3, kHalving),
            branch().max_pool(3, 2, Border::valid)});
}

void mixed_e(Chain& net, const std::string& path, bool max_pool) {
  const auto branch = [&] { return net.branch(path); };
  Chain pool = max_pool ? branch().max_pool(3, 1, Border::same) : branch().average_pool(3, 1, Border::same);
  Chain one = branch().basic_conv("branch1x1", 320, 1);
  Chain three = branch().basic_conv("branch3x3_1", 384, 1);
  fork(three, "branch3x3_2", 384, {{1, 3}, {3, 1}});
  Chain twice = branch().basic_conv("branch3x3dbl_1", 448, 1).basic_conv("branch3x3dbl_2", 384, 3);
  fork(twice, "branch3x3dbl_3", 384, {{1, 3}, {3, 1}});
  net.join({one, three, twice, pool.basic_conv("branch_pool", 192, 1)});
}

void add_stem(Chain& net) {
  net.basic_conv("Conv2d_1a_3x3", 32, 3, kHalving)
      .basic_conv("Conv2d_2a_3x3", 32, 3, kInside)
      .basic_conv("Conv2d_2b_3x3", 64, 3)
      .max_pool(3, 2, Border::valid)
      .basic_conv("Conv2d_3b_1x1", 80, 1)
      .basic_conv("Conv2d_4a_3x3", 192, 3, kInside)
      .max_pool(3, 2, Border::valid);
}

struct Inception3 {
  Layers lower, upper;
  std::optional<Layers> head;  // attached to the output of `lower`

  Var operator()(Tape& tape, const Var& x, std::vector<Var>* auxiliary) const {
    const Var y = lower(tape, x);
    if (head && auxiliary) auxiliary->push_back((*head)(tape, y));
    return upper(tape, y);
  }
};

Layers auxiliary_head(Chain net, int64_t classes) {
  ConvForm wide = kInside;
  wide.init = Init::truncated_normal(0.01f);
  net.average_pool(5, 3, Border::valid).basic_conv("conv0", 128, 1).basic_conv("conv1", 768, 5, wide);
  net.global_average_pool();
  net.linear("fc", classes, {.activation = Activation::none, .init = Init::truncated_normal(0.001f)});
  return net.layers();
}

}  // namespace

ForwardFunction inception3(const BuildInputs& in) {
  Chain net(in, inception_defaults());
  add_stem(net);
  mixed_a(net, "Mixed_5b", 32);
  mixed_a(net, "Mixed_5c", 64);
  mixed_a(net, "Mixed_5d", 64);
  mixed_b(net, "Mixed_6a");
  mixed_c(net, "Mixed_6b", 128);
  mixed_c(net, "Mixed_6c", 160);
  mixed_c(net, "Mixed_6d", 160);
  mixed_c(net, "Mixed_6e", 192);
  Inception3 model;
  model.lower = net.layers();
  if (in.auxiliary_head) model.head = auxiliary_head(net.branch("AuxLogits"), in.classes);
  Chain upper = net.branch();
  mixed_d(upper, "Mixed_7a");
  mixed_e(upper, "Mixed_7b", false);
  mixed_e(upper, "Mixed_7c", true);
  upper.global_average_pool().linear("fc", in.classes, {.activation = Activation::none});
  model.upper = upper.layers();
  return forward_of(std::move(model));
}

std::vector<Entry> inception_entries() {
  ClassifierInfo info{
      .name = "inception3", .dataset = "imagenet", .image_size = 299, .classes = 1001, .batch_size = 32};
  info.auxiliary_head = true;
  std::vector<Entry> entries{{info, inception3}};
  info.name = "inception4";
  info.auxiliary_head = false;
  entries.push_back({info, inception4});
  return entries;
}

}  // namespace dtrain::models
