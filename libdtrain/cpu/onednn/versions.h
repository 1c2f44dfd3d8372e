// Primitive descriptors for oneDNN 2 and oneDNN 3 from the same source. For CPU arms only, like <dnnl.hpp>.
#pragma once

#include <dnnl.hpp>

namespace dtrain::cpu {

#if DNNL_VERSION_MAJOR >= 3

// The descriptor of a primitive of kind, algorithm, operands and geometry `what`, in oneDNN's order.
template <class Primitive, class... What>
typename Primitive::primitive_desc onednn_description(const dnnl::engine& engine,
                                                      const dnnl::primitive_attr& attributes, const What&... what) {
  return {engine, what..., attributes};
}

// The descriptor of a gradient, which takes the forward primitive's descriptor as a hint.
template <class Primitive, class Hint, class... What>
typename Primitive::primitive_desc onednn_description_with_hint(const dnnl::engine& engine,
                                                                const dnnl::primitive_attr& attributes,
                                                                const Hint& hint, const What&... what) {
  return {engine, what..., hint, attributes};
}

#else

template <class Primitive, class... What>
typename Primitive::primitive_desc onednn_description(const dnnl::engine& engine,
                                                      const dnnl::primitive_attr& attributes, const What&... what) {
  return {typename Primitive::desc(what...), attributes, engine};
}

template <class Primitive, class Hint, class... What>
typename Primitive::primitive_desc onednn_description_with_hint(const dnnl::engine& engine,
                                                                const dnnl::primitive_attr& attributes,
                                                                const Hint& hint, const What&... what) {
  return {typename Primitive::desc(what...), attributes, engine, hint};
}

#endif

}  // namespace dtrain::cpu
