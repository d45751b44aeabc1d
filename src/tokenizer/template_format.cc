#include "tokenizer/template_format.h"

#include <locale.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "tokenizer/template_format_spec.h"
#include "tokenizer/template_methods.h"
#include "tokenizer/template_number.h"
#include "tokenizer/template_operators.h"
#include "tokenizer/template_repr.h"
#include "tokenizer/template_text_operations.h"

namespace pith::jinja {
namespace {

constexpr size_t kNone = std::string::npos;

// repr(value) with everything outside ASCII escaped.
absl::StatusOr<TextPtr> Ascii(Budget& budget, const Value& value) {
  ASSIGN_OR_RETURN(const TextPtr printed, Repr(budget, value));
  TextBuilder out;
  TextCursor cursor(*printed);
  while (cursor.Next()) {
    std::string quoted;
    if (cursor.code_point >= 0x80) {
      const size_t size = cursor.end - cursor.begin;
      AppendQuoted(absl::string_view(printed->bytes()).substr(cursor.begin, size), /*ascii_only=*/true, &quoted);
      out.Append(absl::string_view(quoted).substr(1, quoted.size() - 2), cursor.user);
    } else {
      out.AppendCodePoint(cursor.code_point, cursor.user);
    }
  }
  RETURN_IF_ERROR(budget.SpendText(out.size()));
  return std::move(out).Build();
}

// Text cut to a precision and padded to a width, keeping its origin.
absl::StatusOr<TextPtr> FormatText(Budget& budget, const FormatSpec& spec, TextPtr text) {
  if (spec.align == '=' || spec.sign != '-' || spec.grouping != 0 || spec.alternate || (spec.type != 0 && spec.type != 's')) {
    return UsageError("the format spec does not fit a str");
  }
  if (spec.precision.has_value() && *spec.precision < text->length()) {
    ASSIGN_OR_RETURN(text, PickCharacters(budget, text, 0, 1, *spec.precision));
  }
  const Padding padding = PadTo(spec, text->length(), '<');
  RETURN_IF_ERROR(budget.SpendText(text->bytes().size() + static_cast<size_t>(padding.before + padding.after)));
  TextBuilder out;
  for (int64_t i = 0; i < padding.before; ++i) out.Append(spec.fill, false);
  out.Append(*text);
  for (int64_t i = 0; i < padding.after; ++i) out.Append(spec.fill, false);
  return std::move(out).Build(text->markup());
}

// format(value, spec).
absl::StatusOr<TextPtr> FormatValue(Budget& budget, const Value& value, absl::string_view spec_text) {
  if (spec_text.empty()) return ToText(budget, value);
  ASSIGN_OR_RETURN(const FormatSpec spec, ParseFormatSpec(spec_text));
  if (const TextPtr* text = value.As<TextPtr>()) return FormatText(budget, spec, *text);
  const std::optional<int64_t> integer = AsIndex(value);
  const double* real = value.As<double>();
  if (!integer.has_value() && real == nullptr) return UsageError("a format spec does not fit a ", TypeName(value));
  ASSIGN_OR_RETURN(const std::string number, integer.has_value() ? FormatInteger(spec, *integer) : FormatReal(spec, *real));
  RETURN_IF_ERROR(budget.SpendText(number.size()));
  return MakeText(number);
}

// One "%..." of a format.
class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, const TextPtr& format, const Value& values) : runtime_(runtime), format_(format), values_(values) {
    const ListPtr* list = values.As<ListPtr>();
    if (list != nullptr && !(*list)->is_list()) tuple_ = list->get();
    is_mapping_ = tuple_ == nullptr && (values.Is<DictPtr>() || list != nullptr || values.Is<RangePtr>() || values.Is<Undefined>());
  }

  absl::StatusOr<TextPtr> Run() {
    const std::string& bytes = format_->bytes();
    RETURN_IF_ERROR(runtime_.budget().SpendText(bytes.size()));
    while (position_ < bytes.size()) {
      const size_t percent = std::min(bytes.find('%', position_), bytes.size());
      out_.Append(*format_, position_, percent);
      position_ = percent;
      if (percent == bytes.size()) break;
      ++position_;
      RETURN_IF_ERROR(ConvertOne());
      RETURN_IF_ERROR(runtime_.budget().CheckText(out_.size()));
    }
    const bool unused = tuple_ != nullptr ? next_ < tuple_->items.size() : next_ == 0 && !is_mapping_;
    if (unused) return UsageError("not all values of '%' were used by the format");
    return std::move(out_).Build(format_->markup());
  }

 private:
  absl::StatusOr<char> TakeCharacter() {
    if (position_ >= format_->bytes().size()) return UsageError("the format of '%' ends inside a conversion");
    return format_->bytes()[position_++];
  }

  absl::StatusOr<Value> NextValue() {
    if (tuple_ != nullptr && next_ < tuple_->items.size()) return tuple_->items[next_++];
    if (tuple_ != nullptr || next_ > 0) return UsageError("not enough values for the format of '%'");
    ++next_;
    return values_;
  }

  // "(key)": looked up in the dict on the right.
  absl::StatusOr<Value> NamedValue() {
    int open = 1;
    const size_t begin = position_;
    while (open > 0) {
      ASSIGN_OR_RETURN(const char c, TakeCharacter());
      open += c == '(' ? 1 : c == ')' ? -1 : 0;
    }
    const DictPtr* dict = values_.As<DictPtr>();
    if (dict == nullptr) return UsageError("the format of '%' expects a dict, found ", TypeName(values_));
    const std::string key = format_->bytes().substr(begin, position_ - 1 - begin);
    const Value* held = (*dict)->items.Find(key);
    if (held == nullptr) return UsageError("the format of '%' names a missing key '", Printable(key), "'");
    return *held;
  }

  absl::StatusOr<int64_t> Number() {
    const std::string& bytes = format_->bytes();
    if (position_ < bytes.size() && bytes[position_] == '*') {
      ++position_;
      ASSIGN_OR_RETURN(const Value value, NextValue());
      const int64_t* integer = value.As<int64_t>();
      if (integer == nullptr) return UsageError("'*' in the format of '%' expects an int, found ", TypeName(value));
      if (*integer > kMaxFormatNumber || *integer < -kMaxFormatNumber) return UsageError("expected a width of at most ", kMaxFormatNumber);
      return *integer;
    }
    int64_t number = 0;
    while (position_ < bytes.size() && absl::ascii_isdigit(static_cast<unsigned char>(bytes[position_]))) {
      number = number * 10 + (bytes[position_++] - '0');
      if (number > kMaxFormatNumber) return UsageError("expected a width or precision of at most ", kMaxFormatNumber);
    }
    return number;
  }

  // Flags, width and precision.
  absl::Status ParseSpec(FormatSpec* spec) {
    const std::string& bytes = format_->bytes();
    bool zero = false;
    for (; position_ < bytes.size() && absl::string_view("#0- +").find(bytes[position_]) != kNone; ++position_) {
      const char flag = bytes[position_];
      if (flag == '#') spec->alternate = true;
      if (flag == '0') zero = true;
      if (flag == '-') spec->align = '<';
      if (flag == '+' || (flag == ' ' && spec->sign != '+')) spec->sign = flag;
    }
    ASSIGN_OR_RETURN(spec->width, Number());
    if (spec->width < 0) {
      spec->align = '<';
      spec->width = -spec->width;
    }
    if (zero && spec->align == 0) spec->align = '0';
    if (position_ < bytes.size() && bytes[position_] == '.') {
      ++position_;
      ASSIGN_OR_RETURN(const int64_t precision, Number());
      spec->precision = std::max<int64_t>(0, precision);
    }
    while (position_ < bytes.size() && absl::string_view("hlL").find(bytes[position_]) != kNone) ++position_;
    return absl::OkStatus();
  }

  absl::Status ConvertOne() {
    std::optional<Value> named;
    if (position_ < format_->bytes().size() && format_->bytes()[position_] == '(') {
      ++position_;
      ASSIGN_OR_RETURN(named, NamedValue());
    }
    FormatSpec spec;
    RETURN_IF_ERROR(ParseSpec(&spec));
    const size_t at = position_;
    ASSIGN_OR_RETURN(const char type, TakeCharacter());
    if (type == '%') {
      out_.Append(*format_, at, at + 1);
      return absl::OkStatus();
    }
    Value value;
    if (named.has_value()) {
      value = *std::move(named);
    } else {
      ASSIGN_OR_RETURN(value, NextValue());
    }
    ASSIGN_OR_RETURN(TextPtr text, Convert(type, spec, value));
    if (format_->markup()) {
      ASSIGN_OR_RETURN(text, EscapeText(runtime_.budget(), text));
    }
    out_.Append(*text);
    return absl::OkStatus();
  }

  absl::StatusOr<TextPtr> Convert(char type, FormatSpec spec, const Value& value) {
    Budget& budget = runtime_.budget();
    if (type == 's' || type == 'r' || type == 'a') {
      ASSIGN_OR_RETURN(TextPtr text, type == 's' && value.Is<TextPtr>() ? *value.As<TextPtr>()
                                     : type == 's'                      ? ToText(budget, value)
                                     : type == 'r'                      ? Repr(budget, value)
                                                                        : Ascii(budget, value));
      return FormatText(budget, {.align = spec.align == '<' ? '<' : '>', .width = spec.width, .precision = spec.precision},
                        std::move(text));
    }
    if (spec.align == '0') spec.fill.assign(1, '0');
    std::string number;
    if (absl::string_view("diuoxX").find(type) != kNone) {
      ASSIGN_OR_RETURN(const int64_t integer, IntegerFor(type, value));
      spec.min_digits = std::exchange(spec.precision, std::nullopt);
      spec.type = type == 'i' || type == 'u' ? 'd' : type;
      ASSIGN_OR_RETURN(number, FormatInteger(spec, integer));
    } else if (absl::string_view("eEfFgG").find(type) != kNone) {
      const double* real = value.As<double>();
      const std::optional<int64_t> integer = AsIndex(value);
      if (real == nullptr && !integer.has_value()) return NotANumber(value);
      spec.type = type;
      ASSIGN_OR_RETURN(number, FormatReal(spec, real != nullptr ? *real : static_cast<double>(*integer)));
    } else if (type == 'c') {
      ASSIGN_OR_RETURN(TextPtr character, CharacterFor(value));
      return FormatText(budget, {.align = spec.align == '<' ? '<' : '>', .width = spec.width}, std::move(character));
    } else {
      return UsageError("'%", Printable(std::string(1, type)), "' is no conversion of '%'");
    }
    RETURN_IF_ERROR(budget.SpendText(number.size()));
    return MakeText(number);
  }

  static absl::Status NotANumber(const Value& value) {
    return value.Is<Undefined>() ? UndefinedError(value) : UsageError("the format of '%' expects a number, found ", TypeName(value));
  }

  static absl::StatusOr<int64_t> IntegerFor(char type, const Value& value) {
    if (const std::optional<int64_t> integer = AsIndex(value)) return *integer;
    const double* real = value.As<double>();
    if (real == nullptr || type == 'o' || type == 'x' || type == 'X') return NotANumber(value);
    return TruncateToInteger(*real);
  }

  static absl::StatusOr<TextPtr> CharacterFor(const Value& value) {
    if (const TextPtr* text = value.As<TextPtr>(); text != nullptr && (*text)->length() == 1) return *text;
    const std::optional<int64_t> point = AsIndex(value);
    if (!point.has_value() || *point < 0 || *point > 0x10FFFF || (*point >= 0xD800 && *point < 0xE000)) {
      return UsageError("'%c' expects a character, found ", TypeName(value));
    }
    TextBuilder out;
    out.AppendCodePoint(static_cast<char32_t>(*point), false);
    return std::move(out).Build();
  }

  Runtime& runtime_;
  const TextPtr& format_;
  const Value& values_;
  const ListObject* tuple_ = nullptr;  // the values, when several
  bool is_mapping_ = false;            // what Python takes for a mapping may stay unused
  size_t position_ = 0, next_ = 0;
  TextBuilder out_;
};

// The fields of "{}".format.
class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, const Arguments& arguments) : runtime_(runtime), arguments_(arguments) {}

  absl::StatusOr<TextPtr> Run(const TextPtr& format, int levels) {
    if (levels == 0) return UsageError("format fields are nested too deeply");
    const std::string& bytes = format->bytes();
    RETURN_IF_ERROR(runtime_.budget().SpendText(bytes.size()));
    TextBuilder out;
    for (size_t i = 0; i < bytes.size();) {
      const size_t brace = std::min(bytes.find_first_of("{}", i), bytes.size());
      const bool doubled = brace + 1 < bytes.size() && bytes[brace + 1] == bytes[brace];
      out.Append(*format, i, doubled ? brace + 1 : brace);
      i = brace + (doubled ? 2 : 1);
      if (doubled || brace == bytes.size()) continue;
      if (bytes[brace] == '}') return UsageError("single '}' in a format");
      ASSIGN_OR_RETURN(const size_t end, EndOfField(bytes, i));
      ASSIGN_OR_RETURN(TextPtr field, FormatField(format, i, end, levels));
      if (format->markup()) {
        ASSIGN_OR_RETURN(field, EscapeText(runtime_.budget(), field));
      }
      RETURN_IF_ERROR(runtime_.budget().CheckText(out.size() + field->bytes().size()));
      out.Append(*field);
      i = end + 1;
    }
    return std::move(out).Build(format->markup());
  }

 private:
  // Position of the "}" that closes the field starting at `i`.
  static absl::StatusOr<size_t> EndOfField(const std::string& bytes, size_t i) {
    int open = 1;
    bool in_key = false;
    for (; i < bytes.size(); ++i) {
      if (bytes[i] == '[') in_key = true;
      if (bytes[i] == ']') in_key = false;
      if (in_key) continue;
      open += bytes[i] == '{' ? 1 : bytes[i] == '}' ? -1 : 0;
      if (open == 0) return i;
    }
    return UsageError("expected '}' before the end of a format");
  }

  // "name!conversion:spec" at bytes [begin, end).
  absl::StatusOr<TextPtr> FormatField(const TextPtr& format, size_t begin, size_t end, int levels) {
    Budget& budget = runtime_.budget();
    const absl::string_view field = absl::string_view(format->bytes()).substr(begin, end - begin);
    size_t name_end = 0;
    for (bool in_key = false; name_end < field.size(); ++name_end) {
      const char c = field[name_end];
      if (c == '[') in_key = true;
      if (c == ']') in_key = false;
      if (!in_key && (c == '!' || c == ':')) break;
    }
    ASSIGN_OR_RETURN(Value value, FieldValue(field.substr(0, name_end)));
    size_t spec_begin = name_end;
    if (name_end < field.size() && field[name_end] == '!') {
      const char conversion = name_end + 1 < field.size() ? field[name_end + 1] : 0;
      spec_begin = name_end + 2;
      if (spec_begin < field.size() && field[spec_begin] != ':') return UsageError("expected ':' after the conversion of a format field");
      if (conversion != 'r' && conversion != 's' && conversion != 'a')
        return UsageError("expected the conversion !r, !s or !a in a format");
      ASSIGN_OR_RETURN(TextPtr text, conversion == 's'   ? ToText(budget, value)
                                     : conversion == 'r' ? Repr(budget, value)
                                                         : Ascii(budget, value));
      value = Value(std::move(text));
    }
    TextPtr spec = MakeText("");
    if (spec_begin < field.size()) {
      ASSIGN_OR_RETURN(spec, Run(MarkText(SliceText(format, begin + spec_begin + 1, end), false), levels - 1));
    }
    return FormatValue(budget, value, spec->bytes());
  }

  absl::StatusOr<Value> FieldValue(absl::string_view name) {
    const size_t first_end = std::min(name.find_first_of(".["), name.size());
    ASSIGN_OR_RETURN(Value value, FirstValue(name.substr(0, first_end)));
    for (size_t i = first_end; i < name.size();) {
      if (name[i] == '.') {
        const size_t next = std::min(name.find_first_of(".[", i + 1), name.size());
        if (next == i + 1) return UsageError("empty attribute in a format");
        ASSIGN_OR_RETURN(value, GetAttribute(runtime_, value, name.substr(i + 1, next - i - 1)));
        i = next;
      } else {
        const size_t close = name.find(']', i);
        if (name[i] != '[' || close == absl::string_view::npos || close == i + 1) return UsageError("expected '[key]' in a format");
        const absl::string_view key = name.substr(i + 1, close - i - 1);
        int64_t index = 0;
        ASSIGN_OR_RETURN(value, GetItem(runtime_, value, IsNumber(key) && absl::SimpleAtoi(key, &index) ? Value(index) : MakeString(key)));
        i = close + 1;
      }
    }
    return value;
  }

  static bool IsNumber(absl::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return absl::ascii_isdigit(c); });
  }

  absl::StatusOr<Value> FirstValue(absl::string_view name) {
    int64_t index = 0;
    if (name.empty() || IsNumber(name)) {
      const bool automatic = name.empty();
      if (numbering_.has_value() && *numbering_ != automatic) return UsageError("a format mixes numbered and unnumbered fields");
      numbering_ = automatic;
      if (automatic) {
        index = next_++;
      } else if (!absl::SimpleAtoi(name, &index)) {
        index = -1;
      }
      if (index < 0 || index >= static_cast<int64_t>(arguments_.positional.size()))
        return UsageError("a format has no value for field ", name);
      return arguments_.positional[static_cast<size_t>(index)];
    }
    for (const auto& [key, value] : arguments_.keyword) {
      if (key == name) return value;
    }
    return UsageError("a format has no value for field '", Printable(name), "'");
  }

  Runtime& runtime_;
  const Arguments& arguments_;
  std::optional<bool> numbering_;  // automatic?
  int64_t next_ = 0;
};

// One directive with its flags, through the C library.
std::string FormatDirective(const std::string& directive, const struct tm& time) {
  static const locale_t kLocale = newlocale(LC_ALL_MASK, "C", nullptr);
  char buffer[128];
  return std::string(buffer, strftime_l(buffer, sizeof(buffer), directive.c_str(), &time, kLocale));
}

}  // namespace

absl::StatusOr<TextPtr> FormatPercent(Runtime& runtime, const TextPtr& format, const Value& values) {
  return PercentFormatter(runtime, format, values).Run();
}

absl::StatusOr<Value> FormatBraces(Runtime& runtime, const TextPtr& format, Arguments arguments) {
  ASSIGN_OR_RETURN(TextPtr text, BraceFormatter(runtime, arguments).Run(format, /*levels=*/2));
  return Value(std::move(text));
}

absl::StatusOr<TextPtr> FormatTime(Runtime& runtime, const TextPtr& format, int64_t unix_seconds) {
  const std::string& bytes = format->bytes();
  RETURN_IF_ERROR(runtime.budget().SpendText(bytes.size()));
  const time_t seconds = unix_seconds;
  struct tm time = {};
  if (gmtime_r(&seconds, &time) == nullptr) return UsageError("expected a time within the calendar, found ", unix_seconds, " seconds");
  TextBuilder out;
  for (size_t i = 0; i < bytes.size();) {
    const size_t percent = std::min(bytes.find('%', i), bytes.size());
    out.Append(*format, i, percent);
    size_t end = percent == bytes.size() ? percent : percent + 1;
    while (end < bytes.size() && absl::string_view("-_0^#").find(bytes[end]) != kNone) ++end;
    if (end < bytes.size()) ++end;
    const std::string directive = bytes.substr(percent, end - percent);
    const char letter = directive.empty() ? 0 : directive.back();
    if (letter == 'f') {
      out.Append("000000", false);
    } else if (letter == 's') {
      out.Append(absl::StrCat(unix_seconds), false);
    } else if (absl::string_view("aAbBcCdDeFgGhHIjklmMnpPrRStTuUVwWxXyY%").find(letter) != kNone && directive.size() < 8) {
      out.Append(FormatDirective(directive, time), false);
    } else if (letter != 'z' && letter != 'Z') {
      out.Append(*format, percent, end);  // as the C library leaves what it does not know
    }
    RETURN_IF_ERROR(runtime.budget().Spend(1));
    RETURN_IF_ERROR(runtime.budget().CheckText(out.size()));
    i = end;
  }
  return std::move(out).Build();
}

}  // namespace pith::jinja
