#include "models/googlenet.h"

#include "models/chain.h"

namespace dtrain::models {
namespace {

// Channels of an inception block: 1x1; 1x1 before 3x3; 1x1 before 5x5; 1x1 after the pool.
struct InceptionForm {
  const char* path;
  int64_t one, before_three, three, before_five, five, pooled;
};

constexpr InceptionForm kBlocks3[] = {{"inception3a", 64, 96, 128, 16, 32, 32},
                                      {"inception3b", 128, 128, 192, 32, 96, 64}};
constexpr InceptionForm kBlocks4[] = {{"inception4a", 192, 96, 208, 16, 48, 64},
                                      {"inception4b", 160, 112, 224, 24, 64, 64},
                                      {"inception4c", 128, 128, 256, 24, 64, 64},
                                      {"inception4d", 112, 144, 288, 32, 64, 64},
                                      {"inception4e", 256, 160, 320, 32, 128, 128}};
constexpr InceptionForm kBlocks5[] = {{"inception5a", 256, 160, 320, 32, 128, 128},
                                      {"inception5b", 384, 192, 384, 48, 128, 128}};

void add_block(Chain& net, const InceptionForm& form) {
  const auto branch = [&] { return net.branch(form.path); };
  net.join({branch().conv("branch1.conv", form.one, 1),
            branch().conv("branch2.0.conv", form.before_three, 1).conv("branch2.1.conv", form.three, 3),
            branch().conv("branch3.0.conv", form.before_five, 1).conv("branch3.1.conv", form.five, 5),
            branch().max_pool(3, 1, Border::same).conv("branch4.1.conv", form.pooled, 1)});
}

ForwardFunction googlenet(const BuildInputs& in) {
  Chain net(in);
  net.conv("conv1.conv", 64, 7, {.stride = 2}).max_pool(3, 2, Border::same);
  net.conv("conv2.conv", 64, 1).conv("conv3.conv", 192, 3).max_pool(3, 2, Border::same);
  for (const InceptionForm& form : kBlocks3) add_block(net, form);
  net.max_pool(3, 2, Border::same);
  for (const InceptionForm& form : kBlocks4) add_block(net, form);
  net.max_pool(3, 2, Border::same);
  for (const InceptionForm& form : kBlocks5) add_block(net, form);
  net.global_average_pool().linear("fc", in.classes, {.activation = Activation::none});
  return forward_of(net.layers());
}

}  // namespace

std::vector<Entry> googlenet_entries() {
  return {
      {{.name = "googlenet", .dataset = "imagenet", .image_size = 224, .classes = 1001, .batch_size = 32}, googlenet}};
}

}  // namespace dtrain::models
