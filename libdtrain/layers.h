// Layers: plain structs that register their parameters under a path and apply an op. Not a class hierarchy.
#pragma once

#include <string>

#include "libdtrain/autograd/parameters.h"
#include "libdtrain/autograd/tape.h"
#include "libdtrain/ops/conv_bn_act.h"
#include "libdtrain/ops/pool.h"

namespace dtrain {

// `<path>.weight` [k, r, s, c / groups] and, if asked for, `<path>.bias` [k].
struct Conv2d {
  struct Options {
    Conv2dOptions conv{};
    bool bias = false;
    Init init{};  // unset: He's normal with fan-out
  };
  Conv2d(ParameterStore& store, const std::string& path, int64_t in, int64_t out, Size2 kernel, const Options& options);
  Var operator()(Tape& tape, const Var& x) const;

  ParameterRef weight;
  ParameterRef bias;
  Conv2dOptions options;
};

// `<path>.weight` [in, r, s, out] and, unless it is left out, `<path>.bias` [out]. Files hold the weight as torchvision
// does, [in, out, r, s]. Dilation and groups are 1.
struct ConvTranspose2d {
  struct Options {
    Conv2dOptions conv{};
    bool bias = true;
    Init init{};  // unset: He's normal with torchvision's fan-out, in * r * s
  };
  ConvTranspose2d(ParameterStore& store, const std::string& path, int64_t in, int64_t out, Size2 kernel,
                  const Options& options);
  Var operator()(Tape& tape, const Var& x) const;

  ParameterRef weight;
  ParameterRef bias;
  Conv2dOptions options;
};

// `<path>.weight`, `<path>.bias`, `<path>.running_mean`, `<path>.running_var`, all [c]. Options that say `frozen` make
// the running statistics constant, as ParameterStore::freeze does.
struct BatchNorm {
  BatchNorm(ParameterStore& store, const std::string& path, int64_t channels, const BatchNormOptions& options = {},
            float initial_gamma = 1);
  Var operator()(Tape& tape, const Var& x, Activation activation = Activation::none,
                 const Var* residual = nullptr) const;
  // max_pool(relu(bn(x)))
  Var relu_max_pool(Tape& tape, const Var& x, const PoolOptions& pool = kResNetPool) const;
  BatchNormState state() const { return {running_mean->value, running_var->value}; }
  // Frozen where the running statistics are constant.
  BatchNormOptions current_options() const;

  ParameterRef gamma, beta;
  BufferRef running_mean, running_var;
  BatchNormOptions options;
};

// group_norm and layer_norm with `<path>.weight`, initially 1, and `<path>.bias`, initially 0, both [c].
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

// A bias-free convolution followed by batch norm and an activation, under two paths as torchvision names them.
struct ConvBnAct {
  Conv2d conv;
  BatchNorm bn;
  Activation activation = Activation::relu;
  Var operator()(Tape& tape, const Var& x, const Var* residual = nullptr) const;
};
// One after the other; the residual is that of the last. Faster than one by one where nobody else needs what is
// between.
Var conv_bn_act(Tape& tape, const Var& x, std::span<const ConvBnAct> layers, const Var* residual = nullptr);
// The same with a residual that the caller gives up: see conv_bn_act of ops.
Var conv_bn_act(Tape& tape, Var x, std::span<const ConvBnAct> layers, Var&& residual);

// `<path>.weight` [out, in], which begins as `weight_init` says, and `<path>.bias` [out], initially 0. `image_channels`
// > 0: the input is a flattened image. Throws Error where `weight_init` is unset.
struct Linear {
  Linear(ParameterStore& store, const std::string& path, int64_t in, int64_t out, Init weight_init,
         int64_t image_channels = 0);
  Var operator()(Tape& tape, const Var& x) const;

  ParameterRef weight, bias;
};

}  // namespace dtrain
