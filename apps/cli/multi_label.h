// Loss and evaluation of multi-label classifiers.
#pragma once

#include <future>
#include <string>
#include <vector>

#include "dtrain/data/batch.h"
#include "dtrain/models/classifier.h"
#include "dtrain/run/task.h"
#include "libdtrain/train/label_scores.h"

namespace dtrain::cli {

// Loss on a batch of the layout multi_labelled_images with the network's input `images`. Unless `scores` is null, adds
// the scores of its samples, and waits for the device.
Loss multi_label_loss(Context& context, const models::Classifier& model, Tape& tape, const Var& images,
                      const data::Batch& batch, LabelScores* scores);

// Whether an image of the training list in `data_dir` has several labels; then adds a notice.
bool lists_several_labels(const std::string& data_dir, std::vector<std::string>& notices);

// Prepends values to a finished evaluation.
std::future<Evaluation> with_values(std::future<Evaluation> finished, std::vector<MetricValue> values);

}  // namespace dtrain::cli
