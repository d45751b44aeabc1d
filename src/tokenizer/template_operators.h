// + - * / // % ** and the signs, as Python defines them on the values of a template.
// Errors: types the operator does not take, undefined values, overflow past 64 bits, division by zero, passed limits.
#pragma once

#include "absl/status/statusor.h"
#include "tokenizer/template_ast.h"
#include "tokenizer/template_runtime.h"
#include "tokenizer/template_value.h"

namespace pith::jinja {

absl::StatusOr<Value> ApplyBinary(Runtime& runtime, BinaryOperator op, const Value& a, const Value& b);
absl::StatusOr<Value> ApplySign(bool negate, const Value& operand);

// The error that using an undefined value gives.
absl::Status UndefinedError(const Value& undefined);

}  // namespace pith::jinja
