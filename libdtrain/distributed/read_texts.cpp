#include "libdtrain/distributed/read_texts.h"

#include <new>

#include "dtrain/core/error.h"

namespace dtrain {
namespace {

constexpr size_t kMostOfReason = 300;  // bytes of the reason, which may quote the text

}  // namespace

void read_texts(Group& group, const std::string& mine, const char* what,
                const std::function<void(int rank, const std::string& text)>& read) {
  const std::vector<std::string> texts = group.all_gather(mine, what);
  for (int rank = 0; rank < group.size(); ++rank)
    read_text(group, rank, texts[static_cast<size_t>(rank)], what, [&](const std::string& text) { read(rank, text); });
}

void read_text(const Group& group, int rank, const std::string& text, const char* what,
               const std::function<void(const std::string& text)>& read) {
  try {
    read(text);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(Fault::communication, concat(what, ": ", group.name(rank), " sent an invalid message: ",
                                             std::string(error.what()).substr(0, kMostOfReason)));
  }
}

}  // namespace dtrain
