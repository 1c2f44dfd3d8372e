#include "apps/report/log_events.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "apps/report/lines.h"

namespace dtrain::report {
namespace {

constexpr size_t kMostRemarks = 500;

struct Mark {
  std::string_view text;
  bool at_beginning;
  EventKind kind;
};

// The first one counts that a line has.
constexpr Mark kMarks[] = {
    {"error: ", true, EventKind::failure},
    {"Schedule:", true, EventKind::start},
    {"  Step Epoch Speed ", true, EventKind::start},  // of dtrain-train-imagenet
    {"Restored step ", true, EventKind::restart},
    {"note: stopped on request", true, EventKind::stop},
    {"Done with training", true, EventKind::end},
    {"Finished in ", true, EventKind::end},
    {"finished after step ", true, EventKind::end},
    {"warning: ", true, EventKind::warning},
    {"the targets are reached", true, EventKind::end},
    {"is the end of the run", false, EventKind::end},
    {"note: ", true, EventKind::notice},
    {" error: ", false, EventKind::failure},
    {"Killed", false, EventKind::failure},
    {"signal 9", false, EventKind::failure},
};

std::optional<EventKind> kind_of(std::string_view text) {
  for (const Mark& mark : kMarks)
    if (mark.at_beginning ? text.starts_with(mark.text) : text.find(mark.text) != text.npos) return mark.kind;
  return std::nullopt;
}

std::optional<uint64_t> number_at(std::string_view text, char end) {
  uint64_t number = 0;
  const auto [last, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || last == text.data() + text.size() || *last != end) return std::nullopt;
  return number;
}

// The first of the six numbers of a row of dtrain-train-imagenet.
std::optional<uint64_t> step_of_row(std::string_view text) {
  constexpr int kColumns = 6;
  uint64_t step = 0;
  int columns = 0;
  for (size_t at = text.find_first_not_of(' '); at != text.npos; at = text.find_first_not_of(' ', at), ++columns) {
    const size_t end = std::min(text.size(), text.find(' ', at));
    const char *first = text.data() + at, *last = text.data() + end;
    double number = 0;
    const bool is_step = columns == 0;
    const auto [parsed, problem] = is_step ? std::from_chars(first, last, step) : std::from_chars(first, last, number);
    if (problem != std::errc() || parsed != last) return std::nullopt;
    at = end;
  }
  return columns == kColumns ? std::optional(step) : std::nullopt;
}

// "20<tab>images/sec: ...", "step 20/400  loss ..." or "    20   0.4 ..."
std::optional<uint64_t> step_of(std::string_view text) {
  if (text.starts_with("step ")) return number_at(text.substr(5), '/');
  if (text.starts_with(' ')) return step_of_row(text);
  return text.find("\timages/sec: ") != text.npos ? number_at(text, '\t') : std::nullopt;
}

}  // namespace

void read_log(const std::string& path, RunData& run) {
  const std::string file = path.substr(path.rfind('/') + 1);
  uint64_t step = 0, left_out = 0;
  size_t remarks = 0;
  bool under_way = false;
  const auto add = [&](EventKind kind, const Line& line, const std::string& text) {
    run.events.push_back({kind, file, line.number, step, text});
  };
  for_each_line(path, [&](const Line& line) {
    if (const auto shown = step_of(line.text)) step = *shown;
    const auto kind = kind_of(line.text);
    if (!kind) return;
    const bool begins = *kind == EventKind::start || *kind == EventKind::restart;
    const bool follows = run.events.size() > 0 && run.events.back().kind == EventKind::restart;
    if (begins && under_way && !(*kind == EventKind::start && follows))
      add(EventKind::loss, line, "the process before ended without a word, as one that is killed");
    // A line about the schedule follows one about the checkpoint: together they are one restart.
    if (*kind == EventKind::start && follows) return;
    under_way = begins || (under_way && (*kind == EventKind::warning || *kind == EventKind::notice));
    if ((*kind == EventKind::warning || *kind == EventKind::notice) && ++remarks > kMostRemarks)
      ++left_out;
    else
      add(*kind, line, line.text);
  });
  if (left_out > 0) run.notices.push_back(fmt::format("{}: {} more warnings and notices are left out", path, left_out));
}

std::string name_of(EventKind kind) {
  switch (kind) {
    case EventKind::start:
      return "start";
    case EventKind::restart:
      return "restart";
    case EventKind::end:
      return "end";
    case EventKind::stop:
      return "stop on request";
    case EventKind::loss:
      return "lost";
    case EventKind::failure:
      return "failure";
    case EventKind::warning:
      return "warning";
    case EventKind::notice:
      return "notice";
  }
  return {};
}

}  // namespace dtrain::report
