// Filters that take or give text.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tokenizer/template_filters.h"
#include "tokenizer/template_format.h"
#include "tokenizer/template_json.h"
#include "tokenizer/template_loop.h"
#include "tokenizer/template_methods.h"
#include "tokenizer/template_repr.h"
#include "tokenizer/template_text_operations.h"

namespace pith::jinja {
namespace {

using Result = absl::StatusOr<Value>;

Result ToValue(absl::StatusOr<TextPtr> text) {
  if (!text.ok()) return text.status();
  return Value(*std::move(text));
}

// Markup stays markup, as with markupsafe.soft_str.
absl::StatusOr<TextPtr> SoftText(Runtime& runtime, const Value& value) {
  if (const TextPtr* text = value.As<TextPtr>()) return *text;
  return ToText(runtime.budget(), value);
}

template <absl::StatusOr<TextPtr> (*kMap)(Budget&, const TextPtr&)> Result Map(Runtime& runtime, const Value& self, const BoundArguments&) {
  ASSIGN_OR_RETURN(const TextPtr text, SoftText(runtime, self));
  return ToValue(kMap(runtime.budget(), text));
}

Result String(Runtime& runtime, const Value& self, const BoundArguments&) { return ToValue(SoftText(runtime, self)); }

Result Safe(Runtime& runtime, const Value& self, const BoundArguments&) {
  ASSIGN_OR_RETURN(const TextPtr text, SoftText(runtime, self));
  RETURN_IF_ERROR(runtime.budget().SpendText(text->bytes().size()));
  return Value(MarkText(text, true));
}

Result ForceEscape(Runtime& runtime, const Value& self, const BoundArguments&) {
  ASSIGN_OR_RETURN(const TextPtr text, ToText(runtime.budget(), self));
  return ToValue(EscapeText(runtime.budget(), text));
}

// Words end at white space, - ( { [ and <, unlike in str.title.
Result Title(Runtime& runtime, const Value& self, const BoundArguments&) {
  Budget& budget = runtime.budget();
  ASSIGN_OR_RETURN(const TextPtr text, SoftText(runtime, self));
  RETURN_IF_ERROR(budget.SpendText(text->bytes().size()));
  TextBuilder out;
  TextCursor cursor(*text);
  size_t rest = 0;  // where the characters not yet written begin
  bool starts_word = true;
  const auto flush = [&](size_t end) -> absl::Status {
    ASSIGN_OR_RETURN(const TextPtr lower, LowerText(budget, SliceText(text, rest, end)));
    out.Append(*lower);
    return absl::OkStatus();
  };
  while (cursor.Next()) {
    const char32_t c = cursor.code_point;
    const bool separates = IsSpace(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    if (starts_word && !separates) {
      RETURN_IF_ERROR(flush(cursor.begin));
      const CaseMapping upper = ToUpper(c);
      for (int i = 0; i < upper.size; ++i) out.AppendCodePoint(upper.code_points[i], cursor.user);
      rest = cursor.end;
    } else if (separates && !starts_word) {
      RETURN_IF_ERROR(flush(cursor.begin));
      rest = cursor.begin;
    }
    starts_word = separates;
  }
  RETURN_IF_ERROR(flush(text->bytes().size()));
  RETURN_IF_ERROR(budget.CheckText(out.size()));
  return Value(std::move(out).Build());
}

Result Trim(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const TextPtr text, SoftText(runtime, self));
  TextPtr characters;
  if (arguments.NotNone(0) != nullptr) {
    ASSIGN_OR_RETURN(characters, arguments.String(0));
  }
  return ToValue(StripText(runtime.budget(), text, characters.get(), true, true));
}

Result Replace(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  Budget& budget = runtime.budget();
  ASSIGN_OR_RETURN(const TextPtr text, ToText(budget, self));
  ASSIGN_OR_RETURN(const TextPtr old, ToText(budget, *arguments.At(0)));
  ASSIGN_OR_RETURN(const TextPtr replacement, ToText(budget, *arguments.At(1)));
  int64_t count = -1;
  if (arguments.NotNone(2) != nullptr) {
    ASSIGN_OR_RETURN(count, arguments.Integer(2, -1));
  }
  return ToValue(ReplaceText(budget, text, *old, replacement, count));
}

Result Indent(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  Budget& budget = runtime.budget();
  const TextPtr* text = self.As<TextPtr>();
  if (text == nullptr) return UsageError("indent: expected a str, found ", TypeName(self));
  TextPtr indentation = MakeText(" ");
  const Value* width = arguments.At(0);
  if (width != nullptr && width->Is<TextPtr>()) {
    indentation = *width->As<TextPtr>();
  } else {
    ASSIGN_OR_RETURN(const int64_t spaces, arguments.Integer(0, 4));
    ASSIGN_OR_RETURN(indentation, RepeatText(budget, indentation, spaces));
  }
  const bool first = arguments.Boolean(1, false), blank = arguments.Boolean(2, false);
  // A newline behind the text makes an empty last line count.
  ASSIGN_OR_RETURN(const TextPtr closed, ConcatTexts(budget, {*text, MakeText("\n")}, (*text)->markup()));
  ASSIGN_OR_RETURN(const TextRanges lines, SplitLines(budget, *closed, false));
  TextBuilder out;
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto [begin, end] = lines[i];
    if (i > 0) out.Append("\n", false);
    if (i == 0 ? first : blank || begin < end) {
      RETURN_IF_ERROR(budget.CheckText(out.size() + indentation->bytes().size()));
      RETURN_IF_ERROR(budget.SpendScan(indentation->bytes().size()));
      out.Append(*indentation);
    }
    out.Append(*closed, begin, end);
  }
  RETURN_IF_ERROR(budget.SpendText(out.size()));
  return Value(std::move(out).Build((*text)->markup()));
}

Result Center(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const TextPtr text, SoftText(runtime, self));
  ASSIGN_OR_RETURN(const int64_t width, arguments.Integer(0, 80));
  return ToValue(PadText(runtime.budget(), text, width, *MakeText(" "), true, true));
}

Result Truncate(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  Budget& budget = runtime.budget();
  ASSIGN_OR_RETURN(const int64_t length, arguments.Integer(0, 255));
  TextPtr end = MakeText("...");
  if (arguments.At(2) != nullptr) {
    ASSIGN_OR_RETURN(end, arguments.String(2));
  }
  int64_t leeway = 5;
  if (arguments.NotNone(3) != nullptr) {
    ASSIGN_OR_RETURN(leeway, arguments.Integer(3, 5));
  }
  if (length < end->length() || leeway < 0)
    return UsageError("truncate: expected a length of at least ", end->length(), ", found ", length);
  if (Length(self) >= 0 && Length(self) - leeway <= length) return self;
  const TextPtr* text = self.As<TextPtr>();
  if (text == nullptr) return UsageError("truncate: expected a str, found ", TypeName(self));
  ASSIGN_OR_RETURN(TextPtr kept, PickCharacters(budget, *text, 0, 1, length - end->length()));
  if (!arguments.Boolean(1, false)) {
    const size_t space = kept->bytes().rfind(' ');
    if (space != std::string::npos) kept = SliceText(kept, 0, space);
  }
  return ToValue(ConcatTexts(budget, {kept, end}, (*text)->markup()));
}

Result WordCount(Runtime& runtime, const Value& self, const BoundArguments&) {
  ASSIGN_OR_RETURN(const TextPtr text, SoftText(runtime, self));
  RETURN_IF_ERROR(runtime.budget().SpendScan(text->bytes().size()));
  int64_t words = 0;
  bool in_word = false;
  TextCursor cursor(*text);
  while (cursor.Next()) {
    const bool word = IsAlnum(cursor.code_point) || cursor.code_point == '_';
    words += word && !in_word ? 1 : 0;
    in_word = word;
  }
  return Value(words);
}

Result Format(Runtime& runtime, const Value& self, Arguments arguments) {
  if (!arguments.positional.empty() && !arguments.keyword.empty())
    return UsageError("format: expected positional or keyword values, found both");
  ASSIGN_OR_RETURN(const TextPtr text, SoftText(runtime, self));
  Value values;
  if (arguments.keyword.empty()) {
    ASSIGN_OR_RETURN(values, MakeList(runtime.budget(), std::move(arguments.positional), ListObject::Type::kTuple));
  } else {
    DictItems items;
    for (auto& [name, value] : arguments.keyword) RETURN_IF_ERROR(items.Set(runtime.budget(), MakeString(name), std::move(value)));
    ASSIGN_OR_RETURN(values, MakeDict(runtime.budget(), std::move(items)));
  }
  return ToValue(FormatPercent(runtime, text, values));
}

absl::Status SetIndent(Runtime& runtime, const Value& indent, JsonStyle* style) {
  if (const TextPtr* text = indent.As<TextPtr>()) {
    style->indent = (*text)->bytes();
  } else {
    const std::optional<int64_t> width = AsIndex(indent);
    if (!width.has_value()) return UsageError("tojson: expected an indent that is int, str or none, found ", TypeName(indent));
    ASSIGN_OR_RETURN(const TextPtr spaces, RepeatText(runtime.budget(), MakeText(" "), *width));
    style->indent = spaces->bytes();
  }
  style->item_separator.assign(1, ',');
  return absl::OkStatus();
}

Result ToJson(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  JsonStyle style{.ensure_ascii = arguments.Boolean(0, false), .sort_keys = arguments.Boolean(3, false)};
  if (const Value* indent = arguments.NotNone(1)) RETURN_IF_ERROR(SetIndent(runtime, *indent, &style));
  if (const Value* separators = arguments.NotNone(2)) {
    ASSIGN_OR_RETURN(const ValueList both, Collect(runtime, *separators));
    const TextPtr* item = both.size() == 2 ? both[0].As<TextPtr>() : nullptr;
    const TextPtr* key = both.size() == 2 ? both[1].As<TextPtr>() : nullptr;
    if (item == nullptr || key == nullptr) return UsageError("tojson: expected two str as separators");
    style.item_separator = (*item)->bytes();
    style.key_separator = (*key)->bytes();
  }
  return ToValue(DumpJsonText(runtime, self, style));
}

Result Attribute(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const TextPtr name, arguments.String(0));
  return GetAttributeOnly(runtime, self, name->bytes());
}

Result Default(Runtime&, const Value& self, const BoundArguments& arguments) {
  if (!self.Is<Undefined>() && !(arguments.Boolean(1, false) && !Truth(self))) return self;
  return arguments.At(0) != nullptr ? *arguments.At(0) : MakeString("");
}

constexpr NativeFunction kTextFilters[] = {
    {.name = "attr", .parameters = {"name"}, .run = Attribute},
    {.name = "capitalize", .run = Map<CapitalizeText>},
    {.name = "center", .parameters = {"?width"}, .run = Center},
    {.name = "d", .parameters = {"?default_value", "?boolean"}, .run = Default},
    {.name = "default", .parameters = {"?default_value", "?boolean"}, .run = Default},
    {.name = "e", .run = Map<EscapeText>},
    {.name = "escape", .run = Map<EscapeText>},
    {.name = "forceescape", .run = ForceEscape},
    {.name = "format", .run_variadic = Format},
    {.name = "indent", .parameters = {"?width", "?first", "?blank"}, .run = Indent},
    {.name = "lower", .run = Map<LowerText>},
    {.name = "replace", .parameters = {"old", "new", "?count"}, .run = Replace},
    {.name = "safe", .run = Safe},
    {.name = "string", .run = String},
    {.name = "title", .run = Title},
    {.name = "tojson", .parameters = {"?ensure_ascii", "?indent", "?separators", "?sort_keys"}, .run = ToJson},
    {.name = "trim", .parameters = {"?chars"}, .run = Trim},
    {.name = "truncate", .parameters = {"?length", "?killwords", "?end", "?leeway"}, .run = Truncate},
    {.name = "upper", .run = Map<UpperText>},
    {.name = "wordcount", .run = WordCount},
};

}  // namespace

absl::Span<const NativeFunction> TextFilters() { return kTextFilters; }

}  // namespace pith::jinja
