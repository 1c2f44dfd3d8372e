// GpuJpegDecoder: batching for nvJPEG and handling of rejected images.
#include <algorithm>
#include <cstring>

#include "dtrain/ops/jpeg_decode.h"
#include "libdtrain/cuda/nvjpeg_library.h"
#include "libdtrain/cuda/runtime.h"
#include "libdtrain/ops/jpeg_decode_kernels.cuh"

namespace dtrain {
namespace {

using cuda::nvjpeg;
using cuda::ResamplePlan;

void check(nvjpegStatus_t status, const char* call) {
  if (status == NVJPEG_STATUS_SUCCESS) return;
  const char* meaning = status == NVJPEG_STATUS_ALLOCATOR_FAILURE ? ": no memory" : "";
  throw Error(Fault::resource, concat("nvJPEG: ", call, " has status ", static_cast<int>(status), meaning));
}

// Whether an error concerns the image rather than the library or device.
bool is_about_an_image(nvjpegStatus_t status) {
  return status == NVJPEG_STATUS_BAD_JPEG || status == NVJPEG_STATUS_JPEG_NOT_SUPPORTED ||
         status == NVJPEG_STATUS_INCOMPLETE_BITSTREAM || status == NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED;
}

struct Destroy {
  void operator()(nvjpegHandle_t handle) const noexcept { static_cast<void>(nvjpeg().destroy(handle)); }
  void operator()(nvjpegJpegState_t state) const noexcept { static_cast<void>(nvjpeg().state_destroy(state)); }
  void operator()(nvjpegJpegStream_t stream) const noexcept { static_cast<void>(nvjpeg().stream_destroy(stream)); }
};
template <class T>
using Owned = std::unique_ptr<T, Destroy>;

Owned<nvjpegHandle> make_handle(Context& context, const JpegDecodeOptions& options) {
  // Strict: rejects damaged images; the caller decides about them.
  const unsigned flags =
      NVJPEG_FLAGS_BITSTREAM_STRICT | (options.fancy_upsampling ? NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION : 0);
  nvjpegHandle_t handle = nullptr;
  if (nvjpeg().create(NVJPEG_BACKEND_HARDWARE, nullptr, nullptr, flags, &handle) != NVJPEG_STATUS_SUCCESS) {
    check(nvjpeg().create(NVJPEG_BACKEND_GPU_HYBRID, nullptr, nullptr, flags, &handle), "nvjpegCreateEx");
    context.notices().push_back(
        "this GPU has no JPEG hardware decoder that nvJPEG supports: its multiprocessors decode");
  }
  return Owned<nvjpegHandle>(handle);
}

// Whether the filters stay inside the image and produce the requested size.
template <class Weight>
void check(const Resampling<Weight>& by, const EncodedImage& image, const Tensor& pixels) {
  DT_CHECK(by.y.count() == pixels.dim(1) && by.x.count() == pixels.dim(2) && by.x.begin() >= 0 && by.y.begin() >= 0 &&
               by.x.end() <= image.width && by.y.end() <= image.height,
           "JPEG decode: filters that make ", by.y.count(), "x", by.x.count(), " pixels of another image than one of ",
           image.height, "x", image.width, ", or of another size than ", pixels.shape());
}

// Image to decode; its pixels go to byte `offset` of the memory for decoded images.
struct Job {
  int64_t row;
  const EncodedImage* image;
  size_t offset;
  bool refused = false;
};

}  // namespace

struct GpuJpegDecoder::State {
  State(Context& gpu, const JpegDecodeOptions& given)
      : context(gpu),
        options(given),
        handle(make_handle(gpu, given)),
        words(ContainerMemory<int32_t>{gpu.host_allocator()}) {
    nvjpegJpegState_t new_state = nullptr;
    check(nvjpeg().state_create(handle.get(), &new_state), "nvjpegJpegStateCreate");
    state.reset(new_state);
    nvjpegJpegStream_t new_stream = nullptr;
    check(nvjpeg().stream_create(handle.get(), &new_stream), "nvjpegJpegStreamCreate");
    header.reset(new_stream);
    decoded = empty_for_copies({static_cast<int64_t>(options.memory)}, DType::u8);
  }

  // Memory for the copy stream: kernels enqueued earlier may still read its former contents.
  Tensor empty_for_copies(Shape shape, DType dtype) {
    Tensor tensor = context.empty(shape, dtype);
    context.wait(Stream::copy, context.record());
    return tensor;
  }

  // Whether nvJPEG supports the image and agrees about its size, so that it writes within bounds.
  bool supports(const EncodedImage& image) {
    unsigned width = 0, height = 0;
    int unsupported = 1;
    const auto good = [](nvjpegStatus_t status) { return status == NVJPEG_STATUS_SUCCESS; };
    return good(nvjpeg().parse_header(handle.get(), bytes_of(image), image.jpeg.size(), header.get())) &&
           good(nvjpeg().get_dimensions(header.get(), &width, &height)) &&
           good(nvjpeg().is_supported(handle.get(), header.get(), &unsupported)) && unsupported == 0 &&
           static_cast<int64_t>(width) == image.width && static_cast<int64_t>(height) == image.height;
  }

  static const unsigned char* bytes_of(const EncodedImage& image) {
    return reinterpret_cast<const unsigned char*>(image.jpeg.data());
  }
  uint8_t* pixels_of(const Job& job) const { return decoded.data<uint8_t>() + job.offset; }

  void decode(std::span<Job> jobs);
  void make_samples(std::span<const Job> jobs, const Tensor& pixels);
  template <class Weight>
  int64_t append(const Filter<Weight>& filter);

  Context& context;
  const JpegDecodeOptions options;
  Owned<nvjpegHandle> handle;
  Owned<nvjpegJpegState> state;
  Owned<nvjpegJpegStream> header;
  Tensor decoded;                                        // images
  std::vector<int32_t, ContainerMemory<int32_t>> words;  // plans and tables, pinned
  Tensor device_words;
  Event done;  // after the last enqueued work: nvJPEG's state and the table memory are free again
};

// nvJPEG reports a bad image of a batch, not which: bisects the batch.
void GpuJpegDecoder::State::decode(std::span<Job> jobs) {
  const cudaStream_t stream = context.runtime().copy();
  std::vector<const unsigned char*> data;
  std::vector<size_t> lengths;
  std::vector<nvjpegImage_t> destinations;
  for (const Job& job : jobs) {
    data.push_back(bytes_of(*job.image));
    lengths.push_back(job.image->jpeg.size());
    nvjpegImage_t& to = destinations.emplace_back();
    to.channel[0] = pixels_of(job);
    to.pitch[0] = size_t{3} * static_cast<size_t>(job.image->width);
  }
  context.wait(done);
  constexpr int kProcessorThreads = 1;
  check(nvjpeg().initialize(handle.get(), state.get(), static_cast<int>(jobs.size()), kProcessorThreads,
                            NVJPEG_OUTPUT_RGBI),
        "nvjpegDecodeBatchedInitialize");
  const nvjpegStatus_t status =
      nvjpeg().decode(handle.get(), state.get(), data.data(), lengths.data(), destinations.data(), stream);
  done = context.record(Stream::copy);
  if (!is_about_an_image(status)) return check(status, "nvjpegDecodeBatched");
  if (jobs.size() == 1) {
    jobs.front().refused = true;
    return;
  }
  decode(jobs.first(jobs.size() / 2));
  decode(jobs.subspan(jobs.size() / 2));
}

template <class Weight>
int64_t GpuJpegDecoder::State::append(const Filter<Weight>& filter) {
  static_assert(sizeof(Weight) == sizeof(int32_t));
  const size_t at = words.size();
  words.insert(words.end(), filter.first.begin(), filter.first.end());
  const size_t weights = words.size();
  words.resize(weights + filter.weights.size());
  std::memcpy(words.data() + weights, filter.weights.data(), filter.weights.size() * sizeof(Weight));
  return static_cast<int64_t>(at);
}

void GpuJpegDecoder::State::make_samples(std::span<const Job> jobs, const Tensor& pixels) {
  constexpr size_t kPlanWords = sizeof(ResamplePlan) / sizeof(int32_t);
  words.assign(jobs.size() * kPlanWords, 0);
  int64_t plans = 0;
  for (const Job& job : jobs) {
    if (job.refused) continue;
    ResamplePlan plan;
    plan.image = pixels_of(job);
    plan.pitch = 3 * int64_t{job.image->width};
    plan.row = job.row;
    const auto add = [&](const auto& by) {
      plan.taps_x = by.x.taps;
      plan.taps_y = by.y.taps;
      plan.x = append(by.x);
      plan.y = append(by.y);
    };
    if (pixels.dtype() == DType::u8)
      add(job.image->to_u8);
    else
      add(job.image->to_f32);
    std::memcpy(words.data() + static_cast<size_t>(plans++) * kPlanWords, &plan, sizeof plan);
  }
  const auto count = static_cast<int64_t>(words.size());
  if (device_words.count() < count) device_words = empty_for_copies({2 * count}, DType::i32);
  context.upload(words.data(), device_words.slice(0, count), Stream::copy);
  const auto* tables = device_words.data<int32_t>();
  cuda::resample(context, reinterpret_cast<const ResamplePlan*>(tables), plans, tables, pixels,
                 context.runtime().copy());
  done = context.record(Stream::copy);
}

GpuJpegDecoder::GpuJpegDecoder(Context& context, const JpegDecodeOptions& options) {
  DT_CHECK(!context.is_cpu(), "JPEG decoding on a GPU: the context is on a CPU");
  state_ = std::make_unique<State>(context, options);
}

GpuJpegDecoder::~GpuJpegDecoder() {
  try {
    state_->context.wait(state_->done);
  } catch (const Error&) {  // the device has failed: decoding stops
  }
}

std::vector<int64_t> GpuJpegDecoder::decode(std::span<const EncodedImage> images, const Tensor& pixels) {
  State& s = *state_;
  DT_CHECK(pixels.shape().rank() == 4 && pixels.dim(0) == static_cast<int64_t>(images.size()) && pixels.dim(3) == 3 &&
               (pixels.dtype() == DType::u8 || pixels.dtype() == DType::f32),
           "JPEG decode of ", images.size(), " images into ", pixels.dtype(), " ", pixels.shape());
  s.context.require(pixels, "JPEG decode");
  std::vector<Job> part;
  std::vector<int64_t> refused;
  size_t bytes = 0;
  const auto finish_part = [&] {
    if (part.empty()) return;
    s.decode(part);
    s.make_samples(part, pixels);
    for (const Job& job : part)
      if (job.refused) refused.push_back(job.row);
    part.clear();
    bytes = 0;
  };
  for (int64_t row = 0; row < pixels.dim(0); ++row) {
    const EncodedImage& image = images[static_cast<size_t>(row)];
    if (image.jpeg.empty()) continue;
    if (pixels.dtype() == DType::u8)
      check(image.to_u8, image, pixels);
    else
      check(image.to_f32, image, pixels);
    const size_t needed = align_up(size_t{3} * static_cast<size_t>(image.width) * static_cast<size_t>(image.height));
    if (needed > s.options.memory || !s.supports(image)) {
      refused.push_back(row);
      continue;
    }
    if (bytes + needed > s.options.memory) finish_part();
    part.push_back({row, &image, bytes});
    bytes += needed;
  }
  finish_part();
  std::ranges::sort(refused);
  return refused;
}

}  // namespace dtrain
