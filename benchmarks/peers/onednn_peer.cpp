// Times the convolutions of ResNet-50 at batch 16 with oneDNN 2.6 or 3, over NHWC images and filters in oneDNN's
// blocked layout. Prints a line of JSON: median milliseconds by shape, type and pass.
//   onednn_peer [ROUNDS]        threads by OMP_NUM_THREADS
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dnnl.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

using dnnl::memory;
using Tag = memory::format_tag;

constexpr int64_t kBatch = 16;

struct Layer {
  int64_t size, c, k, kernel, stride;
};
constexpr Layer kLayers[] = {
    {224, 3, 64, 7, 2},   {56, 64, 64, 1, 1},    {56, 64, 256, 1, 1},    {56, 256, 64, 1, 1},   {56, 256, 128, 1, 1},
    {56, 128, 128, 3, 2}, {28, 128, 512, 1, 1},  {56, 256, 512, 1, 2},   {28, 512, 128, 1, 1},  {28, 512, 256, 1, 1},
    {28, 256, 256, 3, 2}, {14, 256, 1024, 1, 1}, {28, 512, 1024, 1, 2},  {14, 1024, 256, 1, 1}, {14, 1024, 512, 1, 1},
    {14, 512, 512, 3, 2}, {7, 512, 2048, 1, 1},  {14, 1024, 2048, 1, 2}, {7, 2048, 512, 1, 1},  {7, 512, 512, 3, 1},
};

// Convolution parameters, common to both versions of the API.
struct Problem {
  memory::desc x, w, dw, y;
  memory::dims strides, pads;
};

Problem problem_of(const Layer& l, memory::data_type type) {
  const int64_t pad = l.kernel / 2, out = (l.size + 2 * pad - l.kernel) / l.stride + 1;
  const memory::dims filters = {l.k, l.c, l.kernel, l.kernel};
  return {memory::desc({kBatch, l.c, l.size, l.size}, type, Tag::nhwc),
          memory::desc(filters, type, Tag::any),
          memory::desc(filters, memory::data_type::f32, Tag::any),
          memory::desc({kBatch, l.k, out, out}, type, Tag::nhwc),
          {l.stride, l.stride},
          {pad, pad}};
}

using Forward = dnnl::convolution_forward;
using Dgrad = dnnl::convolution_backward_data;
using Wgrad = dnnl::convolution_backward_weights;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;
constexpr auto kTraining = dnnl::prop_kind::forward_training;

#if DNNL_VERSION_MAJOR >= 3
Forward::primitive_desc forward_of(const dnnl::engine& e, const Problem& p, const memory::desc& w) {
  return {e, kTraining, kDirect, p.x, w, p.y, p.strides, p.pads, p.pads};
}
Dgrad::primitive_desc dgrad_of(const dnnl::engine& e, const Problem& p) {
  return {e, kDirect, p.x, p.w, p.y, p.strides, p.pads, p.pads, forward_of(e, p, p.w)};
}
Wgrad::primitive_desc wgrad_of(const dnnl::engine& e, const Problem& p) {
  return {e, kDirect, p.x, p.dw, p.y, p.strides, p.pads, p.pads, forward_of(e, p, p.w)};
}
#else
Forward::primitive_desc forward_of(const dnnl::engine& e, const Problem& p, const memory::desc& w) {
  return {{kTraining, kDirect, p.x, w, p.y, p.strides, p.pads, p.pads}, e};
}
Dgrad::primitive_desc dgrad_of(const dnnl::engine& e, const Problem& p) {
  return {{kDirect, p.x, p.w, p.y, p.strides, p.pads, p.pads}, e, forward_of(e, p, p.w)};
}
Wgrad::primitive_desc wgrad_of(const dnnl::engine& e, const Problem& p) {
  return {{kDirect, p.x, p.dw, p.y, p.strides, p.pads, p.pads}, e, forward_of(e, p, p.w)};
}
#endif

struct Argument {
  int name;
  memory::desc desc;
};

double milliseconds(const dnnl::engine& engine, const dnnl::primitive& primitive,
                    const std::vector<Argument>& arguments, int rounds) {
  dnnl::stream stream(engine);
  std::unordered_map<int, memory> bound;
  for (const Argument& argument : arguments) {
    memory own(argument.desc, engine);
    // Bytes of 0x3c make small numbers in f32 and bf16.
    std::fill_n(static_cast<char*>(own.get_data_handle()), argument.desc.get_size(), '\x3c');
    bound.emplace(argument.name, own);
  }
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    primitive.execute(stream, bound);
    stream.wait();
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[static_cast<size_t>(rounds / 2)];
}

void print(const Layer& l, const char* type, const char* pass, double ms, bool first) {
  std::printf("%s\"%lld %lld->%lld k%lld s%lld %s %s\": %.4f", first ? "{" : ", ", static_cast<long long>(l.size),
              static_cast<long long>(l.c), static_cast<long long>(l.k), static_cast<long long>(l.kernel),
              static_cast<long long>(l.stride), type, pass, ms);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--version") == 0) {
    const dnnl_version_t* const version = dnnl_version();
    std::printf("%d.%d.%d\n", version->major, version->minor, version->patch);
    return 0;
  }
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 7;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  bool first = true;
  for (const bool bf16 : {false, true})
    for (const Layer& layer : kLayers) try {
        const Problem p = problem_of(layer, bf16 ? memory::data_type::bf16 : memory::data_type::f32);
        const char* const type = bf16 ? "bf16" : "f32";
        const auto forward = forward_of(engine, p, p.w);
        print(layer, type, "forward",
              milliseconds(engine, Forward(forward),
                           {{DNNL_ARG_SRC, p.x}, {DNNL_ARG_WEIGHTS, forward.weights_desc()}, {DNNL_ARG_DST, p.y}},
                           rounds),
              first);
        first = false;
        const auto dgrad = dgrad_of(engine, p);
        print(
            layer, type, "dgrad",
            milliseconds(engine, Dgrad(dgrad),
                         {{DNNL_ARG_DIFF_DST, p.y}, {DNNL_ARG_WEIGHTS, dgrad.weights_desc()}, {DNNL_ARG_DIFF_SRC, p.x}},
                         rounds),
            false);
        const auto wgrad = wgrad_of(engine, p);
        print(layer, type, "wgrad",
              milliseconds(
                  engine, Wgrad(wgrad),
                  {{DNNL_ARG_SRC, p.x}, {DNNL_ARG_DIFF_DST, p.y}, {DNNL_ARG_DIFF_WEIGHTS, wgrad.diff_weights_desc()}},
                  rounds),
              false);
      } catch (const dnnl::error&) {
        // oneDNN 2.6 has no bf16 convolutions on processors without bf16 instructions.
      }
  std::printf("}\n");
}
