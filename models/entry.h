// Entry: what a family of models exports to the catalogue, one for each model and data set.
#pragma once

#include <concepts>
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
  bool auxiliary_head = false;
  ModelConventions conventions{};
};

struct Entry {
  ClassifierInfo info;
  std::function<Forward(const BuildInputs&)> build;
};

// The forward pass of a model, which it keeps alive. A model with auxiliary heads takes a third argument, see Forward.
template <class Model>
Forward forward_of(Model model) {
  return
      [model = std::make_shared<const Model>(std::move(model))](Tape& tape, const Var& x, std::vector<Var>* auxiliary) {
        if constexpr (std::invocable<const Model&, Tape&, const Var&, std::vector<Var>*>)
          return (*model)(tape, x, auxiliary);
        else
          return (*model)(tape, x);
      };
}

}  // namespace dtrain::models
