#include "apps/cli/multi_label.h"

#include <span>
#include <utility>

#include <fmt/format.h>

#include "apps/cli/vision.h"
#include "data/image_list.h"

namespace dtrain::cli {

Loss multi_label_loss(Context& context, const models::Classifier& model, Tape& tape, const Var& images,
                      const data::Batch& batch, LabelScores* scores) {
  Tensor logits;
  Loss loss = model.loss(tape, images, {batch["targets"], batch["row_weights"], batch.valid}, &logits);
  if (scores == nullptr) return loss;
  const std::vector<float> outputs = download_f32(context, logits, "evaluation");
  const std::vector<float> targets = download_f32(context, batch["targets"], "evaluation");
  const auto classes = static_cast<size_t>(model.classes);
  for (size_t row = 0; row < batch.row_valid.size(); ++row)
    if (batch.row_valid[row] != 0)
      scores->add(std::span(outputs).subspan(row * classes, classes),
                  std::span(targets).subspan(row * classes, classes));
  return loss;
}

bool lists_several_labels(const std::string& data_dir, std::vector<std::string>& notices) {
  if (!data::has_image_lists(data_dir)) return false;
  const data::ListLabels labels = data::labels_of_lists(data_dir);
  if (labels.several > 0)
    notices.push_back(fmt::format("{}:{}: several labels of an image: multi-label training, --loss=bce", labels.list,
                                  labels.several));
  return labels.several > 0;
}

std::future<Evaluation> with_values(std::future<Evaluation> finished, std::vector<MetricValue> values) {
  Evaluation evaluation = finished.get();
  values.insert(values.end(), evaluation.values.begin(), evaluation.values.end());
  evaluation.values = std::move(values);
  std::promise<Evaluation> result;
  result.set_value(std::move(evaluation));
  return result.get_future();
}

}  // namespace dtrain::cli
