#include "quantization/quantization_args.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/nearest_name.h"
#include "base/status.h"

namespace pith {
namespace {

struct StrategyRow {
  QuantizationStrategy strategy;
  absl::string_view name;
};

constexpr StrategyRow kStrategies[] = {
    {QuantizationStrategy::kTensor, "tensor"}, {QuantizationStrategy::kChannel, "channel"}, {QuantizationStrategy::kGroup, "group"},
    {QuantizationStrategy::kBlock, "block"},   {QuantizationStrategy::kToken, "token"},     {QuantizationStrategy::kAttnHead, "attn_head"},
};

// Every key published so far. The last five say how scales were found, not what they mean.
constexpr absl::string_view kKeys[] = {"num_bits", "type",     "symmetric",   "strategy", "group_size", "block_structure",
                                       "dynamic",  "actorder", "scale_dtype", "zp_dtype", "observer",   "observer_kwargs"};

std::string Found(const Json& value) { return Printable(DumpJson(value), 60); }

absl::Status CheckKeys(const Json& json) {
  if (!json.is_object()) return BadFileError("quantization arguments: expected an object, found ", Found(json));
  for (const auto& [key, value] : json.items()) {
    bool known = false;
    for (const absl::string_view name : kKeys) known |= key == name;
    if (!known) {
      return BadFileError("\"", Printable(key, 60), "\": unknown key of quantization arguments, nearest is \"", NearestName(key, kKeys),
                          "\"");
    }
  }
  return absl::OkStatus();
}

absl::Status ParseType(const Json& json, QuantizationArgs& args) {
  ASSIGN_OR_RETURN(const std::string type, GetString(json, "type", "int"));
  const std::string lower = absl::AsciiStrToLower(type);
  if (lower != "int" && lower != "float") return BadFileError("\"type\": expected \"int\" or \"float\", found ", Found(json["type"]));
  args.type = lower == "int" ? QuantizationType::kInt : QuantizationType::kFloat;
  ASSIGN_OR_RETURN(const int64_t bits, GetInt(json, "num_bits", 1, 32, 8));
  if (bits > 8 || (args.type == QuantizationType::kFloat && bits != 8)) {
    return NotSupportedError("\"num_bits\": expected ", args.type == QuantizationType::kInt ? "1 to 8" : "8", " for type \"", lower,
                             "\", found ", bits);
  }
  args.num_bits = static_cast<int>(bits);
  return absl::OkStatus();
}

absl::Status ParseDynamic(const Json& json, QuantizationArgs& args) {
  const Json* dynamic = FindMember(json, "dynamic");
  if (dynamic == nullptr) return absl::OkStatus();
  if (dynamic->is_string() && absl::EqualsIgnoreCase(dynamic->get_ref<const std::string&>(), "local")) {
    return NotSupportedError("\"dynamic\": \"local\" (scales per tensor and group) is not supported");
  }
  if (!dynamic->is_boolean()) return BadFileError("\"dynamic\": expected true, false or \"local\", found ", Found(*dynamic));
  args.dynamic = dynamic->get<bool>();
  return absl::OkStatus();
}

// "weight" (alias "static") only changes the order in which GPTQ visits columns; "group" also permutes the stored groups.
absl::Status CheckActivationOrder(const Json& json) {
  const Json* order = FindMember(json, "actorder");
  if (order == nullptr || *order == false) return absl::OkStatus();
  if (order->is_string()) {
    const std::string lower = absl::AsciiStrToLower(order->get_ref<const std::string&>());
    if (lower == "weight" || lower == "static") return absl::OkStatus();
    if (lower == "group" || lower == "dynamic") {
      return NotSupportedError("\"actorder\": \"", lower, "\" (groups permuted by weight_g_idx) is not supported");
    }
  }
  if (*order == true) return NotSupportedError("\"actorder\": true (groups permuted by weight_g_idx) is not supported");
  return BadFileError("\"actorder\": expected null, \"weight\", \"static\", \"group\" or \"dynamic\", found ", Found(*order));
}

absl::Status ParseBlockStructure(const Json& json, QuantizationArgs& args) {
  const Json* block = FindMember(json, "block_structure");
  if (block == nullptr) return absl::OkStatus();
  int64_t sides[2] = {0, 0};
  bool valid = block->is_array() && block->size() == 2;
  for (size_t i = 0; valid && i < 2; ++i) {
    const Json& side = (*block)[i];
    valid = side.is_number_integer() && side >= 1 && side <= (1 << 20);
    if (valid) sides[i] = side.get<int64_t>();
  }
  if (!valid) return BadFileError("\"block_structure\": expected [rows, columns], two positive integers, found ", Found(*block));
  args.block_rows = static_cast<int>(sides[0]);
  args.block_cols = static_cast<int>(sides[1]);
  return absl::OkStatus();
}

// The strategy, or what its absence means: no group_size per tensor, -1 per channel, a positive one per group.
absl::Status ParseStrategy(const Json& json, QuantizationArgs& args) {
  ASSIGN_OR_RETURN(const int64_t group_size, GetInt(json, "group_size", -1, 1 << 24, 0));
  const bool has_group_size = FindMember(json, "group_size") != nullptr;
  args.group_size = group_size > 0 ? static_cast<int>(group_size) : 0;
  ASSIGN_OR_RETURN(const std::string name, GetString(json, "strategy", ""));
  if (name.empty()) {
    if (has_group_size && group_size == 0) {
      return BadFileError("\"group_size\": expected a positive size, or -1 for one scale per channel, found 0");
    }
    args.strategy = group_size > 0     ? QuantizationStrategy::kGroup
                    : group_size == -1 ? QuantizationStrategy::kChannel
                                       : QuantizationStrategy::kTensor;
    return absl::OkStatus();
  }
  const std::string lower = absl::AsciiStrToLower(name);
  // Of weights and activations; kv_cache_scheme.h reads the heads of a cache.
  if (lower == "tensor_group" || lower == "attn_head") return NotSupportedError("\"strategy\": \"", lower, "\" is not supported");
  for (const StrategyRow& row : kStrategies) {
    if (row.name == lower) {
      args.strategy = row.strategy;
      return absl::OkStatus();
    }
  }
  return BadFileError("\"strategy\": expected tensor, channel, group, block or token, found \"", Printable(name, 60), "\"");
}

// Keys that describe the run that made the file; only their types are checked.
absl::Status CheckInformationalKeys(const Json& json) {
  for (const absl::string_view key : {"scale_dtype", "zp_dtype", "observer"}) RETURN_IF_ERROR(GetString(json, key, "").status());
  const Json* kwargs = FindMember(json, "observer_kwargs");
  if (kwargs != nullptr && !kwargs->is_object()) {
    return BadFileError("\"observer_kwargs\": expected an object, found ", Found(*kwargs));
  }
  return absl::OkStatus();
}

}  // namespace

absl::string_view StrategyName(QuantizationStrategy strategy) { return kStrategies[static_cast<int>(strategy)].name; }

absl::Status Validate(const QuantizationArgs& args) {
  const absl::string_view strategy = StrategyName(args.strategy);
  const bool is_group = args.strategy == QuantizationStrategy::kGroup;
  const bool is_block = args.strategy == QuantizationStrategy::kBlock;
  if (args.num_bits < 1 || args.num_bits > 8) return UsageError("num_bits: expected 1 to 8, found ", args.num_bits);
  if (args.type == QuantizationType::kFloat && args.num_bits != 8) {
    return UsageError("num_bits: expected 8 for float codes (e4m3fn), found ", args.num_bits);
  }
  if (args.type == QuantizationType::kFloat && !args.symmetric) return UsageError("symmetric: expected true for float codes, found false");
  if (is_group && args.group_size <= 0)
    return UsageError("group_size: expected a positive size for strategy group, found ", args.group_size);
  if (!is_group && args.group_size != 0) {
    return UsageError("group_size: expected none for strategy ", strategy, ", found ", args.group_size);
  }
  if (is_block ? args.block_rows <= 0 || args.block_cols <= 0 : args.block_rows != 0 || args.block_cols != 0) {
    return UsageError("block_structure: expected ", is_block ? "two positive sizes" : "none", " for strategy ", strategy, ", found [",
                      args.block_rows, ", ", args.block_cols, "]");
  }
  if (args.strategy == QuantizationStrategy::kToken && !args.dynamic) {
    return UsageError("dynamic: expected true for strategy token (scales exist only at run time), found false");
  }
  const bool of_channels = args.strategy == QuantizationStrategy::kChannel || args.strategy == QuantizationStrategy::kAttnHead;
  if (args.dynamic && (is_block || of_channels)) {
    return UsageError("dynamic: expected false for strategy ", strategy, ", found true");
  }
  const bool int8_per_token = args.num_bits == 8 && args.type == QuantizationType::kInt && args.strategy == QuantizationStrategy::kToken;
  if (!(args.outlier_threshold >= 0) || (args.outlier_threshold > 0 && !int8_per_token)) {
    return UsageError("outlier threshold: expected none, or a positive one of int8 codes per token, found ", args.outlier_threshold);
  }
  if (args.fixed_outliers && args.outlier_threshold == 0) return UsageError("fixed outliers: expected a threshold, found none");
  return absl::OkStatus();
}

absl::Status ValidateInput(const QuantizationArgs& args) {
  RETURN_IF_ERROR(Validate(args));
  if (!args.symmetric) return NotSupportedError("asymmetric activations (zero points of a layer's input) are not supported");
  const bool per_tensor = args.strategy == QuantizationStrategy::kTensor;
  if (per_tensor || (args.dynamic && args.strategy != QuantizationStrategy::kBlock)) return absl::OkStatus();
  return NotSupportedError(args.dynamic ? "dynamic" : "static", " activations per ", StrategyName(args.strategy),
                           " are not supported; known are dynamic ones per token, group or tensor and static ones per tensor");
}

std::string DescribeInput(const QuantizationArgs& args) {
  const std::string outliers = args.outlier_threshold == 0 ? ""
                               : args.fixed_outliers       ? ", outlier columns apart"
                                                           : absl::StrCat(", outliers from ", args.outlier_threshold, " apart");
  return absl::StrCat(args.type == QuantizationType::kInt ? "int" : "fp", args.num_bits, args.dynamic ? " dynamic per " : " static per ",
                      StrategyName(args.strategy), args.group_size > 0 ? absl::StrCat(" of ", args.group_size) : "", outliers);
}

absl::Span<const absl::string_view> QuantizationArgsKeys() { return kKeys; }

absl::StatusOr<QuantizationArgs> ParseQuantizationArgs(const Json& json) {
  RETURN_IF_ERROR(CheckKeys(json));
  QuantizationArgs args;
  RETURN_IF_ERROR(ParseType(json, args));
  ASSIGN_OR_RETURN(args.symmetric, GetBool(json, "symmetric", true));
  RETURN_IF_ERROR(ParseStrategy(json, args));
  RETURN_IF_ERROR(ParseBlockStructure(json, args));
  RETURN_IF_ERROR(ParseDynamic(json, args));
  RETURN_IF_ERROR(CheckActivationOrder(json));
  RETURN_IF_ERROR(CheckInformationalKeys(json));
  const absl::Status valid = Validate(args);
  if (!valid.ok()) return BadFileError(valid.message());
  return args;
}

Json ToJson(const QuantizationArgs& args) {
  Json json = {{"num_bits", args.num_bits},
               {"type", args.type == QuantizationType::kInt ? "int" : "float"},
               {"symmetric", args.symmetric},
               {"strategy", StrategyName(args.strategy)}};
  if (args.strategy == QuantizationStrategy::kGroup) json["group_size"] = args.group_size;
  if (args.strategy == QuantizationStrategy::kBlock) json["block_structure"] = {args.block_rows, args.block_cols};
  if (args.dynamic) json["dynamic"] = true;
  return json;
}

}  // namespace pith
