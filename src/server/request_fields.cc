#include "server/request_fields.h"

#include <cmath>
#include <limits>

#include "base/status.h"

namespace pith {

void RequestFields::Record(const absl::Status& status) { status_.Update(status); }

void RequestFields::Fail(absl::string_view name, absl::string_view message) { Record(FieldError(name, message)); }

void RequestFields::FailType(absl::string_view name, absl::string_view expected, const Json& found) {
  Fail(name, absl::StrCat("expected ", expected, ", found ", Printable(DumpJson(found), 100)));
}

std::optional<int64_t> RequestFields::OptionalInt(absl::string_view name, int64_t min, int64_t max) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  const std::string expected = absl::StrCat("an integer in [", min, ", ", max, "]");
  // 1.0 is an integer in JSON; 1.5 is not.
  if (value->is_number_float()) {
    const double number = value->get<double>();
    if (number == std::floor(number) && number >= -0x1p63 && number < 0x1p63) {
      const auto integer = static_cast<int64_t>(number);
      if (integer >= min && integer <= max) return integer;
    }
  } else if (value->is_number_unsigned()) {
    const auto number = value->get<uint64_t>();
    if (max >= 0 && number <= static_cast<uint64_t>(max) && (min < 0 || number >= static_cast<uint64_t>(min)))
      return static_cast<int64_t>(number);
  } else if (value->is_number_integer()) {
    const auto number = value->get<int64_t>();
    if (number >= min && number <= max) return number;
  }
  FailType(name, expected, *value);
  return std::nullopt;
}

int64_t RequestFields::Int(absl::string_view name, int64_t min, int64_t max, int64_t default_value) {
  return OptionalInt(name, min, max).value_or(default_value);
}

float RequestFields::Float(absl::string_view name, float default_value) {
  const Json* value = Find(name);
  if (value == nullptr) return default_value;
  if (value->is_number()) {
    const double number = value->get<double>();
    if (std::fabs(number) <= static_cast<double>(std::numeric_limits<float>::max())) return static_cast<float>(number);
  }
  FailType(name, "a number", *value);
  return default_value;
}

bool RequestFields::Bool(absl::string_view name, bool default_value) {
  const Json* value = Find(name);
  if (value == nullptr) return default_value;
  if (value->is_boolean()) return value->get<bool>();
  FailType(name, "true or false", *value);
  return default_value;
}

std::string RequestFields::String(absl::string_view name, absl::string_view default_value) {
  const Json* value = Find(name);
  if (value == nullptr) return std::string(default_value);
  if (value->is_string()) return value->get<std::string>();
  FailType(name, "a string", *value);
  return std::string(default_value);
}

}  // namespace pith
