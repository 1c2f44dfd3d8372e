// Writing to pipes and terminals that are read slowly or not at all.
#pragma once

#include <ostream>
#include <string_view>

namespace dtrain::cli {

// Writes all of `text`; false, with errno set, where that fails. Waits for whoever reads a full pipe or a terminal that
// is halted. Two seconds after a request to stop nobody is waited for any more, and what cannot be written then is
// lost: ENOBUFS.
bool write_patiently(int fd, std::string_view text) noexcept;

// stdout and stderr, written in this way each time they are flushed.
std::ostream& patient_stdout();
std::ostream& patient_stderr();

}  // namespace dtrain::cli
