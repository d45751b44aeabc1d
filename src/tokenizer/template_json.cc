#include "tokenizer/template_json.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "tokenizer/template_compare.h"
#include "tokenizer/template_number.h"
#include "tokenizer/template_repr.h"
#include "tokenizer/template_unicode.h"
#include "tokenizer/utf8.h"

namespace pith::jinja {
namespace {

std::string JsonFloat(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
  return FormatFloat(number);
}

// None, bools and numbers; nullopt for anything else.
std::optional<std::string> JsonScalar(const Value& value) {
  if (value.Is<None>()) return "null";
  if (const bool* boolean = value.As<bool>()) return *boolean ? "true" : "false";
  if (const int64_t* integer = value.As<int64_t>()) return absl::StrCat(*integer);
  if (const double* real = value.As<double>()) return JsonFloat(*real);
  return std::nullopt;
}

class JsonWriter {
 public:
  JsonWriter(Runtime& runtime, const JsonStyle& style) : budget_(runtime.budget()), style_(style) {}

  absl::Status Write(const Value& value) {
    const BudgetFrame frame(budget_);
    RETURN_IF_ERROR(frame.status());
    RETURN_IF_ERROR(budget_.Spend(1));
    RETURN_IF_ERROR(budget_.CheckText(out_.size()));
    if (const TextPtr* text = value.As<TextPtr>()) return WriteString((*text)->bytes());
    if (const ListPtr* list = value.As<ListPtr>()) return WriteList((*list)->items);
    if (const DictPtr* dict = value.As<DictPtr>()) return WriteDict((*dict)->items);
    const std::optional<std::string> scalar = JsonScalar(value);
    if (!scalar.has_value()) return UsageError("tojson: expected a value with a JSON form, found ", TypeName(value));
    out_ += *scalar;
    return absl::OkStatus();
  }

  std::string Take() && { return std::move(out_); }

 private:
  absl::Status BreakLine() {
    if (!style_.indent.has_value()) return absl::OkStatus();
    const size_t size = style_.indent->size() * static_cast<size_t>(level_);
    RETURN_IF_ERROR(budget_.CheckText(out_.size() + size));
    RETURN_IF_ERROR(budget_.SpendScan(size));
    out_ += '\n';
    for (int i = 0; i < level_; ++i) out_ += *style_.indent;
    return absl::OkStatus();
  }

  absl::Status WriteString(absl::string_view text) {
    RETURN_IF_ERROR(budget_.SpendText(text.size()));
    out_ += '"';
    for (size_t i = 0; i < text.size();) {
      const char32_t c = DecodeUtf8(text, &i);
      constexpr absl::string_view kEscaped = "\"\\\b\f\n\r\t", kLetters = "\"\\bfnrt";
      const size_t escape = c < 0x80 ? kEscaped.find(static_cast<char>(c)) : absl::string_view::npos;
      if (escape != absl::string_view::npos) {
        out_ += {'\\', kLetters[escape]};
      } else if (c < 0x20 || (style_.ensure_ascii && c >= 0x7F && c < 0x10000)) {
        absl::StrAppendFormat(&out_, "\\u%04x", static_cast<uint32_t>(c));
      } else if (style_.ensure_ascii && c >= 0x10000) {
        absl::StrAppendFormat(&out_, "\\u%04x\\u%04x", 0xD800 + ((c - 0x10000) >> 10), 0xDC00 + ((c - 0x10000) & 0x3FF));
      } else {
        AppendUtf8(c, &out_);
      }
    }
    out_ += '"';
    return absl::OkStatus();
  }

  absl::Status WriteList(const ValueList& items) {
    if (items.empty()) {
      out_ += "[]";
      return absl::OkStatus();
    }
    out_ += '[';
    ++level_;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      RETURN_IF_ERROR(BreakLine());
      RETURN_IF_ERROR(Write(items[i]));
    }
    --level_;
    RETURN_IF_ERROR(BreakLine());
    out_ += ']';
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<size_t>> Order(const DictItems& dict) {
    const auto& items = dict.items();
    return StableSort(items.size(), [&](size_t a, size_t b) -> absl::StatusOr<bool> {
      return style_.sort_keys ? Less(budget_, items[a].first, items[b].first) : false;
    });
  }

  absl::Status WriteDict(const DictItems& dict) {
    if (dict.size() == 0) {
      out_ += "{}";
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const std::vector<size_t> order, Order(dict));
    out_ += '{';
    ++level_;
    bool first = true;
    for (const size_t i : order) {
      const auto& [key, value] = dict.items()[i];
      if (!first) out_ += style_.item_separator;
      first = false;
      RETURN_IF_ERROR(BreakLine());
      const TextPtr* text = key.As<TextPtr>();
      const std::optional<std::string> scalar = JsonScalar(key);
      if (text == nullptr && !scalar.has_value()) return UsageError("tojson: expected keys that are str, int, float, bool or none");
      RETURN_IF_ERROR(WriteString(text != nullptr ? absl::string_view((*text)->bytes()) : *scalar));
      out_ += style_.key_separator;
      RETURN_IF_ERROR(Write(value));
    }
    --level_;
    RETURN_IF_ERROR(BreakLine());
    out_ += '}';
    return absl::OkStatus();
  }

  Budget& budget_;
  const JsonStyle& style_;
  std::string out_;
  int level_ = 0;
};

}  // namespace

absl::StatusOr<TextPtr> DumpJsonText(Runtime& runtime, const Value& value, const JsonStyle& style) {
  JsonWriter writer(runtime, style);
  RETURN_IF_ERROR(writer.Write(value));
  ASSIGN_OR_RETURN(const bool user, HasUserText(runtime.budget(), value));
  const std::string json = std::move(writer).Take();
  RETURN_IF_ERROR(runtime.budget().SpendText(json.size()));
  return MakeText(json, user);
}

}  // namespace pith::jinja
