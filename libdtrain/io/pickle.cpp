#include "libdtrain/io/pickle.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <ranges>

#include "libdtrain/io/pickle_opcodes.h"
#include "libdtrain/io/pickle_scalars.h"
#include "libdtrain/io/pickle_stack.h"

namespace dtrain::pickle {
namespace {

constexpr size_t kWindow = size_t{64} << 10;

constexpr std::string_view kDictTypes[] = {"collections.OrderedDict",
                                           "collections.defaultdict",
                                           "builtins.dict",
                                           "__builtin__.dict",
                                           "pytorch_lightning.utilities.parsing.AttributeDict",
                                           "lightning.fabric.utilities.data.AttributeDict",
                                           "lightning_fabric.utilities.data.AttributeDict",
                                           "lightning.pytorch.utilities.parsing.AttributeDict"};
constexpr std::string_view kSetTypes[] = {"builtins.set", "__builtin__.set", "builtins.frozenset",
                                          "__builtin__.frozenset"};

bool one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

class Machine {
 public:
  Machine(Source& source, std::span<const std::string_view> allowed, Fault fault, const Limits& limits)
      : source_(source), allowed_(allowed), fault_(fault), limits_(limits), scalars_(source, limits), stack_(limits) {}

  Pickle run() {
    try {
      while (step(scalars_.number<unsigned char>())) {
      }
      const Id root = stack_.pop();
      return {stack_.take_values(), root};
    } catch (const Malformed& malformed) {
      throw Error(fault_, concat(source_.where(), ": byte ", opcode_at_, " of the pickle: ", malformed.what));
    }
  }

 private:
  void push_global(const std::string& module, const std::string& name) {
    std::string full = module + "." + name;
    const bool readable = full.size() <= 256 && std::ranges::all_of(full, [](char c) { return c > ' ' && c < 0x7f; });
    if (!readable || !one_of(allowed_, full))
      throw Malformed{concat("it names ", readable ? full : "an odd object",
                             ", which is no part of tensors or dictionaries and is not created. Save the model's "
                             "state_dict() alone: torch.save(model.state_dict(), FILE)")};
    stack_.push({.kind = Kind::global, .text = std::move(full)});
  }
  std::string popped_text() {
    const Value& value = stack_[stack_.pop()];
    if (value.kind != Kind::text || value.size > limits_.text) throw Malformed{"the name of a global is no text"};
    return value.text;
  }

  // REDUCE and NEWOBJ.
  void call() {
    const Id arguments = stack_.pop(), callee = stack_.pop();
    const Value &function = stack_[callee], &given = stack_[arguments];
    if (function.kind != Kind::global) throw Malformed{"a call of an object that is no global"};
    if (given.kind != Kind::tuple) throw Malformed{concat("the arguments of ", function.text, " are no tuple")};
    if (one_of(kDictTypes, function.text)) return stack_.push_items(Kind::dict, pairs_of(given));
    if (one_of(kSetTypes, function.text)) return stack_.push_items(Kind::set, {});
    stack_.push_items(Kind::call, {callee, arguments});
  }
  // OrderedDict([[key, value], ...]), as Python 2 wrote it.
  std::vector<Id> pairs_of(const Value& arguments) {
    std::vector<Id> items;
    if (arguments.items.empty()) return items;
    const Value& list = stack_[arguments.items[0]];
    if (list.kind != Kind::list) return items;  // the default factory of a defaultdict
    for (const Id one : list.items) {
      const Value& pair = stack_[one];
      if ((pair.kind != Kind::list && pair.kind != Kind::tuple) || pair.items.size() != 2)
        throw Malformed{"no pair of key and value"};
      items.insert(items.end(), pair.items.begin(), pair.items.end());
    }
    stack_.count_items(items.size());
    return items;
  }
  void build() {
    const Id state = stack_.pop();
    Value& object = stack_[stack_.top()];
    if (object.kind == Kind::dict) return;  // attributes, such as the _metadata of a state_dict
    if (object.kind != Kind::call || object.items.size() != 2)
      throw Malformed{"BUILD of an object that takes no state"};
    object.items.push_back(state);
  }

  // Executes an opcode; returns false after STOP.
  bool step(unsigned char op) {
    opcode_at_ = source_.at() - 1;
    if (std::optional<Value> scalar = scalars_.value_of(op)) {
      stack_.push(std::move(*scalar));
      return true;
    }
    if (container(op) || memo(op)) return true;
    switch (op) {
      case STOP:
        return false;
      case PROTO:
        if (const auto version = scalars_.number<unsigned char>(); version > 5)
          throw Malformed{concat("protocol ", +version)};
        return true;
      case FRAME:
        scalars_.number<uint64_t>();
        return true;
      case GLOBAL: {
        const std::string module = scalars_.line(), name = scalars_.line();
        push_global(module, name);
        return true;
      }
      case STACK_GLOBAL: {
        const std::string name = popped_text(), module = popped_text();
        push_global(module, name);
        return true;
      }
      case REDUCE:
      case NEWOBJ:
        call();
        return true;
      case BUILD:
        build();
        return true;
      case PERSID:
        stack_.push(*scalars_.value_of(UNICODE));
        stack_.push_items(Kind::persistent, {stack_.pop()});
        return true;
      case BINPERSID:
        stack_.push_items(Kind::persistent, {stack_.pop()});
        return true;
      default:
        break;
    }
    if (const char* name = unsupported(op)) throw Malformed{concat("opcode ", name, " is not supported")};
    throw Malformed{concat("no pickle, or a damaged one: ", +op, " is no opcode")};
  }

  bool container(unsigned char op) {
    switch (op) {
      case MARK:
        stack_.push_mark();
        return true;
      case EMPTY_LIST:
      case EMPTY_TUPLE:
      case EMPTY_DICT:
      case EMPTY_SET:
        stack_.push_items(op == EMPTY_LIST    ? Kind::list
                          : op == EMPTY_TUPLE ? Kind::tuple
                          : op == EMPTY_DICT  ? Kind::dict
                                              : Kind::set,
                          {});
        return true;
      case LIST:
      case TUPLE:
      case FROZENSET: {
        std::vector<Id> items = stack_.pop_to_mark();
        stack_.push_items(op == LIST ? Kind::list : op == TUPLE ? Kind::tuple : Kind::set, std::move(items));
        return true;
      }
      case DICT: {
        std::vector<Id> items = stack_.pop_to_mark();
        if (items.size() % 2 != 0) throw Malformed{"a key without a value"};
        stack_.push_items(Kind::dict, std::move(items));
        return true;
      }
      case TUPLE1:
      case TUPLE2:
      case TUPLE3: {
        std::vector<Id> items(static_cast<size_t>(op - TUPLE1) + 1);
        for (Id& item : items | std::views::reverse) item = stack_.pop();
        stack_.push_items(Kind::tuple, std::move(items));
        return true;
      }
      case APPEND: {
        const Id item = stack_.pop();
        stack_.append({item}, Kind::list);
        return true;
      }
      case APPENDS:
        stack_.append(stack_.pop_to_mark(), Kind::list);
        return true;
      case ADDITEMS:
        stack_.append(stack_.pop_to_mark(), Kind::set);
        return true;
      case SETITEM: {
        const Id value = stack_.pop(), key = stack_.pop();
        stack_.append({key, value}, Kind::dict);
        return true;
      }
      case SETITEMS:
        stack_.append(stack_.pop_to_mark(), Kind::dict);
        return true;
      default:
        return false;
    }
  }

  bool memo(unsigned char op) {
    switch (op) {
      case POP:
        stack_.pop_any();
        return true;
      case POP_MARK:
        stack_.pop_to_mark();
        return true;
      case DUP:
        stack_.push_again(stack_.top());
        return true;
      case PUT:
        stack_.put(scalars_.decimal_index());
        return true;
      case BINPUT:
        stack_.put(scalars_.number<uint8_t>());
        return true;
      case LONG_BINPUT:
        stack_.put(scalars_.number<uint32_t>());
        return true;
      case MEMOIZE:
        stack_.put(stack_.memo_size());
        return true;
      case GET:
        stack_.get(scalars_.decimal_index());
        return true;
      case BINGET:
        stack_.get(scalars_.number<uint8_t>());
        return true;
      case LONG_BINGET:
        stack_.get(scalars_.number<uint32_t>());
        return true;
      default:
        return false;
    }
  }

  Source& source_;
  std::span<const std::string_view> allowed_;
  Fault fault_;
  Limits limits_;
  ScalarReader scalars_;
  Stack stack_;
  uint64_t opcode_at_ = 0;
};

}  // namespace

void Source::read(void* to, uint64_t size) {
  if (!file_) {
    std::memcpy(to, bytes_.data() + at_, static_cast<size_t>(size));
  } else if (size > kWindow) {
    file_->read(at_, to, static_cast<size_t>(size));
  } else {
    if (at_ < window_begin_ || at_ + size > window_begin_ + window_.size()) {
      window_.resize(static_cast<size_t>(std::min<uint64_t>(kWindow, end_ - at_)));
      file_->read(at_, window_.data(), window_.size());
      window_begin_ = at_;
    }
    std::memcpy(to, window_.data() + (at_ - window_begin_), static_cast<size_t>(size));
  }
  at_ += size;
}

void Source::read_at(uint64_t offset, void* to, uint64_t size) const {
  if (file_)
    file_->read(offset, to, static_cast<size_t>(size));
  else
    std::memcpy(to, bytes_.data() + offset, static_cast<size_t>(size));
}

const Value* Pickle::find(const Value& dict, std::string_view key) const {
  const Value* found = nullptr;  // the last of equal keys counts, as in Python
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2)
    if (const Value& one = values[dict.items[i]]; one.kind == Kind::text && one.text == key)
      found = &values[dict.items[i + 1]];
  return found;
}

Pickle read(Source& source, std::span<const std::string_view> allowed, Fault fault, const Limits& limits) {
  return Machine(source, allowed, fault, limits).run();
}

}  // namespace dtrain::pickle
