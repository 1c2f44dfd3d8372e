#include "apps/cli/loader_lanes.h"

#include <fmt/format.h>

namespace dtrain::cli {
namespace {

std::string name_of(const data::LoaderWork& work) {
  switch (work.kind) {
    case data::LoaderWork::Kind::fill:
      return fmt::format("sample {}", work.sample);
    case data::LoaderWork::Kind::room:
      return "wait for slot";
    case data::LoaderWork::Kind::next:
      return "wait for a batch";
  }
  return "";
}

}  // namespace

std::function<void(const data::LoaderWork&)> loader_lanes(std::function<void(const TraceSpan&)> show) {
  if (!show) return {};
  return [show = std::move(show)](const data::LoaderWork& work) {
    show({.lane = work.worker < 0 ? "input" : fmt::format("loader {}", work.worker),
          .name = name_of(work),
          .begin = work.begin,
          .end = work.end});
  };
}

}  // namespace dtrain::cli
