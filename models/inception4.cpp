#include "models/inception_parts.h"

namespace dtrain::models {
namespace {

void mixed_3a(Chain& net, const std::string& path) {
  net.join({net.branch(path).max_pool(3, 2, Border::valid), net.branch(path).basic_conv("conv", 96, 3, kHalving)});
}

void mixed_4a(Chain& net, const std::string& path) {
  const auto branch = [&] { return net.branch(path); };
  net.join({branch().basic_conv("branch0.0", 64, 1).basic_conv("branch0.1", 96, 3, kInside),
            branch()
                .basic_conv("branch1.0", 64, 1)
                .basic_conv("branch1.1", 64, {7, 1})
                .basic_conv("branch1.2", 64, {1, 7})
                .basic_conv("branch1.3", 96, 3, kInside)});
}

void mixed_5a(Chain& net, const std::string& path) {
  net.join({net.branch(path).basic_conv("conv", 192, 3, kHalving), net.branch(path).max_pool(3, 2, Border::valid)});
}

void block_a(Chain& net, const std::string& path) {
  const auto branch = [&] { return net.branch(path); };
  net.join({branch().average_pool(3, 1, Border::same).basic_conv("branch3.1", 96, 1),
            branch().basic_conv("branch0", 96, 1),
            branch().basic_conv("branch1.0", 64, 1).basic_conv("branch1.1", 96, 3),
            branch().basic_conv("branch2.0", 64, 1).basic_conv("branch2.1", 96, 3).basic_conv("branch2.2", 96, 3)});
}

void reduction_a(Chain& net, const std::string& path) {
  const auto branch = [&] { return net.branch(path); };
  net.join({branch().max_pool(3, 2, Border::valid), branch().basic_conv("branch0", 384, 3, kHalving),
            branch()
                .basic_conv("branch1.0", 192, 1)
                .basic_conv("branch1.1", 224, 3)
                .basic_conv("branch1.2", 256, 3, kHalving)});
}

void block_b(Chain& net, const std::string& path) {
  const auto branch = [&] { return net.branch(path); };
  net.join({branch().average_pool(3, 1, Border::same).basic_conv("branch3.1", 128, 1),
            branch().basic_conv("branch0", 384, 1),
            branch()
                .basic_conv("branch1.0", 192, 1)
                .basic_conv("branch1.1", 224, {1, 7})
                .basic_conv("branch1.2", 256, {7, 1}),
            branch()
                .basic_conv("branch2.0", 192, 1)
                .basic_conv("branch2.1", 192, {1, 7})
                .basic_conv("branch2.2", 224, {7, 1})
                .basic_conv("branch2.3", 224, {1, 7})
                .basic_conv("branch2.4", 256, {7, 1})});
}

void reduction_b(Chain& net, const std::string& path) {
  const auto branch = [&] { return net.branch(path); };
  net.join({branch().max_pool(3, 2, Border::valid),
            branch().basic_conv("branch0.0", 192, 1).basic_conv("branch0.1", 192, 3, kHalving),
            branch()
                .basic_conv("branch1.0", 256, 1)
                .basic_conv("branch1.1", 256, {1, 7})
                .basic_conv("branch1.2", 320, {7, 1})
                .basic_conv("branch1.3", 320, 3, kHalving)});
}

void block_c(Chain& net, const std::string& path) {
  const auto branch = [&] { return net.branch(path); };
  Chain pool = branch().average_pool(3, 1, Border::same).basic_conv("branch3.1", 256, 1);
  Chain one = branch().basic_conv("branch0", 256, 1);
  Chain three = branch().basic_conv("branch1_0", 384, 1);
  fork(three, "branch1_1", 256, {{1, 3}, {3, 1}});
  Chain twice = branch()
                    .basic_conv("branch2_0", 384, 1)
                    .basic_conv("branch2_1", 448, {1, 3})
                    .basic_conv("branch2_2", 512, {3, 1});
  fork(twice, "branch2_3", 256, {{3, 1}, {1, 3}});
  net.join({pool, one, three, twice});
}

}  // namespace

ForwardFunction inception4(const BuildInputs& in) {
  Chain net(in, inception_defaults());
  int index = 0;
  const auto next = [&index] { return "features." + std::to_string(index++); };
  net.basic_conv(next(), 32, 3, kHalving);
  net.basic_conv(next(), 32, 3, kInside);
  net.basic_conv(next(), 64, 3);
  mixed_3a(net, next());
  mixed_4a(net, next());
  mixed_5a(net, next());
  for (int i = 0; i < 4; ++i) block_a(net, next());
  reduction_a(net, next());
  for (int i = 0; i < 7; ++i) block_b(net, next());
  reduction_b(net, next());
  for (int i = 0; i < 3; ++i) block_c(net, next());
  net.global_average_pool().dropout(0.2f);
  net.linear("last_linear", in.classes, {.activation = Activation::none});
  return forward_of(net.layers());
}

}  // namespace dtrain::models
