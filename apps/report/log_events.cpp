#include "apps/report/log_events.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "libdtrain/io/text_lines.h"

namespace dtrain::report {
namespace {

constexpr size_t kMostOfKind = 500;    // maximum events per kind and log
constexpr size_t kLongestText = 1000;  // maximum bytes per line

struct Mark {
  std::string_view text;
  bool at_beginning;
  EventKind kind;
};

// The first match determines the kind.
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

// Truncates at a character boundary.
std::string shortened(const std::string& text) {
  if (text.size() <= kLongestText) return text;
  size_t size = kLongestText;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  return text.substr(0, size) + " ...";
}

std::optional<uint64_t> number_at(std::string_view text, char end) {
  uint64_t number = 0;
  const auto [last, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || last == text.data() + text.size() || *last != end) return std::nullopt;
  return number;
}

// Step of a six-column row of dtrain-train-imagenet.
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

bool is_remark(EventKind kind) { return kind == EventKind::warning || kind == EventKind::notice; }

// Events of a log, limited per kind: a log may consist of errors only.
class LimitedEvents {
 public:
  LimitedEvents(const std::string& path, RunData& run)
      : path_(path), file_(path.substr(path.rfind('/') + 1)), run_(run), first_(run.events.size()) {}

  std::optional<EventKind> last() const { return last_; }
  void add(EventKind kind, const TextLine& line, uint64_t step, const std::string& text) {
    last_ = kind;
    LogEvent event{kind, file_, line.number, step, shortened(text)};
    const bool fits = ++counts_[kind] <= kMostOfKind;
    if (!is_remark(kind)) end_ = fits ? std::nullopt : std::optional(event);
    if (fits) run_.events.push_back(std::move(event));
  }
  // The last event tells how the run ended, and is never dropped.
  void finish() {
    if (end_) {
      --counts_[end_->kind];
      // Remarks may follow it.
      const auto follows = [&](const LogEvent& event) { return event.line > end_->line; };
      const auto first = run_.events.begin() + static_cast<std::ptrdiff_t>(first_);
      run_.events.insert(std::find_if(first, run_.events.end(), follows), *end_);
    }
    for (const auto& [kind, count] : counts_)
      if (count > kMostOfKind)
        run_.notices.push_back(fmt::format("{}: {} more events of the kind \"{}\" are left out", path_,
                                           count - kMostOfKind, name_of(kind)));
  }

 private:
  const std::string& path_;
  const std::string file_;
  RunData& run_;
  const size_t first_;  // first event of this log in the run's list
  std::optional<EventKind> last_;
  std::optional<LogEvent> end_;  // the last non-remark event, if it was dropped
  std::map<EventKind, uint64_t> counts_;
};

}  // namespace

void read_log(const std::string& path, RunData& run) {
  uint64_t step = 0;
  bool under_way = false;
  LimitedEvents events(path, run);
  for_each_line(path, [&](const TextLine& line) {
    if (const auto shown = step_of(line.text)) step = *shown;
    const auto kind = kind_of(line.text);
    if (!kind) return;
    const bool begins = *kind == EventKind::start || *kind == EventKind::restart;
    const bool follows = events.last() == EventKind::restart;
    if (begins && under_way && !(*kind == EventKind::start && follows))
      events.add(EventKind::loss, line, step, "the previous process ended without a message, as when killed");
    // The line about the schedule belongs to the preceding checkpoint line: one restart.
    if (*kind == EventKind::start && follows) return;
    under_way = begins || (under_way && is_remark(*kind));
    events.add(*kind, line, step, line.text);
  });
  events.finish();
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
