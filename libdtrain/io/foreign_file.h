// Files that are often given by mistake in place of weights or archives, told by their first bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dtrain {

inline constexpr size_t kForeignBytes = 64;  // what foreign_content() needs to see

// What a file is that begins with `bytes`, and the way out, for people: "an HTML page, such as ...; download ...".
// Knows Git LFS pointers, HTML pages, HDF5 and pickles of Python. Empty for all others.
std::string foreign_content(std::string_view bytes);

// The same for PyTorch's pickles, which lie in zip archives, too.
extern const char* const kPickleAdvice;

}  // namespace dtrain
