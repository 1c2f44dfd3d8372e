#include "libdtrain/cpu/tile_conv.h"

#include <xmmintrin.h>

#include <algorithm>

#include "libdtrain/core/context.h"
#include "libdtrain/cpu/gradient_phases.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/parallel.h"
#include "libdtrain/cpu/shares.h"
#include "libdtrain/cpu/windows.h"

namespace dtrain::cpu {
namespace {

// Bytes of images and results that pass all panels at a time: more where the panels do not stay in the second-level
// cache and are read anew for each such block.
constexpr int64_t kBlock = int64_t{512} << 10, kLargeBlock = int64_t{768} << 10, kCachedPanels = int64_t{1} << 20;

// Whether output pixel i reads input pixel i alone.
bool reads_in_order(const TapConv& o) {
  return o.taps.size() == 1 && o.taps[0].row == 0 && o.taps[0].column == 0 && o.run_pixels == 1 && o.stride_h == 1 &&
         o.stride_w == 1 && o.p == o.h && o.q == o.w;
}

// How the pixels that rows of the output read are copied: those that strides divide into as many planes, so that
// neighbours in a plane are what neighbours of the output read. Where runs have several pixels, columns stay together.
struct Planes {
  int64_t row, column;             // of the image, the first ones that output pixel (0, 0) reads
  int64_t step_h, step_w;          // between the rows and columns of a plane
  int64_t more_rows;               // of a plane than of the output
  bool skips_rows;                 // of the image: no output reads them
  int64_t columns, pixel;          // of a row of a plane, and the elements of one of them
  std::vector<int64_t> offset_of;  // [taps]: elements from the start of the tap's plane
  std::vector<int64_t> plane_of;   // [taps]
  std::vector<Tap> starts;         // [planes], of those that taps read: from (row, column) on

  explicit Planes(const TapConv& o) {
    const bool joined = o.run_pixels > 1;
    row = o.taps[0].row, column = o.taps[0].column;
    int64_t last_row = row, last_column = column;
    for (const Tap& tap : o.taps) {
      row = std::min(row, tap.row), column = std::min(column, tap.column);
      last_row = std::max(last_row, tap.row), last_column = std::max(last_column, tap.column);
    }
    step_h = o.stride_h, step_w = joined ? 1 : o.stride_w;
    pixel = joined ? o.stride_w * o.c : o.c;
    more_rows = (last_row - row) / step_h;
    skips_rows = last_row - row + 1 < step_h;
    columns = joined ? o.q + (o.run_pixels - 1) / o.stride_w : o.q + (last_column - column) / step_w;
    for (const Tap& tap : o.taps) {
      const int64_t down = tap.row - row, across = tap.column - column;
      plane_of.push_back(plane_from({down % step_h, across % step_w}));
      offset_of.push_back((down / step_h * columns + across / step_w) * pixel);
    }
  }
  int64_t row_elements() const { return columns * pixel * std::ssize(starts); }
  // What is copied for so many rows of the output of an image, and for any of so many images of `p` rows.
  int64_t elements(int64_t rows) const { return (rows + more_rows) * row_elements(); }
  int64_t most_elements(int64_t rows, int64_t p) const {
    const int64_t images = (rows + p - 2) / p + 1;
    return (rows + images * more_rows) * row_elements();
  }

 private:
  int64_t plane_from(const Tap& start) {
    const auto is_it = [&](const Tap& one) { return one.row == start.row && one.column == start.column; };
    const auto found = std::find_if(starts.begin(), starts.end(), is_it);
    const int64_t number = found - starts.begin();
    if (found == starts.end()) starts.push_back(start);
    return number;
  }
};

// Rows [first, last) of the output of an image, and where the pixels that they read begin in the block's copy.
struct Segment {
  int64_t image, first, last, begin;

  int64_t rows() const { return last - first; }
};

// What one thread has in hand: a block of rows of the output, and what they read.
template <class T>
class Block {
 public:
  // `copy`: memory for what most_elements() says of the largest block.
  Block(const TapConv& o, const Planes& planes, const T* x, T outside, T* copy)
      : o_(o), planes_(planes), x_(x), outside_(outside), in_order_(reads_in_order(o)), copy_(copy) {}

  // The rows of the product that are rows [first, last) of all images' output, for each image or for all of them; what
  // lies between them is not stored. They last until the next call, and lack a panel.
  const std::vector<TiledRows<T>>& take(int64_t first, int64_t last) {
    std::vector<Segment> segments;
    if (in_order_)
      segments.push_back({0, first, last, 0});
    else
      segments = copied_segments(first, last);
    const auto taps = static_cast<int64_t>(o_.taps.size());
    at_.clear(), places_.clear(), rows_.clear();
    for (const Segment& segment : segments) add_places(segment), add_runs(segment);
    const T* const* at = at_.data();
    const int64_t* places = places_.data();
    for (const Segment& segment : segments) {
      const int64_t count = pixels_of(segment);
      rows_.push_back(
          {count, taps, o_.run_pixels * o_.c, at, in_order_ ? o_.c : planes_.pixel, nullptr, places, 0, {}});
      at += taps, places += count;
    }
    return rows_;
  }

  // About what take() of these rows reads of x. Where strides leave out rows, bringing all would take longer.
  Upcoming source_of(int64_t first, int64_t last) const {
    if (planes_.skips_rows) return {x_, 0};
    const auto begin_of = [&](int64_t row) { return (row / o_.p * o_.h + row % o_.p * o_.stride_h) * o_.w * o_.c; };
    return {x_ + begin_of(first), (begin_of(last) - begin_of(first)) * static_cast<int64_t>(sizeof(T))};
  }

 private:
  int64_t pixels_of(const Segment& segment) const {
    return (segment.rows() - 1) * (in_order_ ? o_.q : planes_.columns) + o_.q;
  }
  void add_places(const Segment& segment) {
    const int64_t width = in_order_ ? o_.q : planes_.columns;
    const auto begin = static_cast<int64_t>(places_.size());
    places_.resize(places_.size() + static_cast<size_t>(pixels_of(segment)), -1);
    for (int64_t i = 0; i < segment.rows(); ++i) {
      const int64_t row = segment.image * o_.p + segment.first + i;
      int64_t place = o_.places.first + row / o_.p * o_.places.image + row % o_.p * o_.places.row;
      for (int64_t j = 0; j < o_.q; ++j, place += o_.places.pixel)
        places_[static_cast<size_t>(begin + i * width + j)] = place;
    }
  }
  void add_runs(const Segment& segment) {
    if (in_order_) return at_.push_back(x_ + segment.first * o_.w * o_.c);
    for (size_t tap = 0; tap < o_.taps.size(); ++tap)
      at_.push_back(copy_ + segment.begin + planes_.plane_of[tap] * plane_elements(segment) + planes_.offset_of[tap]);
  }
  std::vector<Segment> copied_segments(int64_t first, int64_t last) {
    std::vector<Segment> segments;
    int64_t size = 0;
    for (int64_t at = first; at < last;) {
      const int64_t image = at / o_.p, end = std::min(last, (image + 1) * o_.p);
      segments.push_back({image, at - image * o_.p, end - image * o_.p, size});
      size += planes_.elements(segments.back().rows());
      at = end;
    }
    for (const Segment& segment : segments) copy(segment);
    return segments;
  }
  int64_t plane_elements(const Segment& segment) const {
    return (segment.rows() + planes_.more_rows) * planes_.columns * planes_.pixel;
  }
  void copy(const Segment& segment) {
    const int64_t rows = segment.rows() + planes_.more_rows, row_elements = planes_.columns * planes_.pixel;
    T* to = copy_ + segment.begin;
    for (const Tap& start : planes_.starts)
      for (int64_t i = 0; i < rows; ++i, to += row_elements)
        copy_row(segment.image, planes_.row + start.row + (segment.first + i) * planes_.step_h,
                 planes_.column + start.column, to);
  }
  // Every step_w-th pixel from `column` on of a row of an image.
  void copy_row(int64_t image, int64_t row, int64_t column, T* to) const {
    const int64_t step = planes_.step_w, count = planes_.columns * planes_.pixel / o_.c;
    if (row < 0 || row >= o_.h) {
      std::fill_n(to, count * o_.c, outside_);
      return;
    }
    const int64_t before = std::clamp<int64_t>((step - 1 - column) / step, 0, count);
    const int64_t end = std::clamp<int64_t>((o_.w - column + step - 1) / step, before, count);
    to = std::fill_n(to, before * o_.c, outside_);
    const T* from = x_ + ((image * o_.h + row) * o_.w + column + before * step) * o_.c;
    if (step == 1)
      to = std::copy_n(from, (end - before) * o_.c, to);
    else
      for (int64_t j = before; j < end; ++j, from += step * o_.c) to = std::copy_n(from, o_.c, to);
    std::fill_n(to, (count - end) * o_.c, outside_);
  }

  const TapConv& o_;
  const Planes& planes_;
  const T* x_;
  T outside_;
  bool in_order_;
  T* copy_;
  std::vector<const T*> at_;
  std::vector<int64_t> places_;
  std::vector<TiledRows<T>> rows_;
};

// Rows of the output in a block.
template <class T>
int64_t rows_of_block(const TapConv& o, const Planes& planes, int64_t panel_bytes) {
  const int64_t read = reads_in_order(o) ? o.w * o.c : planes.row_elements(), written = o.q * o.k;
  const int64_t bytes = panel_bytes > kCachedPanels ? kLargeBlock : kBlock;
  return std::max<int64_t>(bytes / ((read + written) * static_cast<int64_t>(sizeof(T))), 1);
}

// What a thread computes at a time: rows of the output, which are the share's pixels, `most` in a block, by panels.
template <class T, class Compute>
void compute_share(const TapConv& o, const Share& share, int64_t most, Block<T>& block, const FilterPanels& panels,
                   int64_t columns, const Compute& compute) {
  const int64_t all = share.panels() * panels.bytes, rows = share.last_pixel - share.first_pixel;
  const int64_t blocks = (rows + most - 1) / most;
  const auto row_of = [&](int64_t number) { return share.first_pixel + rows * std::min(number, blocks) / blocks; };
  for (int64_t number = 0; number < blocks; ++number) {
    const auto& parts = block.take(row_of(number), row_of(number + 1));
    const Upcoming next = block.source_of(row_of(number + 1), row_of(number + 2));
    const Portions next_pixels(next, share.panels() * std::ssize(parts));
    for (int64_t panel = share.first_panel, done = 0; panel < share.last_panel; ++panel) {
      const Portions next_panel({panels.at(panel + 1), panel + 1 < share.last_panel ? panels.bytes : 0},
                                std::ssize(parts));
      for (int64_t part = 0; part < std::ssize(parts); ++part, ++done) {
        TiledRows<T> one = parts[static_cast<size_t>(part)];
        one.panel = panels.at(panel);
        one.valid = std::min(columns, o.k - panel * columns);
        one.upcoming = all <= kCachedPanels ? next_pixels[done] : next_panel[part];
        compute(one, panel);
      }
    }
  }
}

TapConv taps_of(const ConvShape& o, int64_t taps_wide, int64_t run_pixels) {
  TapConv taps{o.n, o.h, o.w, o.c, o.p, o.q, o.k, o.stride_h, o.stride_w, {}, run_pixels, Places::in_order(o)};
  for (int64_t r = 0; r < o.r; ++r)
    for (int64_t s = 0; s < taps_wide; ++s)
      taps.taps.push_back({r * o.dilation_h - o.pad_top, run_pixels > 1 ? 0 : s * o.dilation_w - o.pad_left});
  return taps;
}

}  // namespace

TapConv tap_conv_of(const ConvShape& o) { return taps_of(o, o.s, 1); }

TapConv joined_tap_conv_of(const ConvShape& o) {
  ConvShape padded = o;
  padded.w = padded_width(o);
  return taps_of(padded, 1, o.s);
}

template <class T>
void compute_taps(const Context& context, const TapConv& o, const T* x, T outside, const void* panels, int64_t columns,
                  const ComputeRows<T>& compute) {
  const int64_t rows = o.n * o.p, count = (o.k + columns - 1) / columns, inner = o.inner();
  const FilterPanels filters{panels, columns * inner * static_cast<int64_t>(sizeof(T))};
  const int threads = context.threads();
  const bool divides_panels = count >= threads && (o.k * inner > rows * o.q * o.c || rows < threads);
  const Planes planes(o);
  const int64_t panels_of_share = divides_panels ? (count + threads - 1) / threads : count;
  const int64_t most =
      std::min(rows_of_block<T>(o, planes, panels_of_share * filters.bytes), std::max<int64_t>(rows, 1));
  const int64_t copied = reads_in_order(o) ? 0 : planes.most_elements(most, o.p);
  const Scratch<T> copies(context, threads * copied);
  // Each share of the panels copies all pixels, if they are copied: then one for each thread is enough.
  const int64_t least_panels = copied > 0 ? count : 1;
  const WorkShares shares(threads, divides_panels ? count : rows, divides_panels ? least_panels : (most + 1) / 2);
  parallel_shares(shares, [&](int64_t thread, int64_t number, int64_t begin, int64_t end) {
    const Share share = divides_panels ? Share{0, rows, begin, end} : Share{begin, end, 0, count};
    Block<T> block(o, planes, x, outside, copies.data() + thread * copied);
    compute_share(o, share, most, block, filters, columns,
                  [&](const TiledRows<T>& part, int64_t panel) { compute(part, panel, number); });
    _mm_sfence();  // others may read what was stored past the caches
  });
}

template void compute_taps(const Context&, const TapConv&, const Bf16*, Bf16, const void*, int64_t,
                           const ComputeRows<Bf16>&);
template void compute_taps(const Context&, const TapConv&, const uint8_t*, uint8_t, const void*, int64_t,
                           const ComputeRows<uint8_t>&);

namespace {

// The rows of y that were written from `column` on, where kernels have added them up in `to`, or by themselves.
void add_up(ResultSums& sums, int64_t share, const TiledRows<Bf16>& rows, const ColumnSums& to, int64_t column,
            int64_t columns, const Bf16* y) {
  int64_t written = 0;
  for (int64_t row = 0; row < rows.rows; ++row) {
    const int64_t place = rows.places[row];
    if (place < 0) continue;
    ++written;
    if (to.pivot == nullptr) sums.add_rows(share, column, columns, 1, y + place + column, 0);
  }
  if (to.pivot) sums.added(share, column, columns, written);
}

}  // namespace

void tile_conv(const Context& context, const TapConv& o, const Bf16* x, const Bf16* panels, const EndOf<Bf16>& end,
               Bf16* y, bool streams, ResultSums* sums) {
  const Kernels& kernels = context.kernels();
  const int64_t columns = kernels.product.columns;
  compute_taps<Bf16>(context, o, x, Bf16{}, panels, columns,
                     [&](const TiledRows<Bf16>& rows, int64_t panel, int64_t share) {
                       EndOf<Bf16> own = end;
                       if (own.bias) own.bias += panel * columns;
                       if (own.residual) own.residual += panel * columns;
                       if (sums) own.sums = sums->from(share, panel * columns);
                       kernels.tiles.pairs(rows, own, y + panel * columns, streams);
                       if (sums) add_up(*sums, share, rows, own.sums, panel * columns, columns, y);
                     });
}

bool tile_dgrad_supports(const Context& context, const ConvShape& o) {
  return context.kernels().tiles.pairs && o.groups == 1 && o.c % context.kernels().product.columns == 0 &&
         o.k % kJoined<Bf16> == 0;
}

void tile_dgrad(Context& context, const ConvShape& o, const Bf16* dy, const Bf16* w, Bf16* dx, bool add) {
  for_each_phase<Bf16>(context, o, w, dx, add, [&](const GradientPhase& phase, const Bf16* panels) {
    TapConv conv = tap_conv_of(phase.conv);
    conv.places = phase.places;
    tile_conv(context, conv, dy, panels, {.residual = add ? dx : nullptr}, dx, false);
  });
}

}  // namespace dtrain::cpu
