// dtrain-info: what this build is, what it has loaded and what it runs on.
#include <dlfcn.h>
#include <gif_lib.h>
#include <link.h>
#include <png.h>
#include <tiffio.h>
#include <webp/decode.h>
#include <zlib.h>

#include <string>
#include <thread>
#include <vector>

// jpeglib.h needs what comes before it.
#include <cstddef>
#include <cstdio>

#include <jpeglib.h>

#include <fmt/format.h>

#include "apps/cli/command_line.h"
#include "apps/cli/environment.h"
#include "apps/cli/machine.h"
#include "apps/cli/run_main.h"
#include "apps/info/conv.h"
#include "apps/info/cpu_features.h"
#include "apps/info/host.h"
#include "apps/info/models.h"
#include "apps/info/ranks.h"
#include "apps/info/selftest.h"
#include "apps/info/topology.h"
#include "dtrain/core/context.h"
#include "dtrain/core/gpu_info.h"
#include "libdtrain/cpu/onednn/loaded.h"

namespace {

using namespace dtrain;

constexpr char kAbout[] =
    "Prints versions, loaded libraries, and what the processor offers; with --models, the image classifiers; with "
    "--ranks, under mpirun, who the ranks of a job are, what each runs on, and what is off; with --selftest, whether "
    "the GPUs, or else the processor, compute as they should.\n"
    "Exit codes: 0 done, 1 usage, or something is off, 3 a convolution of --selftest is wrong, 4 a rank or the network "
    "failed, 6 --selftest found a GPU that should not be trained on, or none with --device=gpu.";

void row(const std::string& name, const std::string& value) { fmt::print("{:<14}{}\n", name + ":", value); }

double gibibytes(size_t bytes) { return static_cast<double>(bytes) / (size_t{1} << 30); }

// The file that a loaded function comes from.
std::string origin(const void* function) {
  Dl_info info{};
  const bool found = dladdr(function, &info) != 0 && info.dli_fname != nullptr;
  return found ? info.dli_fname : "?";
}

template <class Function>
std::string origin(Function* function) {
  return origin(reinterpret_cast<const void*>(function));
}

std::string version_of_png() {
  const png_uint_32 png = png_access_version_number();
  return fmt::format("{}.{}.{}", png / 10000, png / 100 % 100, png % 100);
}

// Of "LIBTIFF, Version 4.5.0\nCopyright ...".
std::string version_of_tiff() {
  const std::string text = TIFFGetVersion(), line = text.substr(0, text.find('\n'));
  return line.substr(line.rfind(' ') + 1);
}

std::string version_of_webp() {
  const int webp = WebPGetDecoderVersion();
  return fmt::format("{}.{}.{}", webp >> 16, webp >> 8 & 255, webp & 255);
}

void print_libraries() {
  const cpu::LoadedOnednn onednn = cpu::loaded_onednn();
  row("oneDNN", fmt::format("{}  {}", onednn.version, origin(onednn.code_address)));
  // libjpeg has no function that tells the version of the loaded library: this is the one built against.
  constexpr int kTurbo = LIBJPEG_TURBO_VERSION_NUMBER;
  row("libjpeg", fmt::format("libjpeg-turbo {}.{}.{}, interface {}  {}", kTurbo / 1000000, kTurbo / 1000 % 1000,
                             kTurbo % 1000, JPEG_LIB_VERSION, origin(jpeg_std_error)));
  row("libpng", fmt::format("{}  {}", version_of_png(), origin(png_access_version_number)));
  // Nor has giflib.
  row("giflib", fmt::format("{}.{}.{}  {}", GIFLIB_MAJOR, GIFLIB_MINOR, GIFLIB_RELEASE, origin(GifErrorString)));
  row("libtiff", fmt::format("{}  {}", version_of_tiff(), origin(TIFFGetVersion)));
  row("libwebp", fmt::format("{}  {}", version_of_webp(), origin(WebPGetDecoderVersion)));
  row("zlib", fmt::format("{}  {}", zlibVersion(), origin(zlibVersion)));
}

void print_gpus() {
  std::string reason;
  const int count = cuda_device_count(&reason);
  if (count == 0) row("GPU", "none: " + reason);
  for (int i = 0; i < count; ++i) {
    const GpuInfo gpu = gpu_info(i);
    row(fmt::format("GPU {}", i),
        fmt::format("{}, compute capability {}.{}, {} multiprocessors, {:.1f} GiB ({:.1f} free){}", gpu.name, gpu.major,
                    gpu.minor, gpu.multiprocessors, gibibytes(gpu.memory), gibibytes(gpu.free_memory),
                    gpu.bandwidth > 0 ? fmt::format(", {:.2f} TB/s", gpu.bandwidth / 1e12) : ""));
  }
  const GpuVersions versions = gpu_versions();
  if (versions.runtime == 0) return;
  const auto cuda = [](int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); };
  const auto library = [](int version) {
    return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
  };
  row("CUDA", fmt::format("{}; the driver {}", cuda(versions.runtime),
                          versions.driver > 0 ? "serves up to " + cuda(versions.driver) : "is not there"));
  for (const GpuLibrary& l : versions.libraries)
    row(l.name, !l.problem.empty() ? l.problem
                : l.built > 0 ? fmt::format("{}, built against {}  {}", library(l.loaded), library(l.built), l.file)
                              : fmt::format("{}  {}", library(l.loaded), l.file));
}

int run(const std::vector<std::string>& argv) {
  bool ranks = false, models = false, selftest = false;
  std::string conv;
  info::RankOptions options;
  cli::FlagSet flags("dtrain-info", "[flags]", kAbout);
  flags.add("ranks", ranks, "under mpirun: what the ranks of the job run on, and how fast neighbours talk");
  flags.add(
      "models", models,
      "print a table of the image classifiers instead: sizes, published accuracies, and weights that load by name");
  flags.add("selftest", selftest,
            "check each GPU: the driver against the toolkit, errors of memory, what slows the clocks, a convolution "
            "against double precision, the bandwidth of memory; without a GPU the latter two on the processor");
  flags.add(
      "conv", conv,
      "list the CPU algorithms of a convolution NxCxHxW,K,RxS,stride,pad,dtype[,pass], in the order of preference: "
      "which one is taken, and why the others are not; dtype: f32, bf16 or int8");
  flags.group("With --ranks");
  options.job.declare(flags);
  flags.add("expect_hosts", options.expect_hosts,
            "exit with code 1 if the ranks run on another number of hosts; 0: any number", cli::kCount);
  flags.group("With --ranks or --selftest");
  flags.add_choice("device", options.device, {"auto", "cpu", "gpu"},
                   "what the ranks would train on, or is checked; auto: GPUs where there are any");
  if (!cli::read_flags(flags, argv)) return 0;
  DT_CHECK(models + selftest + ranks + !conv.empty() <= 1,
           "expected at most one of --models, --selftest, --ranks and --conv");
  if (models) {
    fmt::print("{}", info::table_of_models());
    return 0;
  }
  if (!conv.empty()) {
    const auto context = make_cpu_context(cli::with_environment(CpuOptions{}));
    for (const std::string& line : info::conv_lines(*context, conv)) fmt::print("{}\n", line);
    return 0;
  }
  if (selftest) {
    info::self_test(options.device);
    return 0;
  }
  if (ranks) {
    info::show_ranks(options,
                     {{"oneDNN", cpu::loaded_onednn().version}, {"libpng", version_of_png()}, {"zlib", zlibVersion()}});
    return 0;
  }
  row("dtrain", cli::version());
  row("compiler", fmt::format("GCC {}", __VERSION__));
  print_libraries();
  row("CPU", info::cpu_features());
  for (const std::string& line : info::topology_lines())
    line.starts_with(' ') ? fmt::print("{}\n", line) : row("machine", line);
  row("cores", fmt::format("{}", std::thread::hardware_concurrency()));
  const auto context = cli::Machine().make_context();
  row("threads", fmt::format("{} for computing", context->threads()));
  row("kernels", fmt::format("{}, of {}", name_of(context->isa()), cpu_isa_names()));
  print_gpus();
  for (const std::string& line : info::advice_lines(info::host_advice(cli::environment()))) fmt::print("{}\n", line);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return cli::run_main([&] { return run({argv, argv + argc}); });
}
