// Typed access to the fields of a JSON request body. Every failure is a FieldError (kInvalidArgument) that names the field, the expectation
// and the finding, so that it becomes a 400 with `param`. null counts as absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/json.h"

namespace pith {

// Reads one object; the first failure is kept and later reads return defaults, so callers check status() once.
class RequestFields {
 public:
  explicit RequestFields(const Json& object) : object_(&object) {}

  int64_t Int(absl::string_view name, int64_t min, int64_t max, int64_t default_value);
  std::optional<int64_t> OptionalInt(absl::string_view name, int64_t min, int64_t max);
  // Any number an f32 can hold; its range is checked where it is used.
  float Float(absl::string_view name, float default_value);
  bool Bool(absl::string_view name, bool default_value);
  std::string String(absl::string_view name, absl::string_view default_value);
  const Json* Find(absl::string_view name) const { return FindMember(*object_, name); }

  // Records an error of the caller's own about a field; OK is no error.
  void Record(const absl::Status& status);
  void Fail(absl::string_view name, absl::string_view message);
  void FailType(absl::string_view name, absl::string_view expected, const Json& found);
  const absl::Status& status() const { return status_; }

 private:
  const Json* object_;
  absl::Status status_;
};

}  // namespace pith
