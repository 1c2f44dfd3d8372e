#include "libdtrain/io/foreign_file.h"

#include <algorithm>

namespace dtrain {

const char* const kPickleAdvice =
    "pickled Python objects (PyTorch's .pth or .pt), which are not read, for they can run any program; expected "
    "safetensors or NumPy's .npz: write one in Python with safetensors.torch.save_file(torch.load(FILE), "
    "\"FILE.safetensors\")";

namespace {

constexpr std::string_view kLfs = "version https://git-lfs.github.com/spec/", kHdf5 = "\x89HDF\r\n\x1a\n";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf", kSpace = " \t\r\n";
constexpr size_t kBraceOfSafetensors = 8;  // follows the size of the header

// In small letters, from the first visible character on.
std::string visible_text(std::string_view bytes) {
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  bytes.remove_prefix(std::min(bytes.find_first_not_of(kSpace), bytes.size()));
  std::string text(bytes);
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// Protocols 2 to 5; no file of safetensors begins so and has another ninth byte than a brace.
bool is_pickle(std::string_view bytes) {
  const bool safetensors = bytes.size() > kBraceOfSafetensors && bytes[kBraceOfSafetensors] == '{';
  return bytes.size() > 1 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5 && !safetensors;
}

}  // namespace

std::string foreign_content(std::string_view bytes) {
  if (bytes.starts_with(kLfs))
    return "a Git LFS pointer, which stands for the file; expected the file itself: run git lfs pull in its repository";
  if (bytes.starts_with(kHdf5))
    return "an HDF5 file (Keras's .h5), which is not read; expected safetensors or NumPy's .npz: write one in Python";
  if (is_pickle(bytes)) return kPickleAdvice;
  const std::string text = visible_text(bytes);
  for (const std::string_view begin : {"<!doctype html", "<html", "<head"})
    if (text.starts_with(begin))
      return "an HTML page, as servers answer with in place of a file; expected the file itself: download it anew";
  return "";
}

}  // namespace dtrain
