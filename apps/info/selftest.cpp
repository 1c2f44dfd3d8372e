#include "apps/info/selftest.h"

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/cli/machine.h"
#include "apps/info/convolution_case.h"
#include "apps/info/nvml.h"
#include "dtrain/core/gpu_info.h"

namespace dtrain::info {
namespace {

// Faults in the order they are found; those of arithmetic weigh more.
struct Findings {
  std::vector<std::string> wrong, unsound;
};

void row(const std::string& name, const std::string& value) { fmt::print("{:<14}{}\n", name + ":", value); }

void check_convolution(Context& context, const std::string& device, DType dtype, Findings& findings) {
  // Half of what f16 loses by rounding the output; f32 has room for the transforms of fast convolutions.
  const double allowed = dtype == DType::f16 ? 2e-3 : 1e-4;
  const ConvolutionCase convolution;
  const double error = convolution.error_of(convolution_on(context, convolution, dtype));
  const std::string found = fmt::format(
      "a convolution in {} differs by {:.2g} of its terms from double precision, {} "
      "is allowed",
      name_of(dtype), error, allowed);
  row("convolution", found);
  if (!(error <= allowed)) findings.wrong.push_back(fmt::format("{}: {}", device, found));
}

double gigabytes_per_second(size_t bytes, const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return static_cast<double>(bytes) / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
         1e9;
}

// Copies within the device, each a read and a write, and from the host.
void measure_memory(Context& context, double most) {
  constexpr int kCopies = 8;
  const int64_t bytes = int64_t{context.is_cpu() ? 64 : 512} << 20;
  const Tensor from = context.zeros({bytes}, DType::u8), to = context.zeros({bytes}, DType::u8);
  const auto copy = [&] {
    for (int i = 0; i < kCopies; ++i) context.copy(from, to);
    context.synchronize("self-test");
  };
  context.synchronize("self-test");
  copy();
  const double rate = gigabytes_per_second(2 * kCopies * static_cast<size_t>(bytes), copy);
  std::string text = fmt::format("copies read and write {:.1f} GB/s", rate);
  if (most > 0) text += fmt::format(" of {:.0f}", most / 1e9);
  if (!context.is_cpu()) {
    const std::vector<char> host(static_cast<size_t>(bytes));
    const double upload = gigabytes_per_second(host.size(), [&] {
      context.upload(host.data(), to);
      context.synchronize("self-test");
    });
    text += fmt::format("; {:.1f} GB/s arrive from the host's pageable memory", upload);
  }
  row("bandwidth", text);
}

void check_driver(Findings& findings) {
  const GpuVersions versions = gpu_versions();
  const auto cuda = [](int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); };
  const std::string found = fmt::format("the driver serves CUDA {}, this build's toolkit is {}", cuda(versions.driver),
                                        cuda(versions.runtime));
  row("driver", found);
  // Within one major version older drivers serve newer toolkits.
  if (versions.driver / 1000 < versions.runtime / 1000) findings.unsound.push_back(found);
  for (const GpuLibrary& library : versions.libraries)
    if (!library.problem.empty()) findings.unsound.push_back(library.name + ": " + library.problem);
}

void check_health(const std::string& device, const std::string& address, Findings& findings) {
  GpuHealth health;
  try {
    health = gpu_health(address);
  } catch (const Error& error) {  // as in containers without the capability `utility`
    row("health", fmt::format("not known: {}", error.what()));
    return;
  }
  const auto known = [](const auto& value) { return value ? fmt::format("{}", *value) : std::string("?"); };
  row("health", fmt::format("driver {}, {} degrees Celsius", health.driver, known(health.temperature)));
  row("memory errors", health.uncorrected ? fmt::format("{} uncorrected, {} corrected since the driver was loaded",
                                                        *health.uncorrected, known(health.corrected))
                                          : "no ECC");
  const std::vector<std::string> reasons = names_of_clocks_event(health.clocks_event.value_or(0), false);
  row("clocks", !health.clocks_event ? "not known"
                : reasons.empty()    ? "not held back"
                                     : fmt::format("held back by {}", fmt::join(reasons, ", ")));
  for (const std::string& fault : faults_of(health)) findings.unsound.push_back(device + ": " + fault);
}

void check_gpu(int index, Findings& findings) {
  const GpuInfo gpu = gpu_info(index);
  const std::string device = fmt::format("GPU {}", index);
  row(device, fmt::format("{}, compute capability {}.{}", gpu.name, gpu.major, gpu.minor));
  const std::unique_ptr<Context> context = cli::Machine{.gpu = true, .index = index, .trial = true}.make_context();
  for (const DType dtype : {DType::f32, DType::f16}) check_convolution(*context, device, dtype, findings);
  measure_memory(*context, gpu.bandwidth);
  check_health(device, gpu.address, findings);  // while it is still warm
}

}  // namespace

void self_test(const std::string& device) {
  const std::string reason = device == "cpu" ? "--device=cpu" : cli::why_no_gpu();
  if (device == "gpu" && !reason.empty()) throw Error(Fault::resource, "--device=gpu: no GPU: " + reason);
  Findings findings;
  if (reason.empty()) {
    check_driver(findings);
    for (int index = 0; index < cuda_device_count(); ++index) check_gpu(index, findings);
  } else {
    row("GPU", fmt::format("none: {}; the processor is looked at", reason));
    const std::unique_ptr<Context> context = cli::Machine{}.make_context();
    check_convolution(*context, "CPU", DType::f32, findings);
    measure_memory(*context, 0);
  }
  if (!findings.wrong.empty())
    throw Error(Fault::numeric, fmt::format("self-test: {}", fmt::join(findings.wrong, "; ")));
  if (!findings.unsound.empty())
    throw Error(Fault::resource, fmt::format("self-test: {}", fmt::join(findings.unsound, "; ")));
  row("self-test", "passed");
}

}  // namespace dtrain::info
