// The one exception type of the project, and the check that throws it.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace dtrain {

// What kind of thing went wrong. The values are the exit codes of the programs.
enum class Fault {
  config = 1,         // usage or configuration, and misuse of an interface
  data = 2,           // bytes of a data set
  numeric = 3,        // NaN, Inf, divergence
  communication = 4,  // a peer or the network
  checkpoint = 5,     // no usable checkpoint, or it does not fit the run
  resource = 6,       // memory, disk, file descriptors, device
};

// Says what was being done, what was expected, what was found and where, in one line.
class Error : public std::runtime_error {
 public:
  Error(Fault fault, const std::string& message) : std::runtime_error(message), fault_(fault) {}
  explicit Error(const std::string& message) : Error(Fault::config, message) {}
  Fault fault() const { return fault_; }

 private:
  Fault fault_;
};

// Joins its arguments as an ostream would print them.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

}  // namespace dtrain

// DT_CHECK(condition, parts...): throws Error (Fault::config) with the joined parts. Always on; for public entry points
// and IO boundaries. Elsewhere, and for other kinds of fault, throw Error directly.
#define DT_CHECK(condition, ...)                                                     \
  do {                                                                               \
    if (!(condition)) [[unlikely]]                                                   \
      throw ::dtrain::Error(::dtrain::Fault::config, ::dtrain::concat(__VA_ARGS__)); \
  } while (false)
