// ROI Align at the sizes of a two-stage detector: milliseconds of forward and backward for the regions of a batch.
//   roi_align_bench --device gpu --regions 1024 --benchmark_filter=pyramid
#include <cmath>

#include "benchmarks/devices.h"
#include "benchmarks/program.h"
#include "dtrain/ops/roi_align.h"
#include "dtrain/testing/array.h"

namespace dtrain {
namespace {

constexpr int64_t kImages = 2, kHeight = 800, kWidth = 1216;

struct RoiCase {
  const char* name;
  int64_t channels;
  int cells;                // output cells per side of a region
  std::vector<int> pixels;  // strides of the maps, in pixels
  float smallest, largest;  // side lengths of regions, in pixels of the image
};

const std::vector<RoiCase>& cases() {
  static const std::vector<RoiCase> table{
      {"p2_7x7", 256, 7, {4}, 32, 112},
      {"p2_14x14", 256, 14, {4}, 32, 112},
      {"pyramid_7x7", 256, 7, {4, 8, 16, 32}, 16, 640},
      {"pyramid_14x14", 256, 14, {4, 8, 16, 32}, 16, 640},
      {"c4_14x14", 1024, 14, {16}, 16, 640},
  };
  return table;
}

// Feature maps, and regions with log-uniform sizes, spread evenly over the images.
struct RoiInputs {
  std::vector<Tensor> maps;
  Tensor rois, images, levels;
  RoiAlignOptions options;

  RoiInputs(Context& context, const RoiCase& test, DType dtype, int64_t regions) {
    for (const int pixel : test.pixels) {
      maps.push_back(context.zeros({kImages, kHeight / pixel, kWidth / pixel, test.channels}, dtype));
      options.scales.push_back(1 / static_cast<float>(pixel));
    }
    options.height = options.width = test.cells;
    const Array draws = random_array({regions, 4}, 1, 0, 1);
    Array boxes({regions, 4});
    std::vector<int32_t> rows;
    for (int64_t r = 0; r < regions; ++r) {
      for (const int64_t axis : {0, 1}) {
        const double side = test.smallest * std::pow(test.largest / test.smallest, draws[4 * r + axis]);
        boxes[4 * r + axis] = draws[4 * r + 2 + axis] * (static_cast<double>(axis == 0 ? kWidth : kHeight) - side);
        boxes[4 * r + 2 + axis] = boxes[4 * r + axis] + side;
      }
      rows.push_back(static_cast<int32_t>(r * kImages / regions));
    }
    rois = to_device(context, boxes);
    images = to_device(context, {regions}, rows);
    if (maps.size() > 1) levels = roi_levels(context, rois, {});
  }

  Var align(Tape& tape, bool wants_gradient) const {
    std::vector<Var> inputs;
    for (const Tensor& map : maps) inputs.push_back(wants_gradient ? tape.variable(map) : tape.constant(map));
    return roi_align(tape, inputs, rois, images, levels, options);
  }
};

void measure(benchmark::State& state, Context& context, const RoiCase& test, DType dtype, int64_t regions, bool both) {
  const RoiInputs inputs(context, test, dtype, regions);
  const Tensor dy = context.zeros({regions, test.cells, test.cells, test.channels}, dtype), loss = context.zeros({1});
  size_t bytes = dy.bytes() * (both ? 2 : 1);
  for (const Tensor& map : inputs.maps) bytes += map.bytes() * (both ? 2 : 1);
  measure_bandwidth(state, context, bytes, [&] {
    Tape tape(context, both ? Mode::train : Mode::eval);
    const Var y = inputs.align(tape, both);
    if (!both) return;
    tape.backward(tape.record("gradient", loss, {&y},
                              [y = y.without_value(), dy](Tape& t, const Tensor&) { t.pass_grad(y, dy); }));
  });
}

void register_all(Context& context, int64_t regions) {
  for (const DType dtype : types_of(context))
    for (const RoiCase& test : cases())
      for (const bool both : {false, true})
        add_benchmark(concat(context.device(), "/", dtype, "/", test.name, both ? "_step" : ""),
                      [&context, &test, dtype, regions, both](benchmark::State& state) {
                        measure(state, context, test, dtype, regions, both);
                      });
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  using namespace dtrain;
  int64_t regions = 1024;
  cli::FlagSet flags("roi_align_bench", "[flags]", "ROI Align, forward and backward.");
  flags.add("regions", regions, "regions in a batch of two images", cli::kPositiveCount);
  return run_op_program(flags, argc, argv, [&](Context& context) { register_all(context, regions); });
}
