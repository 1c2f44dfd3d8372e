// Layers: plain structs that register parameters under a path and apply an op; no class hierarchy.
#pragma once

#include <string>

#include "dtrain/autograd/parameters.h"
#include "dtrain/autograd/tape.h"
#include "dtrain/ops/conv_bn_act.h"
#include "dtrain/ops/pool.h"

namespace dtrain {

// Parameters `<path>.weight` [k, r, s, c / groups] and, with `bias`, `<path>.bias` [k].
struct Conv2d {
  struct Options {
    Conv2dOptions conv{};
    bool bias = false;
    Init init{};  // default: He normal, fan-out
  };
  Conv2d(ParameterStore& store, const std::string& path, int64_t in, int64_t out, Size2 kernel, const Options& options);
  Var operator()(Tape& tape, const Var& x) const;

  ParameterRef weight;
  ParameterRef bias;
  Conv2dOptions options;
};

// Parameters `<path>.weight` [in, r, s, out] and, with `bias`, `<path>.bias` [out]. Files store the weight as
// torchvision does, [in, out, r, s]. Dilation and groups are 1.
struct ConvTranspose2d {
  struct Options {
    Conv2dOptions conv{};
    bool bias = true;
    Init init{};  // default: He normal with torchvision's fan-out, in * r * s
  };
  ConvTranspose2d(ParameterStore& store, const std::string& path, int64_t in, int64_t out, Size2 kernel,
                  const Options& options);
  Var operator()(Tape& tape, const Var& x) const;

  ParameterRef weight;
  ParameterRef bias;
  Conv2dOptions options;
};

// Parameters and buffers `<path>.weight`, `<path>.bias`, `<path>.running_mean`, `<path>.running_var`, all [c]. The
// option `frozen` makes the running statistics constant, as ParameterStore::freeze does.
struct BatchNorm {
  BatchNorm(ParameterStore& store, const std::string& path, int64_t channels, const BatchNormOptions& options = {},
            float initial_gamma = 1);
  Var operator()(Tape& tape, const Var& x, Activation activation = Activation::none,
                 const Var* residual = nullptr) const;
  // max_pool(relu(bn(x)))
  Var relu_max_pool(Tape& tape, const Var& x, const PoolOptions& pool = kResNetPool) const;
  BatchNormState state() const { return {running_mean->value, running_var->value}; }
  // Options with `frozen` set if the running statistics are constant.
  BatchNormOptions current_options() const;

  ParameterRef gamma, beta;
  BufferRef running_mean, running_var;
  BatchNormOptions options;
};

// Group and layer normalisation with `<path>.weight`, initially 1, and `<path>.bias`, initially 0, both [c].
struct GroupNorm {
  GroupNorm(ParameterStore& store, const std::string& path, int64_t channels, int groups, float epsilon = 1e-5f,
            float initial_gamma = 1);
  Var operator()(Tape& tape, const Var& x) const;

  ParameterRef gamma, beta;
  int groups;
  float epsilon;
};
struct LayerNorm {
  LayerNorm(ParameterStore& store, const std::string& path, int64_t channels, float epsilon = 1e-5f);
  Var operator()(Tape& tape, const Var& x) const;

  ParameterRef gamma, beta;
  float epsilon;
};

// Convolution without bias, batch norm and activation, under two paths with torchvision's names.
struct ConvBnAct {
  Conv2d conv;
  BatchNorm bn;
  Activation activation = Activation::relu;
  Var operator()(Tape& tape, const Var& x, const Var* residual = nullptr) const;
};
// Applies `layers` in sequence; the residual is added in the last. Fuses layers whose intermediate result has no other
// user.
Var conv_bn_act(Tape& tape, const Var& x, std::span<const ConvBnAct> layers, const Var* residual = nullptr);
// Overload that consumes the residual: see conv_bn_act in ops.
Var conv_bn_act(Tape& tape, Var x, std::span<const ConvBnAct> layers, Var&& residual);

// Parameters `<path>.weight` [out, in], initialised by `weight_init`, and `<path>.bias` [out], initially 0.
// `image_channels` > 0: the input is a flattened image. Throws Error if `weight_init` is unset.
struct Linear {
  Linear(ParameterStore& store, const std::string& path, int64_t in, int64_t out, Init weight_init,
         int64_t image_channels = 0);
  Var operator()(Tape& tape, const Var& x) const;

  ParameterRef weight, bias;
};

}  // namespace dtrain
