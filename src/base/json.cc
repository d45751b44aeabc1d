#include "base/json.h"

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"

namespace pith {
namespace {

// Builds the document while refusing duplicate keys and excess depth, which the DOM parser would accept silently.
class StrictHandler : public nlohmann::json_sax<Json> {
 public:
  explicit StrictHandler(int max_depth) : max_depth_(max_depth) {}

  bool null() override { return Add(Json(nullptr)); }
  bool boolean(bool value) override { return Add(Json(value)); }
  bool number_integer(number_integer_t value) override { return Add(Json(value)); }
  bool number_unsigned(number_unsigned_t value) override { return Add(Json(value)); }
  bool number_float(number_float_t value, const string_t&) override { return Add(Json(value)); }
  bool string(string_t& value) override { return Add(Json(std::move(value))); }
  bool binary(binary_t&) override { return Fail("binary values are not JSON"); }
  bool start_object(std::size_t) override { return Open(Json::object()); }
  bool start_array(std::size_t) override { return Open(Json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(string_t& value) override {
    if (stack_.back()->contains(value)) return Fail(absl::StrCat("duplicate key \"", Printable(value), "\""));
    key_ = std::move(value);
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    if (error_.empty()) error_ = Message(error.what());
    return false;
  }

  const std::string& error() const { return error_; }
  Json TakeRoot() { return std::move(root_); }

 private:
  // "[json.exception.parse_error.101] parse error at line 1, column 3: ..." without the bracketed id.
  static std::string Message(absl::string_view what) {
    const size_t end = what.find("] ");
    return Printable(end == absl::string_view::npos ? what : what.substr(end + 2), 300);
  }

  bool Fail(std::string message) {
    error_ = std::move(message);
    return false;
  }

  Json* Place(Json value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[key_] = std::move(value));
  }

  bool Add(Json value) {
    Place(std::move(value));
    return true;
  }

  bool Open(Json value) {
    if (static_cast<int>(stack_.size()) >= max_depth_) return Fail(absl::StrCat("nested deeper than ", max_depth_, " levels"));
    // A parent's element never moves while its child is open: only the innermost container grows.
    stack_.push_back(Place(std::move(value)));
    return true;
  }

  bool Close() {
    stack_.pop_back();
    return true;
  }

  int max_depth_;
  Json root_;
  std::vector<Json*> stack_;
  std::string key_;
  std::string error_;
};

absl::Status TypeError(absl::string_view key, absl::string_view expected, const Json& found) {
  return BadFileError("\"", key, "\": expected ", expected, ", found ", Printable(DumpJson(found), 60));
}

absl::Status MissingKey(absl::string_view key, absl::string_view expected) {
  return BadFileError("\"", key, "\": expected ", expected, ", found nothing");
}

}  // namespace

absl::StatusOr<Json> ParseJson(absl::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) return BadFileError("JSON: expected at most ", limits.max_bytes, " bytes, found ", text.size());
  StrictHandler handler(limits.max_depth);
  bool parsed = false;
  try {
    parsed = Json::sax_parse(text.begin(), text.end(), &handler);
  } catch (const std::exception& error) {
    return BadFileError("JSON: ", Printable(error.what(), 300));
  }
  if (!parsed) return BadFileError("JSON: ", handler.error());
  return handler.TakeRoot();
}

const Json* FindMember(const Json& object, absl::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(std::string(key));
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

absl::StatusOr<int64_t> GetInt(const Json& object, absl::string_view key, int64_t min, int64_t max) {
  const std::string expected = absl::StrCat("an integer in [", min, ", ", max, "]");
  const Json* member = FindMember(object, key);
  if (member == nullptr) return MissingKey(key, expected);
  if (!member->is_number_integer()) return TypeError(key, expected, *member);
  if (member->is_number_unsigned() && member->get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return TypeError(key, expected, *member);
  }
  const int64_t value = member->get<int64_t>();
  if (value < min || value > max) return TypeError(key, expected, *member);
  return value;
}

absl::StatusOr<int64_t> GetInt(const Json& object, absl::string_view key, int64_t min, int64_t max, int64_t default_value) {
  return FindMember(object, key) == nullptr ? absl::StatusOr<int64_t>(default_value) : GetInt(object, key, min, max);
}

absl::StatusOr<double> GetDouble(const Json& object, absl::string_view key, double min, double max) {
  const std::string expected = absl::StrCat("a number in [", min, ", ", max, "]");
  const Json* member = FindMember(object, key);
  if (member == nullptr) return MissingKey(key, expected);
  if (!member->is_number()) return TypeError(key, expected, *member);
  const double value = member->get<double>();
  if (!(value >= min && value <= max)) return TypeError(key, expected, *member);
  return value;
}

absl::StatusOr<double> GetDouble(const Json& object, absl::string_view key, double min, double max, double default_value) {
  return FindMember(object, key) == nullptr ? absl::StatusOr<double>(default_value) : GetDouble(object, key, min, max);
}

absl::StatusOr<bool> GetBool(const Json& object, absl::string_view key, bool default_value) {
  const Json* member = FindMember(object, key);
  if (member == nullptr) return default_value;
  if (!member->is_boolean()) return TypeError(key, "true or false", *member);
  return member->get<bool>();
}

absl::StatusOr<std::string> GetString(const Json& object, absl::string_view key) {
  const Json* member = FindMember(object, key);
  if (member == nullptr) return MissingKey(key, "a string");
  if (!member->is_string()) return TypeError(key, "a string", *member);
  return member->get<std::string>();
}

absl::StatusOr<std::string> GetString(const Json& object, absl::string_view key, absl::string_view default_value) {
  return FindMember(object, key) == nullptr ? absl::StatusOr<std::string>(std::string(default_value)) : GetString(object, key);
}

std::string DumpJson(const Json& value, int indent) { return value.dump(indent, ' ', false, Json::error_handler_t::replace); }

std::string DumpJson(const OrderedJson& value, int indent) { return value.dump(indent, ' ', false, OrderedJson::error_handler_t::replace); }

}  // namespace pith
