// Entry: what a family of models exports to the catalogue, one for each model and data set.
#pragma once

#include <memory>

#include "models/classifier.h"
#include "models/trace.h"

namespace dtrain::models {

// What a model is built from.
struct BuildInputs {
  ParameterStore& store;
  Trace& trace;  // its shape is that of the image
  int64_t classes;
  Communicator* statistics;  // for the options of every batch norm; null: each rank has its own
  ModelConventions conventions{};
};

struct Entry {
  ClassifierInfo info;
  std::function<Forward(const BuildInputs&)> build;
};

// The forward pass of a model, which it keeps alive.
template <class Model>
Forward forward_of(Model model) {
  return
      [model = std::make_shared<const Model>(std::move(model))](Tape& tape, const Var& x) { return (*model)(tape, x); };
}

}  // namespace dtrain::models
