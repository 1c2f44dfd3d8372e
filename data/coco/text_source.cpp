#include "data/coco/text_source.h"

#include <utility>

#include "dtrain/core/error.h"
#include "dtrain/io/input_file.h"

namespace dtrain::data::coco {
namespace {

using namespace std::string_view_literals;

// Detects encodings other than UTF-8 by the first bytes.
std::string_view encoding_of(std::string_view text) {
  if (text.starts_with("\xff\xfe\0\0"sv) || text.starts_with("\0\0\xfe\xff"sv)) return "UTF-32";
  if (text.starts_with("\xff\xfe"sv) || text.starts_with("\xfe\xff"sv)) return "UTF-16";
  if (text.size() < 2) return {};
  if ((text[0] == 0) != (text[1] == 0)) return "UTF-16";
  return {};
}

void check_beginning(std::string_view text, const std::string& where) {
  if (text.starts_with("\x1f\x8b"sv))
    throw Error(Fault::data, concat(where, ": compressed by gzip, expected JSON: unpack it by gunzip"));
  if (const std::string_view encoding = encoding_of(text); !encoding.empty())
    throw Error(Fault::data, concat(where, ": text in ", encoding, ", expected UTF-8: convert it by iconv -f ",
                                    encoding, " -t UTF-8"));
}

}  // namespace

bool JsonCharacters::fill() {
  if (source_.stop != nullptr && source_.stop()) throw Error(Fault::resource, source_.where + ": reading was stopped");
  const std::string_view text = source_.next();
  at_ = text.data();
  end_ = at_ + text.size();
  if (!started_) check_beginning(text, source_.where);
  started_ = true;
  return !text.empty();
}

bool JsonCharacters::pass_constant(char& c) {
  const uint64_t begin = taken_ - 1;
  held_.assign(1, c);
  const std::string_view sign = c == '-' ? "-" : "";
  // Reads on while the held text is a prefix of a constant.
  const auto is_begun = [&](std::string_view constant) { return constant.starts_with(held_); };
  const std::string infinity = concat(sign, "Infinity");
  while (held_ != "NaN" && held_ != infinity && (is_begun("NaN") || is_begun(infinity))) {
    if (at_ == end_ && !fill()) break;
    held_ += *at_++;
    ++taken_;
  }
  if (held_ == "NaN" || held_ == infinity) {
    if (non_finite_++ == 0) first_non_finite_ = begin;
    last_constant_ = begin - static_cast<uint64_t>(longer_);
    longer_before_ = longer_;
    longer_ += static_cast<int64_t>(held_.size()) - 4;
    held_ = "null";
  } else if (held_.back() == '"' && held_.size() > 1) {
    in_string_ = true;
  }
  c = held_.front();
  pending_ = std::string_view(held_).substr(1);
  return true;
}

TextSource file_source(const std::string& path, bool (*stop)()) {
  struct Chunks {
    explicit Chunks(const std::string& name) : file(name), chunk(size_t{1} << 20, 0) {}
    InputFile file;
    std::string chunk;
    uint64_t offset = 0;
  };
  const auto state = std::make_shared<Chunks>(path);
  return {path,
          [state]() -> std::string_view {
            const size_t size = state->file.read_some(state->offset, state->chunk.data(), state->chunk.size());
            state->offset += size;
            return {state->chunk.data(), size};
          },
          stop};
}

TextSource text_source(std::string_view text, const std::string& where) {
  return {where, [rest = text]() mutable { return std::exchange(rest, {}); }, nullptr};
}

}  // namespace dtrain::data::coco
