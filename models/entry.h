// Entry: the catalogue record of a model for one data set, exported by each model family.
#pragma once

#include <concepts>
#include <memory>

#include "dtrain/models/classifier.h"
#include "dtrain/models/trace.h"

namespace dtrain::models {

// Arguments for building a model.
struct BuildInputs {
  ParameterStore& store;
  Trace& trace;  // starts with the shape of the image
  int64_t classes;
  Communicator* statistics;  // passed to every batch norm; null: local statistics
  bool auxiliary_head = false;
  ModelConventions conventions{};
};

struct Entry {
  ClassifierInfo info;
  std::function<ForwardFunction(const BuildInputs&)> build;
};

// Wraps a model as a forward pass, which keeps it alive. A model with auxiliary heads takes a third argument; see
// Forward.
template <class Model>
ForwardFunction forward_of(Model model) {
  return
      [model = std::make_shared<const Model>(std::move(model))](Tape& tape, const Var& x, std::vector<Var>* auxiliary) {
        if constexpr (std::invocable<const Model&, Tape&, const Var&, std::vector<Var>*>)
          return (*model)(tape, x, auxiliary);
        else
          return (*model)(tape, x);
      };
}

}  // namespace dtrain::models
