#include "apps/mask_rcnn/former_versions.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "apps/cli/ranks.h"
#include "apps/cli/recorded_weights.h"
#include "libdtrain/distributed/read_texts.h"
#include "libdtrain/io/json_limits.h"
#include "libdtrain/train/checkpoint_files.h"

namespace dtrain::mask_rcnn {
namespace {

// State of the checkpoint that the run resumes; empty if it starts fresh. Ignores damaged checkpoints, which restoring
// reports.
WeightsRecord continued_record(const RunOptions& resume) {
  WeightsRecord record;
  const auto read = [&](const std::string& path) {
    try {
      if (!looks_complete(path)) return false;
      record = cli::recorded_with(path + "/model.safetensors");
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  if (resume.train_dir.empty()) return record;
  if (!resume.resume_from.empty())
    read(resume.resume_from);
  else if (resume.resume == Resume::newest)
    newest_checkpoint(resume.train_dir, read);
  return record;
}

}  // namespace

std::vector<std::string> continued_conventions(const cli::TrainingFlags& flags, Group& group,
                                               std::vector<std::string>& notices) {
  const cli::Ranks ranks = cli::ranks_of(group);
  nlohmann::json lines = nlohmann::json::array();
  if (ranks.is_chief()) lines = unrecorded_conventions(continued_record(flags.resume_options(ranks)));
  const char* const what = "conventions of the checkpoint";
  std::vector<std::string> conventions;
  read_text(group, ranks.chief, group.broadcast(lines.dump(), ranks.chief, what), what, [&](const std::string& told) {
    conventions = parse_json<nlohmann::json>(told, what, Fault::communication).get<std::vector<std::string>>();
  });
  if (!conventions.empty())
    notices.push_back(
        fmt::format("{}: checkpoint of an older version; the run keeps its {}, which --config can override",
                    flags.checkpoints.train_dir, fmt::join(conventions, " ")));
  return conventions;
}

void keep_former_names(TrainingSettings& settings, std::vector<std::string>& notices) {
  const cli::FollowFlags& follow = settings.flags.checkpoints.follow;
  const std::string& metric = follow.keep_best.empty() ? follow.early_stop_metric : follow.keep_best;
  std::vector<std::string> former = settings.data.validation;
  for (std::string& split : former)
    if (split.starts_with(kCocoPrefix)) split.erase(0, std::string_view(kCocoPrefix).size());
  const auto is_former = [&](const std::string& split) {
    return metric.starts_with(split + "-mAP") && std::ranges::count(settings.data.validation, split) == 0;
  };
  if (std::ranges::none_of(former, is_former)) return;
  notices.push_back(fmt::format(
      "{}: a name of version 0.2, which the metrics of this run keep; for new runs use {}{}, or DATA.VAL={}", metric,
      kCocoPrefix, metric, fmt::join(former, ",")));
  settings.data.validation = std::move(former);
}

}  // namespace dtrain::mask_rcnn
