// JSON text in pieces: what COCO's files are read from.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace dtrain::data::coco {

// A file in pieces, or text in memory. next() gives what follows and is empty at the end.
struct TextSource {
  std::string where;  // in errors
  std::function<std::string_view()> next;
  bool (*stop)() = nullptr;  // called before each piece: true ends the reading
};
TextSource file_source(const std::string& path, bool (*stop)() = nullptr);
TextSource text_source(std::string_view text, const std::string& where);

// The characters of JSON as Python writes it: NaN, Infinity and -Infinity outside of strings are read as null, and
// counted. A UTF-8 byte order mark is skipped by the parser. Throws Error(Fault::data) for text that begins as UTF-16,
// UTF-32 or gzip does, and Error(Fault::resource) where the source's stop() says so.
class JsonCharacters {
 public:
  explicit JsonCharacters(TextSource source) : source_(std::move(source)) {}

  // The next character; nothing left: false.
  bool take(char& c) {
    if (!pending_.empty()) {
      c = pending_.front();
      pending_.remove_prefix(1);
      return true;
    }
    if (at_ == end_ && !fill()) return false;
    c = *at_++;
    ++taken_;
    if (in_string_)
      pass_in_string(c);
    else if (c == '"')
      in_string_ = true;
    else if (c == 'N' || c == 'I' || c == '-')
      return pass_constant(c);
    return true;
  }
  uint64_t non_finite() const { return non_finite_; }
  // The byte at which the first of them stands.
  uint64_t first_non_finite() const { return first_non_finite_; }
  // How many bytes of the source there were when take() had returned `taken` characters, at most one fewer than now.
  uint64_t bytes_at(uint64_t taken) const {
    return taken + static_cast<uint64_t>(taken > last_constant_ ? longer_ : longer_before_);
  }

 private:
  void pass_in_string(char c) {
    if (escaped_)
      escaped_ = false;
    else if (c == '\\')
      escaped_ = true;
    else if (c == '"')
      in_string_ = false;
  }
  bool fill();
  // `c` begins a constant, or is a minus sign. What is no constant of Python's is passed on as it is.
  bool pass_constant(char& c);

  TextSource source_;
  const char *at_ = nullptr, *end_ = nullptr;
  bool started_ = false, in_string_ = false, escaped_ = false;
  std::string held_;  // that pending_ points into
  std::string_view pending_;
  uint64_t taken_ = 0, non_finite_ = 0, first_non_finite_ = 0;
  // Bytes of the constants less the characters that stand for them, with and without the last one, and how many
  // characters there were before that.
  int64_t longer_ = 0, longer_before_ = 0;
  uint64_t last_constant_ = 0;
};

}  // namespace dtrain::data::coco
