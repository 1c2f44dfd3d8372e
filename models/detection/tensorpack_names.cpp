#include "models/detection/tensorpack_names.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>

#include "libdtrain/io/npz.h"

namespace dtrain::models {
namespace {

// '#' stands for a number; the first one of TensorPack's is larger by `shift`.
struct NamePair {
  std::string_view ours, theirs;
  int shift = 0;
};
constexpr NamePair kLayers[] = {{"backbone.body.conv1", "conv0"},
                                {"backbone.body.layer#.#.conv#", "group#/block#/conv#", -1},
                                {"backbone.body.layer#.#.downsample.0", "group#/block#/convshortcut", -1},
                                {"backbone.fpn.inner_blocks.#.0", "fpn/lateral_1x1_c#", 2},
                                {"backbone.fpn.layer_blocks.#.0", "fpn/posthoc_3x3_p#", 2},
                                {"rpn.head.conv.0.0", "rpn/conv0"},
                                {"rpn.head.cls_logits", "rpn/class"},
                                {"rpn.head.bbox_pred", "rpn/box"},
                                {"roi_heads.box_head.fc#", "fastrcnn/fc#"},
                                {"roi_heads.box_head.#.0", "fastrcnn/conv#"},
                                {"roi_heads.box_head.5", "fastrcnn/fc"},  // after four convolutions
                                {"roi_heads.box_predictor.cls_score", "fastrcnn/outputs/class"},
                                {"roi_heads.box_predictor.bbox_pred", "fastrcnn/outputs/box"},
                                {"roi_heads.box_predictor.cls_score", "fastrcnn/class"},  // without a pyramid
                                {"roi_heads.box_predictor.bbox_pred", "fastrcnn/box"},
                                {"roi_heads.stage#.box_head.fc#", "cascade_rcnn_stage#/head/fc#"},
                                {"roi_heads.stage#.box_head.#.0", "cascade_rcnn_stage#/head/conv#"},
                                {"roi_heads.stage#.box_head.5", "cascade_rcnn_stage#/head/fc"},
                                {"roi_heads.stage#.box_predictor.cls_score", "cascade_rcnn_stage#/outputs/class"},
                                {"roi_heads.stage#.box_predictor.bbox_pred", "cascade_rcnn_stage#/outputs/box"},
                                {"roi_heads.mask_head.#.0", "maskrcnn/fcn#"},
                                {"roi_heads.mask_predictor.conv5_mask", "maskrcnn/deconv"},
                                {"roi_heads.mask_predictor.mask_fcn_logits", "maskrcnn/conv"}};
constexpr NamePair kNorms[] = {{"backbone.body.bn1", "conv0/bn"},
                               {"backbone.body.layer#.#.bn#", "group#/block#/conv#/bn", -1},
                               {"backbone.body.layer#.#.downsample.1", "group#/block#/convshortcut/bn", -1},
                               {"backbone.body.bn1", "conv0/gn"},
                               {"backbone.body.layer#.#.bn#", "group#/block#/conv#/gn", -1},
                               {"backbone.body.layer#.#.downsample.1", "group#/block#/convshortcut/gn", -1},
                               {"backbone.fpn.inner_blocks.#.1", "fpn/gn_c#", 2},
                               {"backbone.fpn.layer_blocks.#.1", "fpn/gn_p#", 2},
                               {"roi_heads.box_head.#.1", "fastrcnn/gn#"},
                               {"roi_heads.stage#.box_head.#.1", "cascade_rcnn_stage#/head/gn#"},
                               {"roi_heads.mask_head.#.1", "maskrcnn/gn#"}};
constexpr NamePair kOfLayer[] = {{".weight", "/W"}, {".bias", "/b"}};
constexpr NamePair kOfNorm[] = {
    {".weight", "/gamma"}, {".bias", "/beta"}, {".running_mean", "/mean/EMA"}, {".running_var", "/variance/EMA"}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The numbers at the places of '#', where `name` has that form.
std::optional<std::vector<int>> numbers_in(std::string_view form, std::string_view name) {
  constexpr size_t kDigits = 4;
  std::vector<int> numbers;
  for (const char c : form) {
    size_t taken = 0;
    if (c == '#') {
      int number = 0;
      while (taken < name.size() && taken < kDigits && is_digit(name[taken]))
        number = 10 * number + name[taken++] - '0';
      numbers.push_back(number);
    } else if (!name.empty() && name[0] == c) {
      taken = 1;
    }
    if (taken == 0) return {};
    name.remove_prefix(taken);
  }
  if (!name.empty()) return {};
  return numbers;
}

std::string filled(std::string_view form, const std::vector<int>& numbers, int shift) {
  std::string name;
  size_t next = 0;
  for (const char c : form) {
    if (c != '#')
      name += c;
    else if (const int number = numbers[next] + (next == 0 ? shift : 0); next++, number >= 0)
      name += std::to_string(number);
    else
      return "";
  }
  return name;
}

// The name among `pairs`, followed by one of `parts`, in the other form; empty where there is none.
template <class Pairs, class Parts>
std::string translated(std::string_view name, const Pairs& pairs, const Parts& parts, bool to_theirs) {
  for (const NamePair& part : parts) {
    const std::string_view end = to_theirs ? part.ours : part.theirs;
    if (!name.ends_with(end)) continue;
    const std::string_view layer = name.substr(0, name.size() - end.size());
    for (const NamePair& pair : pairs) {
      const auto numbers = numbers_in(to_theirs ? pair.ours : pair.theirs, layer);
      if (!numbers) continue;
      const std::string other =
          filled(to_theirs ? pair.theirs : pair.ours, *numbers, to_theirs ? pair.shift : -pair.shift);
      if (!other.empty()) return other + std::string(to_theirs ? part.theirs : part.ours);
    }
  }
  return "";
}

// `name` with `part` replaced, where it has it.
std::string with_part(std::string name, std::string_view part, std::string_view by) {
  const size_t at = name.find(part);
  return at == name.npos ? name : name.replace(at, part.size(), by);
}

std::string without_output(const std::string& name) {
  return name.ends_with(":0") ? name.substr(0, name.size() - 2) : name;
}

// What such files hold besides.
bool is_expected(const std::string& name) {
  for (const char* end : {"/Momentum", "/AccumGrad", "learning_rate", "global_step"})
    if (name.ends_with(end)) return true;
  return name == "linear/W" || name == "linear/b";
}

// How the elements of a parameter lie in TensorPack's array.
struct Arrangement {
  Shape theirs{};
  // Where element (k, position, channel) of our weight lies; position in rows of the filter, or of the image.
  int64_t k_step = 1, position_step = 1, channel_step = 1;
  int64_t k_count = 1, position_count = 1, channel_count = 1;
  int64_t first_k = 0;            // before it our elements have no counterpart
  bool reverse_channels = false;  // of images, which are BGR in TensorPack
};

bool is_mask_predictor(const std::string& name) { return name.find("mask_fcn_logits") != name.npos; }

Arrangement arrangement_of(const Parameter& parameter) {
  const Shape& shape = parameter.shape;
  const ParameterOptions& options = parameter.options();
  const int64_t first_k = is_mask_predictor(parameter.name) ? 1 : 0, k = shape[0] - first_k;
  Arrangement a{.theirs = {k}, .k_count = k, .first_k = first_k};
  if (options.layout == Layout::krsc) {
    const int64_t c = shape[3];
    a.position_count = shape[1] * shape[2];
    a.channel_count = c;
    a.position_step = c * k;
    // Also for a transposed convolution: k are the inputs then, in both.
    a.theirs = {shape[1], shape[2], c, k};
    a.channel_step = k;
    a.reverse_channels = parameter.name == "backbone.body.conv1.weight";
  } else if (shape.rank() == 2) {
    a.channel_count = options.layout == Layout::flat ? options.channels : shape[1];
    a.position_count = shape[1] / a.channel_count;
    a.theirs = {shape[1], k};
    a.position_step = k;
    a.channel_step = k * a.position_count;
  }
  return a;
}

// Into `ours`, which has the parameter's values; elements without counterpart keep them.
void arrange(const Arrangement& a, const std::vector<float>& theirs, std::vector<float>& ours) {
  size_t to = static_cast<size_t>(a.first_k * a.position_count * a.channel_count);
  for (int64_t k = 0; k < a.k_count; ++k)
    for (int64_t position = 0; position < a.position_count; ++position)
      for (int64_t c = 0; c < a.channel_count; ++c) {
        const int64_t channel = a.reverse_channels ? a.channel_count - 1 - c : c;
        ours[to++] = theirs[static_cast<size_t>(k * a.k_step + position * a.position_step + channel * a.channel_step)];
      }
}

class Loading {
 public:
  Loading(ParameterStore& store, const NpzFile& file) : store_(store), context_(store.context()), file_(file) {
    for (const NpzEntry& entry : file.entries()) by_name_[without_output(entry.name)] = &entry;
  }

  void load(const std::string& name, const Tensor& value, const Arrangement& arrangement) {
    const std::string theirs = tensorpack_name(store_, name);
    const auto found = by_name_.find(theirs);
    if (theirs.empty() || found == by_name_.end()) {
      report.missing.push_back(theirs.empty() ? name : concat(name, " (", theirs, ")"));
      return;
    }
    const NpyHeader& array = found->second->array;
    if (array.shape != arrangement.theirs) {
      report.mismatched.push_back(concat(theirs, ": file ", array.shape, ", model ", arrangement.theirs));
      return;
    }
    const std::vector<float> read = file_.read(*found->second);
    const auto bad = std::ranges::find_if(read, [](float number) { return !std::isfinite(number); });
    if (bad != read.end())
      throw Error(Fault::numeric,
                  concat(file_.path(), ": element ", bad - read.begin(), " of ", theirs, " is not finite"));
    std::vector<float> ours(static_cast<size_t>(value.count()));
    if (arrangement.first_k > 0) context_.download(value, ours.data(), "loading weights");
    arrange(arrangement, read, ours);
    context_.upload(ours.data(), value);
    report.loaded.push_back(name);
  }

  WeightReport report{};

 private:
  ParameterStore& store_;
  Context& context_;
  const NpzFile& file_;
  std::map<std::string, const NpzEntry*> by_name_;
};

}  // namespace

std::string tensorpack_name(const std::string& name) {
  const std::string norm = translated(name, kNorms, kOfNorm, true);
  return norm.empty() ? translated(name, kLayers, kOfLayer, true) : norm;
}

std::string tensorpack_name(ParameterStore& store, const std::string& name) {
  std::string theirs = tensorpack_name(name);
  const std::string norm = name.substr(0, name.rfind('.'));
  if (!store.find_buffer(norm + ".running_mean")) theirs = with_part(theirs, "/bn/", "/gn/");
  if (!store.find("backbone.fpn.inner_blocks.0.0.weight")) theirs = with_part(theirs, "fastrcnn/outputs/", "fastrcnn/");
  return theirs;
}

std::string name_of_tensorpack(const std::string& name) {
  const std::string whole = without_output(name), norm = translated(whole, kNorms, kOfNorm, false);
  return norm.empty() ? translated(whole, kLayers, kOfLayer, false) : norm;
}

WeightReport load_tensorpack(ParameterStore& store, const std::string& path, Fault fault) {
  DT_CHECK(store.allocated(), "load_tensorpack: the store holds no values before ParameterStore::allocate()");
  const NpzFile file(path, fault);
  Loading loading(store, file);
  for (const Parameter& parameter : store.parameters())
    loading.load(parameter.name, parameter.value, arrangement_of(parameter));
  for (const Buffer& buffer : store.buffers())
    loading.load(buffer.name, buffer.value, {.theirs = buffer.shape, .k_count = buffer.shape[0]});
  WeightReport& report = loading.report;
  for (const NpzEntry& entry : file.entries()) {
    const std::string ours = name_of_tensorpack(entry.name), name = without_output(entry.name);
    const bool known = (store.find(ours) || store.find_buffer(ours)) && tensorpack_name(store, ours) == name;
    if (!known && !is_expected(name)) report.unexpected.push_back(entry.name);
  }
  if (report.loaded.empty()) throw Error(fault, concat(path, ": does not fit the model: ", report.summary()));
  store.refresh_compute();
  return report;
}

}  // namespace dtrain::models
