// Batch normalisation over the channels of NHWC images (Ioffe and Szegedy 2015).
//   train:  m = mean(x), v = mean((x - m)^2) over n,h,w;  y = gamma * (x - m) / sqrt(v + eps) + beta
//           running = momentum * running + (1 - momentum) * batch statistic (the variance unbiased, as torch's, where
//           asked)
//   eval:   the same with the running statistics
//   frozen: as eval, also in training; gradients flow to x, gamma and beta but not into the statistics
//   synchronised: as train, with m and v over n,h,w of all ranks' images. N ranks compute what one rank does with all
//           their images. Behind the same loss on each rank, a mean over its own images, dx, dgamma and dbeta are then
//           the gradients of the sum of the ranks' losses: dx whole, dgamma and dbeta the part of this rank's images.
//           So the sum over the ranks, divided by N, is the gradient of their mean, as it is of any other parameter.
#pragma once

#include "libdtrain/ops/conv2d.h"

namespace dtrain {

class Communicator;

struct BatchNormOptions {
  float epsilon = 1e-5f;
  float momentum = 0.9f;  // share of the old running statistic kept: 1 - torch's momentum
  bool frozen = false;
  bool unbiased_running_variance = true;  // n / (n - 1) on the variance that goes into the running one
  // Synchronises the statistics of a batch over its ranks; null, or of one rank: they are this rank's own. Made for the
  // compute queue, with f32 on the wire; all ranks call the same ops in the same order.
  Communicator* communicator = nullptr;
};

struct BatchNormState {
  Tensor running_mean{}, running_var{};  // [c], updated in place by training
};

struct BatchNormSaved;

// What follows the normalisation.
enum class Activation { none, relu };

// y = act(bn(x) + residual). x [n,h,w,c]; gamma, beta [c]; `residual` null or of x's shape. `sums`: those of x, where
// they are known; the statistics of a batch then follow from them. `saved`, where given: what the backward pass will
// read.
Var batch_norm(Tape& tape, const Var& x, const Var& gamma, const Var& beta, const BatchNormState& state,
               const BatchNormOptions& options = {}, Activation activation = Activation::none,
               const Var* residual = nullptr, const ChannelSums& sums = {},
               std::shared_ptr<BatchNormSaved>* saved = nullptr);
// relu(bn(x)) in training on a GPU, left to the convolution that reads it: the slot is that of the result, the value x,
// and `load` is to be given to the convolution. x is f16; the result lacks the rounding of y to f16, but scale and
// shift are rounded: of the same size where the mean is no larger than a few deviations, else mean / deviation times as
// large.
Var batch_norm_on_load(Tape& tape, const Var& x, const Var& gamma, const Var& beta, const BatchNormState& state,
                       const BatchNormOptions& options, const ChannelSums& sums, OnLoad& load,
                       std::shared_ptr<BatchNormSaved>* saved = nullptr);

// How a GPU goes over the images of a batch norm in training. Both schedules give the same bits.
struct BatchNormSchedule {
  enum class Kind {
    automatic,
    two_pass,  // one launch reads the images and adds up, another one reads them again and writes the result
    resident,  // one launch of blocks that wait for each other and keep in shared memory what they have read
  };
  Kind kind = Kind::automatic;
  int spare_multiprocessors = 0;     // left to other work, such as collectives
  int64_t shared_bytes = INT64_MAX;  // of a multiprocessor's memory that may be taken at most
  float sums_worth = -1;             // what batch_norm_sums_worth gives; negative: as measured
  int on_load = -1;                  // 1, 0: whether chains leave batch norms to convolutions; negative: as measured
  int in_dgrad = -1;                 // the same of what a batch norm's gradient starts from
  int64_t least_measured = 4 << 20;  // bytes of images: less takes microseconds, whatever the choice
};
// For all calls from now on. A CPU has one schedule only; synchronised statistics take two_pass.
void set_batch_norm_schedule(Context& context, const BatchNormSchedule& schedule);

// Milliseconds that batch norm in training of images [n,h,w,c] saves where their sums are known; 0 where nobody makes
// them. Measured at the first call for such images.
float batch_norm_sums_worth(Context& context, const Shape& x, DType dtype, Activation activation, bool residual);

// The inputs of one call. `residual` and `sums` may be undefined.
struct BatchNormInputs {
  Tensor x, gamma, beta, residual;
  Activation activation = Activation::none;
  ChannelSums sums{};
};
// What it writes. On a GPU in training y may be undefined: then the statistics alone are wanted, and `load`, of the own
// rank's, where that is defined. mean and inv_std, [c], are those that y was normalised with. `mask` is undefined where
// it is not wanted; its layout is that of relu_mask_bytes, and the CPU arm, which reads y instead, writes none.
struct BatchNormOutputs {
  Tensor y, mean, inv_std, mask;
  OnLoad load{};
};

// What the forward pass leaves for the backward. Undefined where it is not needed: x where the statistics are constant
// and neither gamma nor beta wants a gradient; y or mask (one of them, see above) where the gate of relu follows from
// x.
struct BatchNormSaved {
  Tensor x, y, mask, mean, inv_std, gamma, beta;
  Activation activation = Activation::none;
  bool constant_statistics = false;
  Communicator* communicator = nullptr;  // of several ranks whose statistics these are
  // Where what made dy has closed relu's gate in it and added up: dbeta and dgamma of this op, f32 [c].
  Tensor dbeta{}, dgamma{};
};
// Each may be undefined where not wanted. dx, dgamma, dbeta are stored or added; dresidual, the gradient behind the
// activation, is stored. Either dx or dresidual may be dy itself; dx is then stored.
struct BatchNormGrads {
  Tensor dx, dgamma, dbeta, dresidual;
  bool add_dx = false, add_dgamma = false, add_dbeta = false;
};

// The communicator of several ranks that statistics are synchronised over; null where they are this rank's own.
Communicator* synchronised_by(const BatchNormOptions& options);
// Sums `x`, f32, over the ranks, in place; what is queued behind it finds the sums.
void sum_over_ranks(Communicator& ranks, const Tensor& x, const char* what);

// For ops that batch norm is a part of: its checks, and its gradients from dy, that of its output.
void check_batch_norm(const Var& x, const Var& gamma, const Var& beta, const BatchNormState& state);
void batch_norm_backward(Tape& tape, const Tensor& dy, const Var& x, const Var& gamma, const Var& beta,
                         const Var& residual, const BatchNormSaved& saved);

namespace cpu {
// With the statistics of x, by which the running ones are updated.
void batch_norm_train(Context&, const BatchNormInputs&, const BatchNormState&, const BatchNormOptions&,
                      const BatchNormOutputs&);
// With the running statistics; mean is not written.
void batch_norm_infer(Context&, const BatchNormInputs&, const BatchNormState&, const BatchNormOptions&,
                      const BatchNormOutputs&);
void batch_norm_grad(Context&, const Tensor& dy, const BatchNormSaved&, const BatchNormGrads&);
inline void set_batch_norm_schedule(Context&, const BatchNormSchedule&) {}
inline float batch_norm_sums_worth(Context&, const Shape&, DType, Activation, bool) { return 0; }
}  // namespace cpu

namespace cuda {
decltype(cpu::batch_norm_train) batch_norm_train;
decltype(cpu::batch_norm_infer) batch_norm_infer;
decltype(cpu::batch_norm_grad) batch_norm_grad;
decltype(cpu::set_batch_norm_schedule) set_batch_norm_schedule;
decltype(cpu::batch_norm_sums_worth) batch_norm_sums_worth;
}  // namespace cuda

}  // namespace dtrain
