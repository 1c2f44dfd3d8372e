#include "apps/cli/live_block.h"

#include <fcntl.h>
#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <clocale>
#include <cstring>
#include <iostream>

#include <fmt/format.h>

#include "apps/cli/environment.h"

namespace dtrain::cli {
namespace {

bool shows_unicode() {
  const locale_t locale = newlocale(LC_CTYPE_MASK, "", nullptr);
  if (locale == nullptr) return false;
  const bool utf8 = std::strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
  freelocale(locale);
  return utf8;
}

int open_terminal() {
  if (isatty(STDOUT_FILENO) != 1) return -1;
  const bool launched = environment()("OMPI_COMM_WORLD_RANK") != nullptr;
  const std::string path = launched ? fmt::format("/proc/{}/fd/1", getppid()) : "/proc/self/fd/1";
  const int file = open(path.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC);
  if (file < 0 || isatty(file) == 1) return file;
  close(file);
  return -1;
}

}  // namespace

LiveBlock::LiveBlock() : terminal_(open_terminal()), unicode_(shows_unicode()) {}

LiveBlock::~LiveBlock() {
  erase();
  if (terminal_ >= 0) close(terminal_);
}

int LiveBlock::columns() const {
  winsize size{};
  return ioctl(terminal_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void LiveBlock::show(const std::vector<std::string>& lines) {
  if (!drawn()) return;
  erase();
  // Terminals disagree about the cursor position after a write to the last column.
  for (const std::string& line : lines) lines_.push_back(cut_to(line, columns() - 1));
  draw();
}

void LiveBlock::print_above(const std::function<void()>& print) {
  std::vector<std::string> lines = lines_;
  erase();
  print();
  lines_ = std::move(lines);
  draw();
}

// Invariant: the cursor is at the start of the line below the block.
void LiveBlock::erase() {
  if (!lines_.empty()) std::cout << fmt::format("\033[{}A\033[J", lines_.size()) << std::flush;
  lines_.clear();
}

void LiveBlock::draw() const {
  for (const std::string& line : lines_) std::cout << line << '\n';
  std::cout << std::flush;
}

std::string cut_to(const std::string& text, int columns) {
  size_t end = 0;
  for (; end < text.size(); ++end) {
    const bool begins_character = (static_cast<unsigned char>(text[end]) & 0xC0) != 0x80;
    if (begins_character && columns-- <= 0) break;
  }
  return text.substr(0, end);
}

}  // namespace dtrain::cli
