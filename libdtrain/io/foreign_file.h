// Files that are not what their name says, told by their first bytes: what a failed download or a repository without
// its large files leaves, and what is often given by mistake.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dtrain {

inline constexpr size_t kForeignBytes = 64;  // what is looked at

// What a file is that begins with `bytes`, and the way out, for people: "an HTML page, such as ...; download ...".
// Knows Git LFS pointers, HTML pages, packed files, HDF5, pickles of Python and text in UTF-16. Empty for all others.
std::string foreign_content(std::string_view bytes);

// The same of a file that is to have weights: empty for safetensors, whatever the size of their header looks like, and
// for zip archives, which NumPy's are.
std::string foreign_weights(std::string_view bytes);

// What PyTorch's pickles are, which lie in zip archives, too.
extern const char* const kPickleAdvice;

}  // namespace dtrain
