// The model is run on one image at a time, as an evaluation of a training run would.
#include "apps/classify/classify.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <ostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/cli/machine.h"
#include "apps/cli/messages.h"
#include "apps/cli/vision.h"
#include "libdtrain/io/input_file.h"
#include "libdtrain/io/safetensors.h"
#include "libdtrain/ops/loss.h"
#include "libdtrain/train/weights.h"

namespace dtrain::classify {
namespace {

// Far above any image; a larger file is not one.
constexpr uint64_t kMaxImageBytes = uint64_t{1} << 30;

// Rows that the classifier, the last matrix that the model registers, has in the file.
int64_t classes_in(const SafetensorsFile& weights, Context& context, const models::ClassifierInfo& info,
                   const models::ClassifierOptions& options) {
  ParameterStore store(context);
  models::make_classifier(store, info, options);
  const auto& parameters = store.parameters();
  const auto last = std::find_if(parameters.rbegin(), parameters.rend(),
                                 [](const Parameter& parameter) { return parameter.shape.rank() == 2; });
  DT_CHECK(last != parameters.rend(), "model ", info.name, " has no classifier: give --num_classes");
  const SafetensorsEntry* entry = weights.find(last->name);
  if (entry == nullptr || entry->shape.rank() != 2 || entry->shape[0] < 1)
    throw Error(Fault::checkpoint, concat(weights.path(), ": no matrix ", last->name, ", the classifier of ", info.name,
                                          ": these are not the weights of this model"));
  return entry->shape[0];
}

cli::Machine machine_for(const Options& options) {
  cli::Machine machine;
  const std::string reason = cli::why_no_gpu();
  DT_CHECK(options.device != "gpu" || reason.empty(), "--device=gpu: ", reason, "; use --device=cpu");
  machine.gpu = options.device != "cpu" && reason.empty();
  machine.threads = static_cast<int>(options.threads);
  return machine;
}

class Classifier {
 public:
  explicit Classifier(const Options& options)
      : machine_(machine_for(options)), context_(machine_.make_context()), store_(*context_), model_(build(options)) {
    pixels_.preprocessing = options.preprocessing;
    pixels_.ml_perf = options.ml_perf;
    pixels_.size = static_cast<int>(model_.image_size);
    const data::MakePreprocess make = pixels_.make(/*training=*/false);
    preprocess_ = make();
    const Shape shape{1, make.shape[0], make.shape[1], make.shape[2]};
    const size_t bytes = static_cast<size_t>(shape.count()) * size_of(make.dtype);
    pixels_of_file_ = Tensor(std::make_shared<Storage>(context_->host_allocator(), bytes), 0, shape, make.dtype, {});
    input_ = context_->empty(shape, make.dtype);
  }

  struct Result {
    std::vector<float> logits, probabilities;
  };
  // Throws Error(Fault::data) on a file that is no image, Error(Fault::numeric) where the result is not finite.
  Result run(const std::string& file) {
    const InputFile encoded(file, Fault::data);
    if (encoded.size() > kMaxImageBytes) throw Error(Fault::data, file + ": too large for an image");
    std::vector<std::byte> bytes(encoded.size());
    encoded.read(0, bytes.data(), bytes.size());
    try {
      preprocess_(bytes, {}, {}, pixels_of_file_.raw());
    } catch (const Error& error) {
      throw Error(error.fault(), fmt::format("{}: {}", file, error.what()));
    }
    context_->upload(pixels_of_file_.raw(), input_);
    Tape tape(*context_, Mode::eval);
    PixelNormalization normalization = cli::normalization_of(pixels_);
    normalization.dtype = machine_.precision;
    normalization.channels = store_.image_channels();
    const Tensor images = normalize_pixels(*context_, input_, normalization);
    const Var logits = model_.forward(tape, tape.constant(images));
    Result result{download(logits.value), download(softmax(*context_, logits.value))};
    if (!std::ranges::all_of(result.logits, [](float logit) { return std::isfinite(logit); }))
      throw Error(Fault::numeric, fmt::format("{}: the model makes numbers of it that are not finite", file));
    return result;
  }

 private:
  models::Classifier build(const Options& options) {
    const models::ClassifierInfo info = cli::find_model(options.model, "imagenet");
    pixels_.dataset = info.dataset;
    const SafetensorsFile file(options.weights, Fault::checkpoint);
    models::ClassifierOptions shape{.classes = options.num_classes, .image_size = options.image_size};
    if (shape.classes == 0) shape.classes = classes_in(file, *context_, info, shape);
    models::Classifier model = models::make_classifier(store_, info, shape);
    ComputeOptions compute = machine_.compute();
    compute.gradients = false;
    store_.allocate(/*seed=*/0, compute);
    const WeightReport report = load_weights(store_, options.weights, Fault::checkpoint);
    if (!report.missing.empty() || !report.mismatched.empty())
      throw Error(Fault::checkpoint,
                  fmt::format("{}: does not fit {}: {}", options.weights, info.name, report.summary()));
    return model;
  }

  std::vector<float> download(const Tensor& x) {
    std::vector<float> values(static_cast<size_t>(x.count()));
    context_->download(x, values.data(), "classification");
    return values;
  }

  cli::Machine machine_;
  std::unique_ptr<Context> context_;
  ParameterStore store_;
  data::Pixels pixels_;
  models::Classifier model_;
  data::Preprocess preprocess_;
  Tensor pixels_of_file_, input_;  // on the host and on the device
};

// Classes by falling probability, the lower class first among equals.
std::vector<size_t> ranking(const std::vector<float>& probabilities, int64_t top) {
  std::vector<size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t count = std::min(order.size(), static_cast<size_t>(top));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](size_t a, size_t b) {
                      return probabilities[a] != probabilities[b] ? probabilities[a] > probabilities[b] : a < b;
                    });
  order.resize(count);
  return order;
}

void print_json(std::ostream& out, const nlohmann::ordered_json& row) {
  out << row.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
}

void print(std::ostream& out, const Options& options, const std::string& file, const Classifier::Result& result) {
  const std::vector<size_t> best = ranking(result.probabilities, options.top);
  if (!options.json) {
    out << cli::escaped(file) << '\n';
    for (size_t c : best) out << fmt::format("  {:7.3f} %  class {}\n", 100 * result.probabilities[c], c);
    if (options.logits) out << fmt::format("  logits {}\n", fmt::join(result.logits, " "));
    out << std::flush;
    return;
  }
  nlohmann::ordered_json row;
  row["file"] = file;
  row["top"] = nlohmann::json::array();
  for (size_t c : best) row["top"].push_back({{"class", c}, {"probability", result.probabilities[c]}});
  if (options.logits) row["logits"] = result.logits;
  print_json(out, row);
}

}  // namespace

int classify(const Options& options, const std::vector<std::string>& files, std::ostream& out) {
  Classifier classifier(options);
  int code = 0;
  for (const std::string& file : files) {
    try {
      print(out, options, file, classifier.run(file));
    } catch (const Error& error) {
      if (error.fault() != Fault::data) throw;
      cli::print_message("error", error.what());
      if (options.json) print_json(out, {{"file", file}, {"error", error.what()}});
      code = static_cast<int>(Fault::data);
    }
  }
  return code;
}

}  // namespace dtrain::classify
