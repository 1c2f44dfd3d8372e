// What inference makes of parameters once and uses often: filters with batch norm folded into them, in the order in
// which kernels read them.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <typeindex>
#include <utility>

namespace dtrain {

// Belongs to whoever owns the parameters, which stay as they are as long as it lives. Tapes of several threads may use
// one at a time.
class PreparedWeights {
 public:
  // Where the parameters lie that a form is made of: one, or two that belong together.
  using Addresses = std::pair<const void*, const void*>;

  // Their Form: the std::shared_ptr<Form> that `make` returned when it was first asked for.
  template <class Form, class Make>
  std::shared_ptr<Form> of(const Addresses& addresses, const Make& make) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<void>& form = forms_[{addresses, std::type_index(typeid(Form))}];
    if (!form) form = std::shared_ptr<Form>(make());
    return std::static_pointer_cast<Form>(form);
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<Addresses, std::type_index>, std::shared_ptr<void>> forms_;
};

}  // namespace dtrain
