// Devices, memory, tensors and random numbers of version 0.1.
#include <cstdio>
#include <vector>

#include "libdtrain/core/activation.h"
#include "libdtrain/core/context.h"
#include "libdtrain/core/context_options.h"
#include "libdtrain/core/cpu_isa.h"
#include "libdtrain/core/cuda_stream.h"
#include "libdtrain/core/dispatch.h"
#include "libdtrain/core/encoded_image.h"
#include "libdtrain/core/error.h"
#include "libdtrain/core/float16.h"
#include "libdtrain/core/gpu_info.h"
#include "libdtrain/core/host_device.h"
#include "libdtrain/core/memory.h"
#include "libdtrain/core/moment.h"
#include "libdtrain/core/profiler.h"
#include "libdtrain/core/rng.h"
#include "libdtrain/core/step_scalars.h"
#include "libdtrain/core/tensor.h"
#include "libdtrain/core/thread_count.h"
#include "libdtrain/core/types.h"
#include "libdtrain/core/widened.h"
#include "libdtrain/version.h"

DT_HD inline float halved(float x) { return x / 2; }

int main() try {
  dtrain::require_threads(1);
  const auto context = dtrain::make_cpu_context(dtrain::CpuOptions{.threads = 1, .isa = dtrain::best_cpu_isa()});
  dtrain::Profiler profiler(*context);
  const dtrain::Tensor x = context->zeros({2, 3});
  dtrain::RandomStream random(/*seed=*/1, /*stream=*/2);
  std::vector<float> values(6);
  for (float& value : values) value = halved(random.uniform(-1, 1));
  context->upload(values.data(), x, dtrain::Queue::compute);
  const dtrain::Moment begin = context->record(dtrain::Queue::compute);
  const dtrain::Moment end = context->stamp();
  context->wait(end);
  context->set_scalars(dtrain::StepInputs{.learning_rate = 0.5f});
  const dtrain::Bf16 narrow = dtrain::to_bf16(0.1f);
  dtrain::WidenedTensors widened(*context);
  dtrain::EncodedImage image(context->host_allocator());
  std::string reason;
  if (dtrain::cuda_device_count(&reason) > 0) std::printf("%s\n", dtrain::gpu_info(0).name.c_str());
  std::printf("%s: %.3f, %.1f s, %zu bytes, %s, %d\n", DTRAIN_VERSION, float{narrow},
              context->seconds_between(begin, end), context->memory_stats().in_use, x.shape().to_string().c_str(),
              image.width + static_cast<int>(dtrain::Activation::relu));
  return widened.stand_in(x).dtype() == dtrain::DType::f32 ? 0 : 1;
} catch (const dtrain::Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return static_cast<int>(error.fault());
}
