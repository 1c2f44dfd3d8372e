// Repacking of images for AMX, block by block: tile loads read rows of A a constant distance apart.
#pragma once

#include <algorithm>
#include <vector>

#include "libdtrain/cpu/conv/stride_planes.h"
#include "libdtrain/cpu/kernels/gemm_amx.h"

namespace dtrain::cpu {

// Output rows [first, last) of an image, and where their pixels begin in the repacked block.
struct Segment {
  int64_t image, first, last, begin;

  int64_t rows() const { return last - first; }
};

// One block of output rows of one thread, and the repacked pixels that they read.
template <class T>
class RepackedBlock {
 public:
  // `copy`: memory for most_elements() of the largest block.
  RepackedBlock(const Im2colView<T>& view, const OutputLayout& layout, const StridePlanes& planes, T padding, T* copy)
      : view_(view),
        layout_(layout),
        planes_(planes),
        padding_(padding),
        in_order_(reads_pixels_in_order(view.o)),
        copy_(copy) {}

  // Repacks output rows [first, last), counted over all images, unless they read x in order. Returns the arguments of
  // the micro-kernel for each image, or for all of them, without the panel; rows between those of the output have
  // negative places, which are not stored. Valid until the next call.
  const std::vector<AmxGemm<T>>& repack(int64_t first, int64_t last) {
    const std::vector<Segment> segments =
        in_order_ ? std::vector<Segment>{{0, first, last, 0}} : copied_segments(first, last);
    at_.clear(), places_.clear(), rows_.clear();
    for (const Segment& segment : segments) add_places(segment), add_runs(segment);
    const T* const* at = at_.data();
    const int64_t* places = places_.data();
    for (const Segment& segment : segments) {
      const int64_t count = pixels_of(segment);
      rows_.push_back({count, view_.taps(), view_.run(), at, planes_.pixel, nullptr, places, 0, {}});
      at += view_.taps(), places += count;
    }
    return rows_;
  }

  // About the memory of x that repack() reads. Where strides skip rows, prefetching all of them costs more than it
  // gains.
  PrefetchRange source_of(int64_t first, int64_t last) const {
    if (planes_.skips_rows) return {};
    const auto begin_of = [&](int64_t row) {
      return (row / o_.p * o_.h + row % o_.p * o_.stride_h) * view_.width * o_.c;
    };
    return {view_.x + begin_of(first), (begin_of(last) - begin_of(first)) * static_cast<int64_t>(sizeof(T))};
  }

 private:
  int64_t pixels_of(const Segment& segment) const { return (segment.rows() - 1) * planes_.columns + o_.q; }
  void add_places(const Segment& segment) {
    const auto begin = static_cast<int64_t>(places_.size());
    places_.resize(places_.size() + static_cast<size_t>(pixels_of(segment)), -1);
    for (int64_t i = 0; i < segment.rows(); ++i) {
      const int64_t row = segment.image * o_.p + segment.first + i;
      int64_t place = layout_.first + row / o_.p * layout_.image + row % o_.p * layout_.row;
      for (int64_t j = 0; j < o_.q; ++j, place += layout_.pixel)
        places_[static_cast<size_t>(begin + i * planes_.columns + j)] = place;
    }
  }
  void add_runs(const Segment& segment) {
    if (in_order_) return at_.push_back(view_.x + segment.first * o_.w * o_.c);
    for (size_t tap = 0; tap < planes_.plane_of.size(); ++tap)
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
    for (const StridePlanes::Start& start : planes_.starts)
      for (int64_t i = 0; i < rows; ++i, to += row_elements)
        copy_row(segment.image, start.row - o_.pad_top + (segment.first + i) * planes_.step_h,
                 start.column - view_.pad_left, to);
  }
  // Every step_w-th pixel from `column` on of a row of an image.
  void copy_row(int64_t image, int64_t row, int64_t column, T* to) const {
    const int64_t step = planes_.step_w, count = planes_.columns * planes_.pixel / o_.c;
    if (row < 0 || row >= o_.h) {
      std::fill_n(to, count * o_.c, padding_);
      return;
    }
    const int64_t before = std::clamp<int64_t>((step - 1 - column) / step, 0, count);
    const int64_t end = std::clamp<int64_t>((view_.width - column + step - 1) / step, before, count);
    to = std::fill_n(to, before * o_.c, padding_);
    const T* from = view_.x + ((image * o_.h + row) * view_.width + column + before * step) * o_.c;
    if (step == 1)
      to = std::copy_n(from, (end - before) * o_.c, to);
    else
      for (int64_t j = before; j < end; ++j, from += step * o_.c) to = std::copy_n(from, o_.c, to);
    std::fill_n(to, (count - end) * o_.c, padding_);
  }

  const Im2colView<T>& view_;
  const ConvShape& o_ = view_.o;
  const OutputLayout& layout_;
  const StridePlanes& planes_;
  T padding_;
  bool in_order_;
  T* copy_;
  std::vector<const T*> at_;
  std::vector<int64_t> places_;
  std::vector<AmxGemm<T>> rows_;
};

}  // namespace dtrain::cpu
