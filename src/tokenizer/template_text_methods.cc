// The methods of str.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "tokenizer/template_format.h"
#include "tokenizer/template_loop.h"
#include "tokenizer/template_methods.h"
#include "tokenizer/template_repr.h"
#include "tokenizer/template_text_operations.h"
#include "tokenizer/utf8.h"

namespace pith::jinja {
namespace {

using Result = absl::StatusOr<Value>;

const TextPtr& Self(const Value& self) { return *self.As<TextPtr>(); }

Result ToValue(absl::StatusOr<TextPtr> text) {
  if (!text.ok()) return text.status();
  return Value(*std::move(text));
}

template <absl::StatusOr<TextPtr> (*kMap)(Budget&, const TextPtr&)> Result Map(Runtime& runtime, const Value& self, const BoundArguments&) {
  return ToValue(kMap(runtime.budget(), Self(self)));
}

// A str argument, or nullptr when it is omitted or none.
absl::StatusOr<TextPtr> OptionalText(const BoundArguments& arguments, size_t i) {
  return arguments.NotNone(i) == nullptr ? TextPtr() : arguments.String(i);
}

template <bool kLeft, bool kRight> Result Strip(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const TextPtr characters, OptionalText(arguments, 0));
  return ToValue(StripText(runtime.budget(), Self(self), characters.get(), kLeft, kRight));
}

Result ToList(Runtime& runtime, const TextPtr& text, const TextRanges& ranges, ListObject::Type type = ListObject::Type::kList) {
  ValueList items;
  items.reserve(ranges.size());
  for (const auto& [begin, end] : ranges) items.push_back(SliceText(text, begin, end));
  return MakeList(runtime.budget(), std::move(items), type);
}

template <bool kFromRight> Result Split(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const TextPtr separator, OptionalText(arguments, 0));
  ASSIGN_OR_RETURN(const int64_t max_splits, arguments.Integer(1, -1));
  if (separator != nullptr && separator->bytes().empty()) return UsageError("split() expects a separator, found an empty str");
  const Text& text = *Self(self);
  ASSIGN_OR_RETURN(const TextRanges ranges, separator == nullptr ? SplitAtSpace(runtime.budget(), text, max_splits, kFromRight)
                                                                 : SplitAtText(runtime.budget(), text, *separator, max_splits, kFromRight));
  return ToList(runtime, Self(self), ranges);
}

Result Lines(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const TextRanges lines, SplitLines(runtime.budget(), *Self(self), arguments.Boolean(0, false)));
  return ToList(runtime, Self(self), lines);
}

template <bool kFromRight> Result Partition(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const TextPtr separator, arguments.String(0));
  if (separator->bytes().empty()) return UsageError("partition() expects a separator, found an empty str");
  const std::string &bytes = Self(self)->bytes(), &sought = separator->bytes();
  RETURN_IF_ERROR(runtime.budget().SpendScan(bytes.size()));
  const size_t hit = kFromRight ? FindLastBytes(bytes, sought, 0, bytes.size()) : FindBytes(bytes, sought, 0, bytes.size());
  const size_t found_end = hit + sought.size(), size = bytes.size();
  TextRanges parts = {{0, hit}, {hit, found_end}, {found_end, size}};
  if (hit == std::string::npos)
    parts = kFromRight ? TextRanges{{0, 0}, {0, 0}, {0, size}} : TextRanges{{0, size}, {size, size}, {size, size}};
  return ToList(runtime, Self(self), parts, ListObject::Type::kTuple);
}

Result Replace(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const TextPtr old, arguments.String(0));
  ASSIGN_OR_RETURN(TextPtr replacement, arguments.String(1));
  ASSIGN_OR_RETURN(const int64_t count, arguments.Integer(2, -1));
  if (Self(self)->markup()) {
    ASSIGN_OR_RETURN(replacement, EscapeText(runtime.budget(), replacement));
  }
  return ToValue(ReplaceText(runtime.budget(), Self(self), *old, replacement, count));
}

// The bytes of characters [start, end) as find, count and startswith take them; begin > end when start is past the end of the text.
struct Window {
  size_t begin, end;
};
absl::StatusOr<Window> ParseWindow(Runtime& runtime, const Text& text, const BoundArguments& arguments) {
  RETURN_IF_ERROR(runtime.budget().SpendScan(text.bytes().size()));
  const int64_t length = text.length();
  int64_t start = 0, end = length;
  if (arguments.NotNone(1) != nullptr) {
    ASSIGN_OR_RETURN(start, arguments.Integer(1, 0));
  }
  if (arguments.NotNone(2) != nullptr) {
    ASSIGN_OR_RETURN(end, arguments.Integer(2, 0));
  }
  start = start < 0 ? std::max<int64_t>(0, start + length) : start;
  end = std::min(length, end < 0 ? std::max<int64_t>(0, end + length) : end);
  if (start > end) return Window{1, 0};
  return Window{text.ByteOffset(start), text.ByteOffset(end)};
}

// Character index of the first or last occurrence, -1 if none.
absl::StatusOr<int64_t> FindIndex(Runtime& runtime, const Value& self, const BoundArguments& arguments, bool from_right) {
  ASSIGN_OR_RETURN(const TextPtr sought, arguments.String(0));
  const Text& text = *Self(self);
  ASSIGN_OR_RETURN(const Window window, ParseWindow(runtime, text, arguments));
  const size_t hit = from_right ? FindLastBytes(text.bytes(), sought->bytes(), window.begin, window.end)
                                : FindBytes(text.bytes(), sought->bytes(), window.begin, window.end);
  return hit == std::string::npos ? -1 : text.CodePointIndex(hit);
}

template <bool kFromRight, bool kRequired> Result Find(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const int64_t index, FindIndex(runtime, self, arguments, kFromRight));
  if (kRequired && index < 0) return UsageError("index() expects a substring that occurs, found none");
  return Value(index);
}

Result Count(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const TextPtr sought, arguments.String(0));
  const Text& text = *Self(self);
  ASSIGN_OR_RETURN(const Window window, ParseWindow(runtime, text, arguments));
  if (window.begin > window.end) return Value(int64_t{0});
  if (sought->bytes().empty()) return Value(CountUtf8(absl::string_view(text.bytes()).substr(window.begin, window.end - window.begin)) + 1);
  int64_t count = 0;
  for (size_t at = window.begin; (at = FindBytes(text.bytes(), sought->bytes(), at, window.end)) != std::string::npos;
       at += sought->bytes().size()) {
    ++count;
  }
  return Value(count);
}

template <bool kAtEnd> Result HasAffix(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  const Text& text = *Self(self);
  ASSIGN_OR_RETURN(const Window window, ParseWindow(runtime, text, arguments));
  const Value& affixes = *arguments.At(0);
  const ListPtr* tuple = affixes.As<ListPtr>();
  ValueList candidates = {affixes};
  if (tuple != nullptr && !(*tuple)->is_list()) candidates = (*tuple)->items;
  for (const Value& candidate : candidates) {
    const TextPtr* affix = candidate.As<TextPtr>();
    if (affix == nullptr) return UsageError("expected a str or a tuple of str to compare with, found ", TypeName(candidate));
    RETURN_IF_ERROR(runtime.budget().Spend(1));
    if (window.begin > window.end || (*affix)->bytes().size() > window.end - window.begin) continue;
    const size_t at = kAtEnd ? window.end - (*affix)->bytes().size() : window.begin;
    if (text.bytes().compare(at, (*affix)->bytes().size(), (*affix)->bytes()) == 0) return Value(true);
  }
  return Value(false);
}

template <bool kAtEnd> Result RemoveAffix(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const TextPtr affix, arguments.String(0));
  const std::string& bytes = Self(self)->bytes();
  const size_t size = affix->bytes().size();
  RETURN_IF_ERROR(runtime.budget().SpendText(bytes.size()));
  if (size > bytes.size() || bytes.compare(kAtEnd ? bytes.size() - size : 0, size, affix->bytes()) != 0) return self;
  return Value(kAtEnd ? SliceText(Self(self), 0, bytes.size() - size) : SliceText(Self(self), size, bytes.size()));
}

Result Join(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const ValueList items, Collect(runtime, *arguments.At(0)));
  const TextPtr& separator = Self(self);
  std::vector<TextPtr> texts;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) texts.push_back(separator);
    const TextPtr* text = items[i].As<TextPtr>();
    if (text == nullptr && !separator->markup())
      return UsageError("join() expects items that are str, found ", TypeName(items[i]), " at ", i);
    ASSIGN_OR_RETURN(TextPtr item, text != nullptr ? *text : ToText(runtime.budget(), items[i]));
    if (separator->markup()) {
      ASSIGN_OR_RETURN(item, EscapeText(runtime.budget(), item));
    }
    texts.push_back(std::move(item));
  }
  return ToValue(ConcatTexts(runtime.budget(), texts, separator->markup()));
}

template <bool kLeft, bool kRight> Result Pad(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const int64_t width, arguments.Integer(0, 0));
  TextPtr fill = MakeText(" ");
  if (arguments.At(1) != nullptr) {
    ASSIGN_OR_RETURN(fill, arguments.String(1));
  }
  return ToValue(PadText(runtime.budget(), Self(self), width, *fill, kLeft, kRight));
}

Result ZeroFill(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const int64_t width, arguments.Integer(0, 0));
  const TextPtr& text = Self(self);
  const size_t sign = !text->bytes().empty() && (text->bytes()[0] == '-' || text->bytes()[0] == '+') ? 1 : 0;
  const TextPtr digits = SliceText(text, sign, text->bytes().size());
  ASSIGN_OR_RETURN(const TextPtr padded,
                   PadText(runtime.budget(), digits, width - static_cast<int64_t>(sign), *MakeText("0"), true, false));
  return ToValue(ConcatTexts(runtime.budget(), {SliceText(text, 0, sign), padded}, text->markup()));
}

Result ExpandTabs(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const int64_t tab_size, arguments.Integer(0, 8));
  RETURN_IF_ERROR(runtime.budget().SpendText(Self(self)->bytes().size()));
  TextBuilder out;
  TextCursor cursor(*Self(self));
  int64_t column = 0;
  while (cursor.Next()) {
    if (cursor.code_point != '\t') {
      out.AppendCodePoint(cursor.code_point, cursor.user);
      column = cursor.code_point == '\n' || cursor.code_point == '\r' ? 0 : column + 1;
    } else if (tab_size > 0) {
      const int64_t spaces = tab_size - column % tab_size;
      RETURN_IF_ERROR(runtime.budget().CheckText(out.size() + static_cast<size_t>(spaces)));
      RETURN_IF_ERROR(runtime.budget().SpendScan(static_cast<size_t>(spaces)));
      out.Append(std::string(static_cast<size_t>(spaces), ' '), cursor.user);
      column += spaces;
    }
  }
  return Value(std::move(out).Build(Self(self)->markup()));
}

using Characters = std::u32string;
template <bool (*kClass)(const Characters&)> Result Classify(Runtime& runtime, const Value& self, const BoundArguments&) {
  RETURN_IF_ERROR(runtime.budget().SpendScan(Self(self)->bytes().size()));
  Characters characters;
  TextCursor cursor(*Self(self));
  while (cursor.Next()) characters.push_back(cursor.code_point);
  return Value(kClass(characters));
}

template <bool (*kClass)(char32_t)> bool AllAre(const Characters& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), kClass);
}
bool AllAscii(const Characters& text) {
  return std::all_of(text.begin(), text.end(), [](char32_t c) { return c < 0x80; });
}
bool AllPrintable(const Characters& text) { return std::all_of(text.begin(), text.end(), IsPrintable); }
bool AllLower(const Characters& text) {
  return std::any_of(text.begin(), text.end(), IsLower) &&
         std::none_of(text.begin(), text.end(), [](char32_t c) { return IsUpper(c) || IsTitle(c); });
}
bool AllUpper(const Characters& text) {
  return std::any_of(text.begin(), text.end(), IsUpper) &&
         std::none_of(text.begin(), text.end(), [](char32_t c) { return IsLower(c) || IsTitle(c); });
}
// Every word starts with an upper or title case character, and goes on in lower case.
bool AllTitle(const Characters& text) {
  bool in_word = false, any = false;
  for (const char32_t c : text) {
    if ((IsUpper(c) || IsTitle(c)) ? in_word : IsLower(c) && !in_word) return false;
    in_word = IsCased(c);
    any = any || in_word;
  }
  return any;
}
bool IsIdentifier(const Characters& text) {
  const auto continues = [](char32_t c) { return c == '_' || IsAlpha(c) || IsDecimal(c); };
  return !text.empty() && !IsDecimal(text[0]) && std::all_of(text.begin(), text.end(), continues);
}

Result Format(Runtime& runtime, const Value& self, Arguments arguments) { return FormatBraces(runtime, Self(self), std::move(arguments)); }

Result FormatMap(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  const DictPtr* dict = arguments.At(0)->As<DictPtr>();
  if (dict == nullptr) return UsageError("format_map() expects a dict, found ", TypeName(*arguments.At(0)));
  Arguments named;
  for (const auto& [key, value] : (*dict)->items.items()) {
    if (const TextPtr* name = key.As<TextPtr>()) named.keyword.emplace_back((*name)->bytes(), value);
  }
  RETURN_IF_ERROR(runtime.budget().Spend(static_cast<int64_t>(named.keyword.size())));
  return FormatBraces(runtime, Self(self), std::move(named));
}

constexpr NativeFunction kTextMethods[] = {
    {.name = "capitalize", .run = Map<CapitalizeText>},
    {.name = "center", .parameters = {"width", "?fillchar"}, .run = Pad<true, true>, .positional_only = true},
    {.name = "count", .parameters = {"sub", "?start", "?end"}, .run = Count, .positional_only = true},
    {.name = "endswith", .parameters = {"suffix", "?start", "?end"}, .run = HasAffix<true>, .positional_only = true},
    {.name = "expandtabs", .parameters = {"?tabsize"}, .run = ExpandTabs},
    {.name = "find", .parameters = {"sub", "?start", "?end"}, .run = Find<false, false>, .positional_only = true},
    {.name = "format", .run_variadic = Format},
    {.name = "format_map", .parameters = {"mapping"}, .run = FormatMap, .positional_only = true},
    {.name = "index", .parameters = {"sub", "?start", "?end"}, .run = Find<false, true>, .positional_only = true},
    {.name = "isalnum", .run = Classify<AllAre<IsAlnum>>},
    {.name = "isalpha", .run = Classify<AllAre<IsAlpha>>},
    {.name = "isascii", .run = Classify<AllAscii>},
    {.name = "isdecimal", .run = Classify<AllAre<IsDecimal>>},
    {.name = "isdigit", .run = Classify<AllAre<IsDigit>>},
    {.name = "isidentifier", .run = Classify<IsIdentifier>},
    {.name = "islower", .run = Classify<AllLower>},
    {.name = "isnumeric", .run = Classify<AllAre<IsNumeric>>},
    {.name = "isprintable", .run = Classify<AllPrintable>},
    {.name = "isspace", .run = Classify<AllAre<IsSpace>>},
    {.name = "istitle", .run = Classify<AllTitle>},
    {.name = "isupper", .run = Classify<AllUpper>},
    {.name = "join", .parameters = {"iterable"}, .run = Join, .positional_only = true},
    {.name = "ljust", .parameters = {"width", "?fillchar"}, .run = Pad<false, true>, .positional_only = true},
    {.name = "lower", .run = Map<LowerText>},
    {.name = "lstrip", .parameters = {"?chars"}, .run = Strip<true, false>, .positional_only = true},
    {.name = "partition", .parameters = {"sep"}, .run = Partition<false>, .positional_only = true},
    {.name = "removeprefix", .parameters = {"prefix"}, .run = RemoveAffix<false>, .positional_only = true},
    {.name = "removesuffix", .parameters = {"suffix"}, .run = RemoveAffix<true>, .positional_only = true},
    {.name = "replace", .parameters = {"old", "new", "?count"}, .run = Replace, .positional_only = true},
    {.name = "rfind", .parameters = {"sub", "?start", "?end"}, .run = Find<true, false>, .positional_only = true},
    {.name = "rindex", .parameters = {"sub", "?start", "?end"}, .run = Find<true, true>, .positional_only = true},
    {.name = "rjust", .parameters = {"width", "?fillchar"}, .run = Pad<true, false>, .positional_only = true},
    {.name = "rpartition", .parameters = {"sep"}, .run = Partition<true>, .positional_only = true},
    {.name = "rsplit", .parameters = {"?sep", "?maxsplit"}, .run = Split<true>},
    {.name = "rstrip", .parameters = {"?chars"}, .run = Strip<false, true>, .positional_only = true},
    {.name = "split", .parameters = {"?sep", "?maxsplit"}, .run = Split<false>},
    {.name = "splitlines", .parameters = {"?keepends"}, .run = Lines},
    {.name = "startswith", .parameters = {"prefix", "?start", "?end"}, .run = HasAffix<false>, .positional_only = true},
    {.name = "strip", .parameters = {"?chars"}, .run = Strip<true, true>, .positional_only = true},
    {.name = "swapcase", .run = Map<SwapCaseText>},
    {.name = "title", .run = Map<TitleText>},
    {.name = "upper", .run = Map<UpperText>},
    {.name = "zfill", .parameters = {"width"}, .run = ZeroFill, .positional_only = true},
};

}  // namespace

absl::Span<const NativeFunction> TextMethods() { return kTextMethods; }

}  // namespace pith::jinja
