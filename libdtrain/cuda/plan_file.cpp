#include "libdtrain/cuda/plan_file.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "dtrain/core/error.h"
#include "dtrain/io/atomic_file.h"
#include "libdtrain/io/crc32c.h"
#include "libdtrain/io/file_lock.h"

namespace dtrain::cuda {
namespace {

constexpr const char* kTitle = "dtrain plans, version 2";
constexpr const char* kChecksum = "crc32c ";
constexpr const char* kUnsupported = "none";

[[noreturn]] void refuse(const std::string& reason) { throw Error(Fault::resource, reason); }

// Shortest text that parses back to the same float.
std::string to_text(float value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

SavedPlan parse_plan(const std::string& choice, const std::string& milliseconds) {
  SavedPlan plan;
  plan.supported = choice != kUnsupported;
  if (plan.supported) plan.choice = parse_choice(choice);
  const char* const end = milliseconds.data() + milliseconds.size();
  const auto [stop, error] = std::from_chars(milliseconds.data(), end, plan.milliseconds);
  if (error != std::errc() || stop != end) refuse(concat("\"", milliseconds, "\" is not a time in milliseconds"));
  return plan;
}

}  // namespace

std::string to_text(const PlanBook& plans, const std::string& identity) {
  std::string text = concat(kTitle, "\n", identity, "\n");
  for (const auto& [name, plan] : plans)
    text +=
        concat(name, " ", plan.supported ? to_text(plan.choice) : kUnsupported, " ", to_text(plan.milliseconds), "\n");
  return text + concat(kChecksum, crc32c(text.data(), text.size()), "\n");
}

PlanBook parse_plans(const std::string& text, const std::string& identity) {
  std::istringstream lines(text);
  std::string line;
  if (!std::getline(lines, line) || line != kTitle) refuse(concat("its first line is not \"", kTitle, "\""));
  if (!std::getline(lines, line) || line != identity)
    refuse(concat("it was written for \"", line, "\", this machine is \"", identity, "\""));
  const size_t tail = text.rfind(kChecksum);
  if (tail == std::string::npos || text.substr(tail) != concat(kChecksum, crc32c(text.data(), tail), "\n"))
    refuse("checksum mismatch: the file is damaged");
  PlanBook plans;
  while (static_cast<size_t>(lines.tellg()) < tail && std::getline(lines, line)) {
    std::istringstream words(line);
    std::string name, choice, milliseconds;
    if (!(words >> name >> choice >> milliseconds)) refuse(concat("malformed plan: \"", line, "\""));
    plans[name] = parse_plan(choice, milliseconds);
  }
  return plans;
}

PlanBook read_plans(const std::string& path, const std::string& identity) {
  if (!std::filesystem::exists(path)) return {};
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) refuse("it cannot be read");
  return parse_plans(text.str(), identity);
}

PlanBook add_plans(const PlanBook& plans, const std::string& path, const std::string& identity) {
  const FileLock lock(path + ".lock", FileLock::IfHeld::wait);
  PlanBook all = plans;
  try {
    all.merge(read_plans(path, identity));
  } catch (const Error&) {
    // An unusable file is replaced.
  }
  AtomicFile file(path);
  file.write(to_text(all, identity));
  file.commit();
  return all;
}

}  // namespace dtrain::cuda
