#include "tokenizer/template_globals.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "base/status.h"
#include "tokenizer/template_format.h"
#include "tokenizer/template_loop.h"
#include "tokenizer/template_repr.h"

namespace pith::jinja {
namespace {

using Result = absl::StatusOr<Value>;

constexpr size_t kMaxExceptionBytes = 2000;
constexpr int64_t kStepsPerNamespace = 10;  // they are kept until the end of the rendering

// Number of items from start to stop, saturated.
int64_t RangeLength(int64_t start, int64_t stop, int64_t step) {
  if (step > 0 ? start >= stop : start <= stop) return 0;
  const auto low = static_cast<uint64_t>(step > 0 ? start : stop), high = static_cast<uint64_t>(step > 0 ? stop : start);
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  return static_cast<int64_t>(std::min<uint64_t>((high - low - 1) / stride + 1, std::numeric_limits<int64_t>::max()));
}

Result Range(Runtime& runtime, const Value&, Arguments arguments) {
  const size_t count = arguments.positional.size();
  if (count < 1 || count > 3 || !arguments.keyword.empty()) return UsageError("range() expects one to three integers");
  int64_t bounds[3] = {0, 0, 1};
  for (size_t i = 0; i < count; ++i) {
    const std::optional<int64_t> bound = AsIndex(arguments.positional[i]);
    if (!bound.has_value()) return UsageError("range() expects integers, found ", TypeName(arguments.positional[i]));
    bounds[count == 1 ? 1 : i] = *bound;
  }
  if (bounds[2] == 0) return UsageError("range() expects a step other than 0");
  const int64_t length = RangeLength(bounds[0], bounds[1], bounds[2]), limit = runtime.budget().limits().range;
  if (length > limit) return UsageError("passed the limit range of ", limit, " items, found ", length);
  return Value(RangePtr(std::make_shared<const RangeObject>(RangeObject{bounds[0], bounds[1], bounds[2], length})));
}

// dict(mapping or pairs, name=value, ...).
absl::StatusOr<DictItems> MakeItems(Runtime& runtime, absl::string_view function, Arguments arguments) {
  Budget& budget = runtime.budget();
  if (arguments.positional.size() > 1) return UsageError(function, "() expects at most one positional argument");
  DictItems items;
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (const DictPtr* dict = source.As<DictPtr>()) {
      RETURN_IF_ERROR(budget.Spend((*dict)->items.size()));
      items = (*dict)->items;
    } else {
      ASSIGN_OR_RETURN(const ValueList pairs, Collect(runtime, source));
      for (const Value& pair : pairs) {
        ASSIGN_OR_RETURN(ValueList both, Collect(runtime, pair));
        if (both.size() != 2) return UsageError(function, "() expects pairs, found ", both.size(), " items");
        RETURN_IF_ERROR(items.Set(budget, std::move(both[0]), std::move(both[1])));
      }
    }
  }
  for (auto& [name, value] : arguments.keyword) RETURN_IF_ERROR(items.Set(budget, MakeString(name), std::move(value)));
  return items;
}

Result Dict(Runtime& runtime, const Value&, Arguments arguments) {
  ASSIGN_OR_RETURN(DictItems items, MakeItems(runtime, "dict", std::move(arguments)));
  return MakeDict(runtime.budget(), std::move(items));
}

Result Namespace(Runtime& runtime, const Value&, Arguments arguments) {
  RETURN_IF_ERROR(runtime.budget().Spend(kStepsPerNamespace));
  auto ns = std::make_shared<NamespaceObject>();
  ASSIGN_OR_RETURN(ns->attributes, MakeItems(runtime, "namespace", std::move(arguments)));
  for (const auto& [key, value] : ns->attributes.items()) {
    const TextPtr* name = key.As<TextPtr>();
    if (name != nullptr && absl::StartsWith((*name)->bytes(), "_")) {
      return UsageError("namespace() takes no attribute with a leading underscore, found '", Printable((*name)->bytes()), "'");
    }
  }
  runtime.Retain(ns);
  return Value(std::move(ns));
}

Result RaiseException(Runtime& runtime, const Value&, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const TextPtr message, ToText(runtime.budget(), *arguments.At(0)));
  return UsageError(Printable(message->bytes(), kMaxExceptionBytes));
}

Result StrftimeNow(Runtime& runtime, const Value&, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const TextPtr format, arguments.String(0));
  ASSIGN_OR_RETURN(TextPtr text, FormatTime(runtime, format, runtime.now_unix_seconds()));
  return Value(std::move(text));
}

constexpr NativeFunction kGlobals[] = {
    {.name = "dict", .run_variadic = Dict},
    {.name = "namespace", .run_variadic = Namespace},
    {.name = "raise_exception", .parameters = {"message"}, .run = RaiseException},
    {.name = "range", .run_variadic = Range},
    {.name = "strftime_now", .parameters = {"format"}, .run = StrftimeNow},
};

}  // namespace

const NativeFunction* FindGlobal(absl::string_view name) { return FindFunction(kGlobals, name); }

}  // namespace pith::jinja
