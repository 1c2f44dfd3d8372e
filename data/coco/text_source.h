// Chunked input of JSON text.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace dtrain::data::coco {

// A file in chunks, or text in memory. next() returns the next chunk, empty at the end.
struct TextSource {
  std::string where;  // in errors
  std::function<std::string_view()> next;
  bool (*stop)() = nullptr;  // polled before each chunk: true aborts reading
};
TextSource file_source(const std::string& path, bool (*stop)() = nullptr);
TextSource text_source(std::string_view text, const std::string& where);

// JSON characters as Python writes them: NaN, Infinity and -Infinity outside of strings are replaced by null and
// counted. The parser skips a UTF-8 byte order mark. Throws Error(Fault::data) for UTF-16, UTF-32 or gzip input, and
// Error(Fault::resource) if the source's stop() returns true.
class JsonCharacters {
 public:
  explicit JsonCharacters(TextSource source) : source_(std::move(source)) {}

  // Takes the next character; false at the end.
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
  // Byte offset of the first non-finite constant.
  uint64_t first_non_finite() const { return first_non_finite_; }
  // Source offset in bytes after take() has returned `taken` characters; `taken` is at most one less than now.
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
  // `c` starts a constant or is a minus sign. Anything else is passed through unchanged.
  bool pass_constant(char& c);

  TextSource source_;
  const char *at_ = nullptr, *end_ = nullptr;
  bool started_ = false, in_string_ = false, escaped_ = false;
  std::string held_;  // storage of pending_
  std::string_view pending_;
  uint64_t taken_ = 0, non_finite_ = 0, first_non_finite_ = 0;
  // Difference between source bytes and returned characters with and without the last constant, and the position of
  // that constant.
  int64_t longer_ = 0, longer_before_ = 0;
  uint64_t last_constant_ = 0;
};

}  // namespace dtrain::data::coco
