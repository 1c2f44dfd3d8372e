// Batch norm on a device shared with other processes.
#include "libdtrain/ops/batch_norm_parts.h"

#include "libdtrain/ops/batch_norm_schedule.h"
#include "tests/emulation/emulation.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

// y and the gradients of x, gamma and beta, for images that fit in shared memory.
std::vector<Array> outcome_of(BatchNormSchedule::Kind kind) {
  const auto context = make_cuda_context();
  set_batch_norm_schedule(*context, {.kind = kind});
  const auto filled = [&](Shape shape, uint64_t seed) { return to_device(*context, random_array(shape, seed)); };
  const Shape images{2, 9, 9, 24}, channels{24};
  const Tensor x = filled(images, 1), y = context->empty(images), dx = context->empty(images);
  const Tensor gamma = filled(channels, 2), beta = filled(channels, 3), dy = filled(images, 4);
  const Tensor mean = context->empty(channels), inv_std = context->empty(channels);
  const Tensor dgamma = context->empty(channels), dbeta = context->empty(channels);
  cuda::batch_norm_train(*context, {x, gamma, beta, {}, Activation::none, {}},
                         {filled(channels, 5), filled(channels, 6)}, {}, {y, mean, inv_std, {}});
  const BatchNormSaved saved{x, {}, {}, mean, inv_std, gamma, beta, Activation::none};
  cuda::batch_norm_grad(*context, dy, saved, {dx, dgamma, dbeta, {}});
  std::vector<Array> outcome;
  for (const Tensor& tensor : {y, dx, dgamma, dbeta}) outcome.push_back(to_host(*context, tensor));
  return outcome;
}

// MPS may leave a process less of the device than it reports.
TEST(BatchNormBesideOthers, TakesTwoPassesWhereItsBlocksDoNotRunAtOnce) {
  const std::vector<Array> expected = outcome_of(BatchNormSchedule::Kind::two_pass);
  emulation::set_occupancy(0);
  const std::vector<Array> outcome = outcome_of(BatchNormSchedule::Kind::resident);
  emulation::set_occupancy(32);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(outcome[i].values, expected[i].values) << "tensor " << i;
}

}  // namespace
}  // namespace dtrain
