// CUDA kernels of top_k and nms. top_k: radix select per row, one block each, then a bitonic sort of the selected keys
// in shared memory, or in device memory if they do not fit. nms: a bit matrix of pairwise suppression, which one block
// per row scans 64 boxes at a time.
#include "dtrain/ops/top_k.h"
#include "libdtrain/ops/box_math.h"
#include "libdtrain/ops/match_math.h"
#include "libdtrain/ops/selection_kernels.cuh"
#include "libdtrain/ops/top_k_kernels.h"
#include "libdtrain/ops/top_k_math.h"

namespace dtrain::cuda {
namespace {

// Keys that fit in static shared memory beside SelectionScratch.
constexpr int64_t kSharedKeys = 4096;

struct TopScratch {
  SelectionScratch selection;
  int found;
  uint64_t keys[kSharedKeys];
};

// Bitonic sort of keys[count], descending, by all threads of a block; `count` is a power of two.
__device__ void sort_descending(uint64_t* keys, int count) {
  for (int run = 2; run <= count; run *= 2)
    for (int step = run / 2; step > 0; step /= 2) {
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < count / 2; i += static_cast<int>(blockDim.x)) {
        const int low = 2 * i - (i & (step - 1)), high = low + step;
        const uint64_t a = keys[low], b = keys[high];
        if ((a < b) == ((low & run) == 0)) keys[low] = b, keys[high] = a;
      }
    }
  __syncthreads();
}

// `many`: null, or `room` keys per row, if shared memory is too small.
template <class T>
__global__ void __launch_bounds__(kSelectionThreads)
    top_k_kernel(int64_t n, int64_t k, const T* scores, const int32_t* counts, uint64_t* many, int64_t room,
                 float* values, int32_t* indices) {
  TopScratch& s = *shared_memory<TopScratch>();
  uint64_t* const keys = many != nullptr ? many + blockIdx.x * room : s.keys;
  const int64_t row = blockIdx.x, count = counts != nullptr ? within(counts[row], n) : n;
  const T* const from = scores + row * n;
  const int wanted = static_cast<int>(count < k ? count : k);
  const auto key = [=](int64_t i) { return ScoreKey::of(to_float(from[i]), i); };
  const uint64_t threshold = wanted < count ? select_largest(count, wanted, key, s.selection).threshold : 1;
  if (threadIdx.x == 0) s.found = 0;
  __syncthreads();
  for_each_key(count, key, [&](int64_t, uint64_t found) {
    if (found >= threshold) keys[atomicAdd(&s.found, 1)] = found;
  });
  int sorted = 1;
  while (sorted < wanted) sorted *= 2;
  for (int i = wanted + static_cast<int>(threadIdx.x); i < sorted; i += static_cast<int>(blockDim.x)) keys[i] = 0;
  sort_descending(keys, sorted);
  for (int64_t i = threadIdx.x; i < k; i += blockDim.x) {
    values[row * k + i] = i < wanted ? ScoreKey::score(keys[i]) : -INFINITY;
    indices[row * k + i] = i < wanted ? ScoreKey::index(keys[i]) : -1;
  }
}

constexpr int kTile = 64;  // boxes per word of the bit matrix
constexpr int kScanThreads = 1024;

struct BoxTile {
  Box box[kTile];
  float area[kTile];
  int32_t group[kTile];
};

// Bit b of suppressed[row, i, w]: box i suppresses the later box 64 w + b. One thread per word; words of tiles before
// its own are not written. `groups` may be null.
__global__ void __launch_bounds__(kTile)
    suppression_kernel(NmsOptions options, int64_t k, const float* boxes, const int32_t* groups, uint64_t* suppressed) {
  if (blockIdx.x < blockIdx.y) return;
  BoxTile& tile = *shared_memory<BoxTile>();
  const float margin = size_margin(options.plus_one);
  const int64_t first = int64_t{blockIdx.z} * k, column = int64_t{blockIdx.x} * kTile;
  const int64_t i = int64_t{blockIdx.y} * kTile + threadIdx.x;
  const int count = static_cast<int>(k - column < kTile ? k - column : kTile);
  if (const int j = static_cast<int>(threadIdx.x); j < count) {
    tile.box[j] = box_at(boxes + 4 * (first + column + j));
    tile.area[j] = box_area(tile.box[j], margin);
    tile.group[j] = groups != nullptr ? groups[first + column + j] : 0;
  }
  __syncthreads();
  if (i >= k) return;
  const Box own = box_at(boxes + 4 * (first + i));
  const float area = box_area(own, margin);
  const int32_t group = groups != nullptr ? groups[first + i] : 0;
  uint64_t word = 0;
  for (int j = 0; j < count; ++j) {
    const bool drops = box_overlap(own, area, tile.box[j], tile.area[j], margin) > options.threshold;
    if (drops && group == tile.group[j] && column + j > i) word |= uint64_t{1} << j;
  }
  suppressed[(first + i) * gridDim.x + blockIdx.x] = word;
}

// Shared memory: a tile's own words, its kept boxes and their running count; followed by a word of suppressed boxes per
// tile.
struct Scan {
  uint64_t own[kTile];
  uint64_t kept;
  int64_t count;
};

// Scans the boxes of tile `w` that are not in `out`, keeping up to m in total. Called by one thread.
__device__ void keep_in_tile(Scan& s, uint64_t out, int64_t w, int64_t m, int32_t* kept) {
  uint64_t alive = ~out;
  s.kept = 0;
  while (alive != 0 && s.count < m) {
    const int i = __ffsll(static_cast<long long>(alive)) - 1;
    const uint64_t bit = uint64_t{1} << i;
    kept[s.count++] = static_cast<int32_t>(w * kTile + i);
    s.kept |= bit;
    alive &= ~(bit | s.own[i]);
  }
}

// Marks boxes of later tiles that the kept boxes of tile w suppress. Neighbouring threads access neighbouring words,
// several loads in flight.
__device__ void suppress_later(uint64_t kept, int64_t w, int64_t tiles, const uint64_t* words,
                               unsigned long long* out) {
  constexpr int kRowsAtOnce = kScanThreads / kTile;
  const int row = static_cast<int>(threadIdx.x) / kTile;
  for (int64_t later = w + 1 + threadIdx.x % kTile; later < tiles; later += kTile) {
    uint64_t drops = 0;
#pragma unroll
    for (int i = 0; i < kTile; i += kRowsAtOnce)
      if (kept >> (i + row) & 1) drops |= words[(w * kTile + i + row) * tiles + later];
    if (drops != 0) atomicOr(out + later, drops);
  }
}

__global__ void __launch_bounds__(kScanThreads)
    scan_kernel(int64_t k, int64_t m, const float* scores, const uint64_t* suppressed, int32_t* kept, int32_t* counts) {
  Scan& s = *shared_memory<Scan>();
  auto* const out = reinterpret_cast<unsigned long long*>(&s + 1);
  const int64_t row = blockIdx.x, tiles = (k + kTile - 1) / kTile, thread = threadIdx.x;
  const uint64_t* const words = suppressed + row * k * tiles;
  for (int64_t w = thread; w < tiles; w += kScanThreads) out[w] = 0;
  if (thread == 0) s.count = 0;
  __syncthreads();
  for (int64_t i = thread; i < tiles * kTile; i += kScanThreads)
    if (i >= k || !(scores[row * k + i] > -INFINITY)) atomicOr(out + i / kTile, 1ull << i % kTile);
  __syncthreads();
  for (int64_t w = 0; w < tiles && s.count < m; ++w) {
    if (const int64_t i = w * kTile + thread; thread < kTile) s.own[thread] = i < k ? words[i * tiles + w] : 0;
    __syncthreads();
    if (thread == 0) keep_in_tile(s, out[w], w, m, kept + row * m);
    __syncthreads();
    suppress_later(s.kept, w, tiles, words, out);
    __syncthreads();
  }
  for (int64_t i = s.count + thread; i < m; i += kScanThreads) kept[row * m + i] = -1;
  if (thread == 0) counts[row] = static_cast<int32_t>(s.count);
}

}  // namespace

void top_k(Context& context, const Tensor& scores, const Tensor& counts, const Tensor& values, const Tensor& indices) {
  const int64_t rows = scores.dim(0), n = scores.dim(1), k = values.dim(1);
  int64_t room = kSharedKeys;
  while (room < std::min(n, k)) room *= 2;
  const Tensor many = room > kSharedKeys ? context.empty({rows, room}, DType::i64) : Tensor();
  dispatch_floating(scores.dtype(), "top_k", [&]<class T>(T) {
    launch(context, top_k_kernel<T>, {static_cast<unsigned>(rows), kSelectionThreads, sizeof(TopScratch)}, n, k,
           scores.data<T>(), counts ? counts.data<int32_t>() : nullptr,
           many ? static_cast<uint64_t*>(many.raw()) : nullptr, room, values.data<float>(), indices.data<int32_t>());
  });
}

void nms(Context& context, const Tensor& boxes, const Tensor& scores, const Tensor& groups, const NmsOptions& options,
         const Tensor& kept, const Tensor& counts) {
  const int64_t rows = scores.dim(0), k = scores.dim(1), m = kept.dim(1), tiles = (k + kTile - 1) / kTile;
  const Tensor suppressed = context.empty({rows, k, tiles}, DType::i64);
  auto* const words = static_cast<uint64_t*>(suppressed.raw());
  const auto side = static_cast<unsigned>(tiles), depth = static_cast<unsigned>(rows);
  if (k > 0)
    launch(context, suppression_kernel, {{side, side, depth}, kTile, sizeof(BoxTile)}, options, k, boxes.data<float>(),
           groups ? groups.data<int32_t>() : nullptr, words);
  launch(context, scan_kernel, {depth, kScanThreads, sizeof(Scan) + static_cast<size_t>(tiles) * sizeof(uint64_t)}, k,
         m, scores.data<float>(), words, kept.data<int32_t>(), counts.data<int32_t>());
}

}  // namespace dtrain::cuda
