#include "tokenizer/template_repr.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "tokenizer/template_number.h"
#include "tokenizer/template_text_operations.h"
#include "tokenizer/template_unicode.h"
#include "tokenizer/utf8.h"

namespace pith::jinja {
namespace {

// Prints into one string; `quote` off prints a top-level text bare.
class Printer {
 public:
  explicit Printer(Budget& budget) : budget_(budget) {}

  absl::Status Print(const Value& value) {
    const BudgetFrame frame(budget_);
    RETURN_IF_ERROR(frame.status());
    RETURN_IF_ERROR(budget_.Spend(1));
    if (const TextPtr* text = value.As<TextPtr>()) return PrintText(**text);
    if (const ListPtr* list = value.As<ListPtr>()) return PrintList(**list);
    if (const DictPtr* dict = value.As<DictPtr>()) return PrintDict((*dict)->items);
    if (const ViewPtr* view = value.As<ViewPtr>()) return PrintView(**view);
    if (const NamespacePtr* ns = value.As<NamespacePtr>()) {
      out_ += "<Namespace ";
      RETURN_IF_ERROR(PrintDict((*ns)->attributes));
      out_ += ">";
      return absl::OkStatus();
    }
    out_ += Scalar(value);
    return absl::OkStatus();
  }

  std::string Take() && { return std::move(out_); }

 private:
  static std::string Scalar(const Value& value) {
    if (value.Is<None>()) return "None";
    if (value.Is<Undefined>()) return "Undefined";
    if (const bool* boolean = value.As<bool>()) return *boolean ? "True" : "False";
    if (const int64_t* integer = value.As<int64_t>()) return absl::StrCat(*integer);
    if (const double* real = value.As<double>()) return FormatFloat(*real);
    if (const RangePtr* range = value.As<RangePtr>()) {
      const std::string bounds = absl::StrCat((*range)->start, ", ", (*range)->stop);
      return (*range)->step == 1 ? absl::StrCat("range(", bounds, ")") : absl::StrCat("range(", bounds, ", ", (*range)->step, ")");
    }
    return absl::StrCat("<", TypeName(value), ">");
  }

  absl::Status PrintText(const Text& text) {
    RETURN_IF_ERROR(budget_.CheckText(out_.size() + text.bytes().size()));
    RETURN_IF_ERROR(budget_.SpendScan(text.bytes().size()));
    if (text.markup()) out_ += "Markup(";
    AppendQuoted(text.bytes(), /*ascii_only=*/false, &out_);
    if (text.markup()) out_ += ")";
    return absl::OkStatus();
  }

  absl::Status PrintItems(const ValueList& items) {
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += ", ";
      RETURN_IF_ERROR(Print(items[i]));
    }
    return absl::OkStatus();
  }

  absl::Status PrintList(const ListObject& list) {
    out_ += list.is_list() ? "[" : "(";
    RETURN_IF_ERROR(PrintItems(list.items));
    if (!list.is_list() && list.items.size() == 1) out_ += ",";
    out_ += list.is_list() ? "]" : ")";
    return absl::OkStatus();
  }

  absl::Status PrintDict(const DictItems& dict) {
    out_ += "{";
    bool first = true;
    for (const auto& [key, value] : dict.items()) {
      if (!first) out_ += ", ";
      first = false;
      RETURN_IF_ERROR(Print(key));
      out_ += ": ";
      RETURN_IF_ERROR(Print(value));
    }
    out_ += "}";
    return absl::OkStatus();
  }

  absl::Status PrintView(const ViewObject& view) {
    absl::StrAppend(&out_, TypeName(Value(std::make_shared<const ViewObject>(view))), "([");
    bool first = true;
    for (const auto& [key, value] : view.dict->items.items()) {
      if (!first) out_ += ", ";
      first = false;
      if (view.type == ViewObject::Type::kItems) {
        out_ += "(";
        RETURN_IF_ERROR(Print(key));
        out_ += ", ";
        RETURN_IF_ERROR(Print(value));
        out_ += ")";
      } else {
        RETURN_IF_ERROR(Print(view.type == ViewObject::Type::kKeys ? key : value));
      }
    }
    out_ += "])";
    return absl::OkStatus();
  }

  Budget& budget_;
  std::string out_;
};

absl::StatusOr<bool> AnyUserText(Budget& budget, const DictItems& dict) {
  for (const auto& [key, value] : dict.items()) {
    ASSIGN_OR_RETURN(const bool user_key, HasUserText(budget, key));
    if (user_key) return true;
    ASSIGN_OR_RETURN(const bool user_value, HasUserText(budget, value));
    if (user_value) return true;
  }
  return false;
}

}  // namespace

void AppendQuoted(absl::string_view text, bool ascii_only, std::string* out) {
  const bool has_single = text.find('\'') != absl::string_view::npos, has_double = text.find('"') != absl::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  out->push_back(quote);
  for (size_t i = 0; i < text.size();) {
    const char32_t c = DecodeUtf8(text, &i);
    if (c == '\\' || c == static_cast<char32_t>(quote)) {
      out->push_back('\\');
      out->push_back(static_cast<char>(c));
    } else if (c == '\n') {
      *out += "\\n";
    } else if (c == '\r') {
      *out += "\\r";
    } else if (c == '\t') {
      *out += "\\t";
    } else if (IsPrintable(c) && (c < 0x80 || !ascii_only)) {
      AppendUtf8(c, out);
    } else if (c < 0x100) {
      absl::StrAppendFormat(out, "\\x%02x", static_cast<uint32_t>(c));
    } else if (c < 0x10000) {
      absl::StrAppendFormat(out, "\\u%04x", static_cast<uint32_t>(c));
    } else {
      absl::StrAppendFormat(out, "\\U%08x", static_cast<uint32_t>(c));
    }
  }
  out->push_back(quote);
}

absl::StatusOr<TextPtr> ToText(Budget& budget, const Value& value) {
  if (const TextPtr* text = value.As<TextPtr>()) return MarkText(*text, /*markup=*/false);
  if (value.Is<Undefined>()) return MakeText("");
  return Repr(budget, value);
}

absl::StatusOr<TextPtr> Repr(Budget& budget, const Value& value) {
  Printer printer(budget);
  RETURN_IF_ERROR(printer.Print(value));
  ASSIGN_OR_RETURN(const bool user, HasUserText(budget, value));
  const std::string printed = std::move(printer).Take();
  RETURN_IF_ERROR(budget.SpendText(printed.size()));
  return MakeText(printed, user);
}

absl::StatusOr<bool> HasUserText(Budget& budget, const Value& value) {
  const BudgetFrame frame(budget);
  RETURN_IF_ERROR(frame.status());
  RETURN_IF_ERROR(budget.Spend(1));
  if (const TextPtr* text = value.As<TextPtr>()) return (*text)->has_user_text();
  if (const ListPtr* list = value.As<ListPtr>()) {
    if ((*list)->user) return true;
    for (const Value& item : (*list)->items) {
      ASSIGN_OR_RETURN(const bool user, HasUserText(budget, item));
      if (user) return true;
    }
    return false;
  }
  if (const DictPtr* dict = value.As<DictPtr>()) {
    if ((*dict)->user) return true;
    return AnyUserText(budget, (*dict)->items);
  }
  if (const ViewPtr* view = value.As<ViewPtr>()) return HasUserText(budget, Value((*view)->dict));
  if (const NamespacePtr* ns = value.As<NamespacePtr>()) return AnyUserText(budget, (*ns)->attributes);
  return false;
}

}  // namespace pith::jinja
