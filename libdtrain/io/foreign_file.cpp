#include "libdtrain/io/foreign_file.h"

#include <algorithm>

namespace dtrain {

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf", kSpace = " \t\r\n", kZip = "PK\x03\x04";
constexpr const char *kHdf5 = "an HDF5 file", *kPickle = "pickled Python objects";
constexpr size_t kBraceOfSafetensors = 8;  // offset of '{', after the header's size

struct KnownBeginning {
  std::string_view bytes;
  const char* what;
};

constexpr KnownBeginning kKnownBeginnings[] = {
    {"version https://git-lfs",
     "a Git LFS pointer, which stands for the file; expected the file itself: run git lfs pull in its repository"},
    {kZip, "a zip archive; unpack it with unzip first"},
    {"\x1f\x8b", "packed by gzip; unpack it with gunzip first"},
    {"BZh", "packed by bzip2; unpack it with bunzip2 first"},
    {"\xfd"
     "7zXZ",
     "packed by xz; unpack it with unxz first"},
    {"\x28\xb5\x2f\xfd", "packed by zstd; unpack it with unzstd first"},
    {"Rar!", "a RAR archive; unpack it first"},
    {"\x89HDF\r\n\x1a\n", kHdf5},
    {"\x80\x02", kPickle},  // protocols 2 to 5
    {"\x80\x03", kPickle},
    {"\x80\x04", kPickle},
    {"\x80\x05", kPickle},
    {"\xff\xfe", "text in UTF-16; save it as UTF-8"},
    {"\xfe\xff", "text in UTF-16; save it as UTF-8"},
};

// Lower case, from the first printable character on.
std::string visible_text(std::string_view bytes) {
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  bytes.remove_prefix(std::min(bytes.find_first_not_of(kSpace), bytes.size()));
  std::string text(bytes.substr(0, kForeignBytes));
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace

std::string foreign_content(std::string_view bytes) {
  for (const KnownBeginning& known : kKnownBeginnings)
    if (bytes.starts_with(known.bytes)) return known.what;
  const std::string text = visible_text(bytes);
  for (const std::string_view begin : {"<!doctype html", "<html", "<head"})
    if (text.starts_with(begin))
      return "an HTML page, as servers answer with in place of a file; expected the file itself: download it anew";
  return "";
}

bool begins_safetensors(std::string_view bytes) {
  return bytes.size() > kBraceOfSafetensors && bytes[kBraceOfSafetensors] == '{';
}

std::string foreign_weights(std::string_view bytes) {
  if (begins_safetensors(bytes) || bytes.starts_with(kZip)) return "";
  const std::string what = foreign_content(bytes);
  if (what == kPickle) return what + " (PyTorch's .pth or .pt); expected safetensors";
  if (what == kHdf5)
    return what + " (Keras's .h5), which is not read; expected safetensors or NumPy's .npz: write one in Python";
  return what;
}

}  // namespace dtrain
