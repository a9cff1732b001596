// Running operators on backends from their one definition.
#pragma once

#include <algorithm>

#include "lamella/dispatch/call.h"

LAMELLA_API_BEGIN
namespace lamella::ops {

/// Gives dispatch the cells of backends; called once before the built-in operators are added.
void install_class_hooks();

/// Shape, dtype and attributes of the results of a (functional) frame, from logical sizes: raises what the
/// operator would raise for these shapes. Not for views; for composites by definition.
void infer_frame(const Frame& frame, Inferred& out);

/// Whether the row of a composite states what it is besides how it is composed: see NOTE: [definitions of
/// composites].
bool has_definition(const Op& op);
/// The composite's results on the reference column by its definition, where no result shares memory with an
/// argument. Errors: what the definition refuses, in a text that says no more.
Tensors call_definition(const Op& op, const Values& values);

/// Raises unless `target`, called `arg`, can hold `result`: sizes, dtype, elements apart from each other.
void check_target(const Op& base, std::string_view arg, const Tensor& target, const Shape& result);

/// Likewise, for the frame of the functional call; besides: a target may be an argument, but not share a part
/// of its memory with one.
void check_written(const Frame& base, std::string_view arg, const Tensor& target, const Shape& result);

/// True when the call went up, for some tensor comes late, or to another device.
bool sent_on(Frame& frame, int key);
/// Raises what is wrong with the tensor arguments for the backend `key`.
void check_backend_args(const Frame& frame, int key);

/// Runs another operator or its kernel; what it refuses is refused under the name of the one that was called.
template <class F> void under_own_name(const Frame& f, std::string_view other, F&& run) {
  try {
    run();
  } catch (const Error& e) {
    if (e.op() != other) throw;
    const auto& params = f.op->base->schema.params;
    const bool has = std::ranges::find(params, e.argument(), &Param::name) != params.end();
    throw e.by(f.op->base->name, has ? e.argument() : "");
  }
}

}  // namespace lamella::ops
LAMELLA_API_END
