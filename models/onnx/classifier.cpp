#include "dtrain/models/onnx/classifier.h"

#include <array>

#include "models/onnx/recorder.h"

namespace dtrain::models {
namespace {

constexpr float kWhite = 255;

// (x * 255 - mean) * scale of pixels [n, 3, h, w] in [0, 1].
OnnxValue normalized(OnnxGraph& graph, const OnnxValue& images, const PixelNormalization& pixels) {
  std::array<float, 3> scale{}, shift{};
  for (size_t c = 0; c < scale.size(); ++c) {
    scale[c] = kWhite * pixels.scale[c];
    shift[c] = pixels.mean[c] * pixels.scale[c];
  }
  const Shape shape{3, 1, 1};
  return graph.add("Sub", {graph.add("Mul", {images, graph.floats(scale, shape)}), graph.floats(shift, shape)});
}

}  // namespace

void export_onnx(const ParameterStore& store, const Classifier& model, const PixelNormalization& pixels,
                 const std::string& path) {
  Context& context = store.context();
  DT_CHECK(context.is_cpu(), "export_onnx: the weights are on ", context.device(), ", expected the CPU");
  const int64_t size = model.image_size;
  OnnxGraph graph(model.name);
  const OnnxValue images =
      graph.input("images", OnnxType::f32, {"n", int64_t{3}, size, size}, "RGB, from 0 to 1, as the model reads them");
  OnnxRecorder recorder(graph, store);
  Tape tape(context, Mode::eval);
  const Var x = tape.constant(context.zeros({1, size, size, 3}));
  recorder.set(x.value, normalized(graph, images, pixels));
  tape.op_observer().on_op([&](const RecordedOp& op) { recorder.add(op); });
  const Var logits = model.forward(tape, x);
  recorder.require_all_used();
  graph.output(recorder.get(logits.value), "logits", OnnxType::f32, {"n", model.classes},
               "what a softmax makes probabilities of");
  graph.write(path);
}

}  // namespace dtrain::models
