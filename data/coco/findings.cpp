#include "dtrain/data/coco/findings.h"

#include <algorithm>

#include "dtrain/core/error.h"

namespace dtrain::data::coco {

void Findings::add(std::string_view kind, std::string_view action, const std::string& first, bool is_fault) {
  const auto found = std::ranges::find(all_, kind, &Finding::kind);
  if (found != all_.end())
    ++found->count;
  else
    all_.push_back({std::string(kind), std::string(action), 1, first, is_fault});
}

void Findings::merge(const Findings& others) {
  for (const Finding& one : others.all_) {
    const auto found = std::ranges::find(all_, one.kind, &Finding::kind);
    if (found != all_.end())
      found->count += one.count;
    else
      all_.push_back(one);
  }
}

uint64_t Findings::count(std::string_view kind) const {
  const auto found = std::ranges::find(all_, kind, &Finding::kind);
  return found == all_.end() ? 0 : found->count;
}

std::string Findings::summary() const {
  std::string text;
  for (const Finding& one : all_)
    text += concat(text.empty() ? "" : "; ", one.kind, ": ", one.count, " ", one.action, " (first: ", one.first, ")");
  return text;
}

void Findings::refuse(const std::string& where) const {
  std::string text;
  for (const Finding& one : all_)
    if (one.is_fault) text += concat(text.empty() ? "" : "; ", one.kind, ": ", one.count, " (first: ", one.first, ")");
  if (!text.empty()) throw Error(Fault::data, concat(where, ": ", text));
}

}  // namespace dtrain::data::coco
