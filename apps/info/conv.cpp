#include "apps/info/conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "libdtrain/ops/conv2d_algorithms.h"

namespace dtrain::info {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts{""};
  for (const char c : text)
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

[[noreturn]] void refuse(const std::string& text, const std::string& found, const std::string& expected) {
  throw Error(concat("--conv=", text, ": \"", found, "\": expected ", expected,
                     " (NxCxHxW,K,RxS,stride,pad,dtype[,pass], e.g. 32x64x56x56,64,3x3,1,1,f32)"));
}

int64_t number(const std::string& text, const std::string& part, int64_t least) {
  constexpr int64_t kMost = 32768;  // products of four fit 64 bits, if not memory
  int64_t value = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
  if (error != std::errc() || end != part.data() + part.size() || value < least || value > kMost)
    refuse(text, part, concat("a number from ", least, " to ", kMost));
  return value;
}

// Numbers with an x between them.
std::vector<int64_t> numbers(const std::string& text, const std::string& part, size_t count) {
  const std::vector<std::string> parts = split(part, 'x');
  if (parts.size() != count) refuse(text, part, concat(count, " numbers with an x between them"));
  std::vector<int64_t> values;
  for (const std::string& one : parts) values.push_back(number(text, one, 1));
  return values;
}

DType dtype(const std::string& text, const std::string& part) {
  if (part == "f32") return DType::f32;
  if (part == "bf16") return DType::bf16;
  if (part == "int8") return DType::u8;
  refuse(text, part, "f32, bf16 or int8");
}

void append(std::vector<std::string>& lines, const std::string& pass, const std::vector<Conv2dAlgorithm>& algorithms) {
  lines.push_back(pass);
  for (const Conv2dAlgorithm& one : algorithms)
    lines.push_back(one.reason.empty() ? concat("  ", one.taken ? '*' : ' ', " ", one.name)
                                       : fmt::format("  {} {:<18} {}", one.taken ? '*' : ' ', one.name, one.reason));
}

}  // namespace

std::vector<std::string> conv_lines(const Context& context, const std::string& text) {
  const std::vector<std::string> parts = split(text, ',');
  if (parts.size() != 6 && parts.size() != 7) refuse(text, text, "six or seven parts");
  const std::vector<int64_t> images = numbers(text, parts[0], 4), kernel = numbers(text, parts[2], 2);
  const Shape x{images[0], images[2], images[3], images[1]};
  const Shape w{number(text, parts[1], 1), kernel[0], kernel[1], images[1]};
  const Conv2dOptions options{.stride = static_cast<int>(number(text, parts[3], 1)),
                              .padding = static_cast<int>(number(text, parts[4], 0))};
  const DType type = dtype(text, parts[5]);
  std::vector<std::string> passes = conv2d_passes();
  if (type == DType::u8) passes = {"inference"};
  if (parts.size() == 7) {
    std::string names;
    for (const std::string& pass : passes) names += (names.empty() ? "" : ", ") + pass;
    if (std::find(passes.begin(), passes.end(), parts[6]) == passes.end())
      refuse(text, parts[6], concat("a pass of ", parts[5], ": one of ", names));
    passes = {parts[6]};
  }
  std::vector<std::string> lines;
  for (const std::string& pass : passes) append(lines, pass, conv2d_algorithms(context, pass, x, w, options, type));
  return lines;
}

}  // namespace dtrain::info
