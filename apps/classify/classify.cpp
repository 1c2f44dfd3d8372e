// Runs the model on one image at a time, preprocessed as in evaluation.
#include "apps/classify/classify.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <ostream>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/cli/input_notices.h"
#include "apps/cli/messages.h"
#include "apps/cli/ranking.h"
#include "apps/cli/vision.h"
#include "dtrain/io/input_file.h"
#include "dtrain/io/record_file.h"

namespace dtrain::classify {
namespace {

class Classifier {
 public:
  Classifier(const Options& options, const cli::FlagSet& set)
      : loaded_(options.model, set, cli::inference_machine(options.device, options.threads)),
        context_(loaded_.context()) {
    const data::PreprocessorFactory make = loaded_.pixels().make(/*training=*/false);
    preprocessor_ = make();
    const Shape shape{1, make.shape[0], make.shape[1], make.shape[2]};
    const size_t bytes = static_cast<size_t>(shape.count()) * size_of(make.dtype);
    pixels_of_file_ = Tensor(std::make_shared<Storage>(context_.host_allocator(), bytes), 0, shape, make.dtype, {});
    input_ = context_.empty(shape, make.dtype);
  }

  struct Result {
    std::vector<float> logits, probabilities;
    data::SampleNotes notes{};
  };
  const std::vector<std::string>& names() const { return loaded_.class_names(); }
  // Throws Error(Fault::data) for a file that is not an image, Error(Fault::numeric) for a non-finite result.
  Result run(const std::string& file) {
    const std::string bytes = read_text(file, kMaxRecordBytes);
    data::SampleNotes notes;
    try {
      notes = preprocessor_->run(std::as_bytes(std::span(bytes)), {}, {}, pixels_of_file_.raw());
    } catch (const Error& error) {
      throw Error(error.fault(), fmt::format("{}: {}", file, error.what()));
    }
    context_.upload(pixels_of_file_.raw(), input_);
    Tape tape(context_, loaded_.prepared());
    const Tensor images = normalize_pixels(context_, input_, loaded_.normalization());
    const Var logits = loaded_.model().forward(tape, tape.constant(images));
    Result result{cli::download_f32(context_, logits.value, "classification"), loaded_.probabilities(logits.value),
                  notes};
    if (!std::ranges::all_of(result.logits, [](float logit) { return std::isfinite(logit); }))
      throw Error(Fault::numeric, fmt::format("{}: the model's output is not finite", file));
    return result;
  }

  data::Orientation orientation() const { return loaded_.pixels().orientation; }

 private:
  cli::LoadedClassifier loaded_;
  Context& context_;
  std::unique_ptr<data::Preprocessor> preprocessor_;
  Tensor pixels_of_file_, input_;  // on the host and on the device
};

void print_json(std::ostream& out, const nlohmann::ordered_json& row) {
  out << row.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
}

// Adds the class name, if any.
void add_name(nlohmann::ordered_json& row, const char* key, const std::vector<std::string>& names, size_t output) {
  if (output < names.size() && !names[output].empty()) row[key] = names[output];
}

// "tench (class 1)", or "class 1" without a name.
std::string class_title(const std::vector<std::string>& names, size_t output) {
  if (output >= names.size() || names[output].empty()) return fmt::format("class {}", output);
  return fmt::format("{} (class {})", names[output], output);
}

void print(std::ostream& out, const Options& options, const std::string& file, const Classifier::Result& result,
           const std::vector<std::string>& names) {
  const std::vector<size_t> best = cli::ranking(result.probabilities, static_cast<size_t>(options.top));
  if (!options.json) {
    out << cli::escaped(file) << '\n';
    for (size_t c : best)
      out << fmt::format("  {:7.3f} %  {}\n", 100 * result.probabilities[c], cli::escaped(class_title(names, c)));
    if (!result.notes.damage.empty()) out << "  damaged image: " << cli::escaped(result.notes.damage) << '\n';
    if (options.logits) out << fmt::format("  logits {}\n", fmt::join(result.logits, " "));
    out << std::flush;
    return;
  }
  nlohmann::ordered_json row;
  row["file"] = file;
  if (options.label) row["label"] = *options.label;
  if (options.label) add_name(row, "label_name", names, static_cast<size_t>(*options.label));
  row["top"] = nlohmann::json::array();
  for (size_t c : best) {
    nlohmann::ordered_json guess = {{"class", c}};
    add_name(guess, "name", names, c);
    guess["probability"] = result.probabilities[c];
    row["top"].push_back(std::move(guess));
  }
  if (options.logits) row["logits"] = result.logits;
  if (!result.notes.damage.empty()) row["warning"] = result.notes.damage;
  print_json(out, row);
}

}  // namespace

int classify(const Options& options, const cli::FlagSet& set, const std::vector<std::string>& files,
             std::ostream& out) {
  Classifier classifier(options, set);
  int code = 0;
  cli::ImageCount count(classifier.orientation());
  for (const std::string& file : files) {
    try {
      const Classifier::Result result = classifier.run(file);
      print(out, options, file, result, classifier.names());
      count.add(file, result.notes);
    } catch (const Error& error) {
      if (error.fault() != Fault::data) throw;
      cli::print_message("error", error.what());
      if (options.json) print_json(out, {{"file", file}, {"error", error.what()}});
      code = static_cast<int>(Fault::data);
    }
  }
  count.report(files.size());
  return code;
}

}  // namespace dtrain::classify
