#include "libdtrain/run/common_step.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "dtrain/core/error.h"
#include "libdtrain/distributed/read_texts.h"

namespace dtrain {
namespace {

using StepList = std::vector<uint64_t>;

// Wire format: empty from a rank that writes none, a space without checkpoints.
std::string text_of(const std::optional<StepList>& steps) {
  return steps ? " " + fmt::format("{}", fmt::join(*steps, " ")) : "";
}

std::optional<StepList> steps_from(const std::string& text) {
  if (text.empty()) return std::nullopt;
  std::istringstream in(text);
  StepList steps;
  for (uint64_t step = 0; in >> step;) steps.push_back(step);
  DT_CHECK(in.eof() && std::ranges::is_sorted(steps), "no ascending steps");
  return steps;
}

// Steps of all ranks, by rank.
std::vector<std::optional<StepList>> all_steps(Group& group, const std::optional<StepList>& own) {
  std::vector<std::optional<StepList>> all;
  read_texts(group, text_of(own), "steps of the checkpoints",
             [&](int, const std::string& text) { all.push_back(steps_from(text)); });
  return all;
}

// Ascending.
StepList common_steps(const std::vector<std::optional<StepList>>& all) {
  std::optional<StepList> common;
  for (const std::optional<StepList>& steps : all) {
    if (!steps) continue;
    if (!common)
      common = *steps;
    else
      std::erase_if(*common, [&](uint64_t step) { return !std::ranges::binary_search(*steps, step); });
  }
  return common.value_or(StepList());
}

std::string who_has_which(const Group& group, const std::vector<std::optional<StepList>>& all) {
  std::string text;
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank])
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", group.name(static_cast<int>(rank)),
                          all[rank]->empty() ? "none" : fmt::format("steps {}", fmt::join(*all[rank], ", ")));
  return text;
}

}  // namespace

bool writes_checkpoints(const Group& group, int chief, bool per_host) {
  if (!per_host) return group.rank() == chief;
  const Place& own = group.places()[static_cast<size_t>(group.rank())];
  const bool beside_chief = own.node == group.places()[static_cast<size_t>(chief)].node;
  return beside_chief ? group.rank() == chief : own.local_rank == 0;
}

std::optional<uint64_t> newest_common_step(Group& group, std::optional<StepList> own,
                                           const std::function<bool(uint64_t)>& is_sound) {
  const auto at_first = all_steps(group, own);
  if (std::ranges::all_of(at_first, [](const auto& steps) { return !steps || steps->empty(); })) return std::nullopt;
  // Verifies only the candidate: a damaged one is skipped by all.
  for (StepList common = common_steps(at_first); !common.empty(); common.pop_back()) {
    const bool sound = !own || is_sound(common.back());
    if (group.extremes(sound ? 1 : 0, "soundness of the checkpoints").first > 0) return common.back();
  }
  throw Error(Fault::checkpoint,
              fmt::format("there is no step of which every host has a sound checkpoint ({}); copy the folder of one to "
                          "the others, or move them away to start from the beginning",
                          who_has_which(group, at_first)));
}

}  // namespace dtrain
