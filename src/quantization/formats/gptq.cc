#include "quantization/formats/gptq.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "quantization/formats/input_major.h"
#include "quantization/formats/pack_quantized.h"
#include "quantization/quant_method.h"

namespace pith {
namespace {

constexpr absl::string_view kVersion1 = "gptq", kVersion2 = "gptq_v2";
constexpr absl::string_view kSuffixes[] = {"qweight", "qzeros", "scales", "g_idx"};

// The fewest codes that fill whole words, and how many: 8 codes of 4 bits one word, 32 codes of 3 bits three.
struct Chunk {
  int64_t codes, words;
};

constexpr Chunk ChunkOf(int bits) { return {32 / std::gcd(bits, 32), bits / std::gcd(bits, 32)}; }

const char* Refusal(const QuantizationArgs& args, MatrixShape shape) {
  if (args.num_bits != 2 && args.num_bits != 3 && args.num_bits != 4 && args.num_bits != 8) {
    return "expected codes of 2, 3, 4 or 8 bits, found another width";
  }
  const int64_t codes = ChunkOf(args.num_bits).codes;
  if (shape.in % codes != 0 || shape.out % codes != 0) return "expected rows and columns that fill whole words, found other sides";
  return RefuseInputMajorStrategy(args);
}

absl::StatusOr<MatrixShape> ReadShape(const ModuleTensors& tensors, const QuantizationArgs& args) {
  const TensorView* view = tensors.Find("qweight");
  const std::string expected = absl::StrCat(tensors.NameOf("qweight"), ": expected I32 [in * ", args.num_bits, " / 32, out], found ");
  if (view == nullptr) return BadFileError(expected, "no such tensor");
  if (view->dtype != DType::kI32 || view->shape.size() != 2 || view->shape[0] > kMaxMatrixSide ||
      view->shape[0] * 32 % args.num_bits != 0) {
    return BadFileError(expected, DTypeName(view->dtype), " ", ShapeName(view->shape));
  }
  return MatrixShape{view->shape[1], view->shape[0] * 32 / args.num_bits};
}

absl::Status Check(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape) {
  RETURN_IF_ERROR(CheckOnlyTensors(tensors, kSuffixes));
  RETURN_IF_ERROR(CheckMatrixShape(tensors.NameOf("qweight"), args, shape));
  const std::string note = absl::StrCat("(", args.num_bits, "-bit, in=", shape.in, ", out=", shape.out, ")");
  RETURN_IF_ERROR(CheckTensor(tensors, "qweight", {DType::kI32}, {PackedWords(shape.in, args.num_bits), shape.out}, note));
  const int64_t groups = shape.in / args.columns_per_scale(shape.in);
  RETURN_IF_ERROR(CheckTensor(tensors, "qzeros", {DType::kI32}, {groups, PackedWords(shape.out, args.num_bits)}, note));
  RETURN_IF_ERROR(CheckInputMajorScales(tensors, args, shape));
  if (tensors.Find("g_idx") == nullptr) return absl::OkStatus();
  return CheckTensor(tensors, "g_idx", {DType::kI32}, {shape.in}, "");
}

// Groups are neighbouring rows. "Static groups" keep them so in spite of activation order; other files permute them.
absl::Status CheckGroups(const ModuleTensors& tensors, int64_t group_size) {
  const TensorView* view = tensors.Find("g_idx");
  if (view == nullptr) return absl::OkStatus();
  for (int64_t i = 0; i < view->num_elements(); ++i) {
    int32_t group;
    std::memcpy(&group, view->data + i * 4, 4);
    if (group == i / group_size) continue;
    return NotSupportedError(tensors.NameOf("g_idx"), "[", i, "]: expected ", i / group_size, " (groups of neighbouring rows), found ",
                             group, "; groups permuted by activation order (desc_act without static_groups) are not supported");
  }
  return absl::OkStatus();
}

// The fields of qzeros, [groups, out], as stored.
std::vector<uint8_t> UnpackZeros(const TensorView& view, int bits, int64_t out) {
  const int64_t groups = view.shape[0], words = view.shape[1];
  std::vector<uint8_t> fields(static_cast<size_t>(groups * out));
  for (int64_t g = 0; g < groups; ++g) {
    UnpackBits(view.data + g * words * 4, bits, absl::MakeSpan(fields.data() + g * out, static_cast<size_t>(out)));
  }
  return fields;
}

// Files of symmetric weights say by their zero points which version they are of, and some are labelled wrongly.
// Errors: kDataLoss for zero points of neither version.
absl::Status CheckSymmetricZeros(const ModuleTensors& tensors, int bits, const std::vector<uint8_t>& fields) {
  const int middle = 1 << (bits - 1), first = fields[0];
  const auto other = std::find_if(fields.begin(), fields.end(), [&](uint8_t field) { return field != first; });
  if ((first == middle || first == middle - 1) && other == fields.end()) return absl::OkStatus();
  return BadFileError(tensors.NameOf("qzeros"), ": expected ", middle - 1, " (gptq) or ", middle,
                      " (gptq_v2) in every field of a symmetric weight, found ", other == fields.end() ? first : *other, " at index ",
                      other == fields.end() ? 0 : other - fields.begin());
}

template <bool kMinusOne> std::string Note(const ModuleTensors& tensors, const QuantizationArgs& args) {
  if (!args.symmetric) return "";
  const TensorView& zeros = *tensors.Find("qzeros");
  const std::vector<uint8_t> fields = UnpackZeros(zeros, args.num_bits, zeros.shape[1] * 32 / args.num_bits);
  const int middle = 1 << (args.num_bits - 1), other_version = kMinusOne ? middle : middle - 1;
  if (!std::all_of(fields.begin(), fields.end(), [&](uint8_t field) { return field == other_version; })) return "";
  return absl::StrCat("labelled ", kMinusOne ? kVersion1 : kVersion2, ", but the zero points are those of ",
                      kMinusOne ? kVersion2 : kVersion1, " (", other_version, " in every field); read as such");
}

template <bool kMinusOne>
absl::StatusOr<QuantizedTensor> Decode(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape) {
  RETURN_IF_ERROR(Check(tensors, args, shape));
  ASSIGN_OR_RETURN(QuantizedTensor weight, DecodeInputMajorScales(tensors, args, shape));
  RETURN_IF_ERROR(CheckGroups(tensors, weight.group_size));
  const std::vector<uint8_t> fields = UnpackZeros(*tensors.Find("qzeros"), args.num_bits, shape.out);
  if (args.symmetric) {
    RETURN_IF_ERROR(CheckSymmetricZeros(tensors, args.num_bits, fields));
  } else {
    const int64_t groups = weight.num_groups();
    const int mask = (1 << args.num_bits) - 1;
    weight.zero_point.resize(fields.size());
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t o = 0; o < shape.out; ++o) {
        // A zero point of 0 minus one has wrapped around.
        weight.zero_point[o * groups + g] = static_cast<uint8_t>((fields[g * shape.out + o] + (kMinusOne ? 1 : 0)) & mask);
      }
    }
  }
  const Chunk chunk = ChunkOf(args.num_bits);
  const uint8_t* words = tensors.Find("qweight")->data;
  weight.code.resize(static_cast<size_t>(shape.out * shape.in));
  uint8_t stream[8 * 4];
  for (int64_t c = 0; c < shape.in / chunk.codes; ++c) {
    for (int64_t o = 0; o < shape.out; ++o) {
      for (int64_t w = 0; w < chunk.words; ++w) std::memcpy(stream + w * 4, words + ((c * chunk.words + w) * shape.out + o) * 4, 4);
      UnpackBits(stream, args.num_bits,
                 absl::MakeSpan(weight.code.data() + o * shape.in + c * chunk.codes, static_cast<size_t>(chunk.codes)));
    }
  }
  weight.stored_bits_per_weight = StoredBitsPerWeight(tensors, kSuffixes, shape);
  return weight;
}

std::vector<StoredTensorSpec> Layout(const QuantizationArgs& args, MatrixShape shape, DType scale_dtype) {
  const int64_t groups = shape.in / args.columns_per_scale(shape.in);
  return {{"qweight", DType::kI32, {PackedWords(shape.in, args.num_bits), shape.out}},
          {"qzeros", DType::kI32, {groups, PackedWords(shape.out, args.num_bits)}},
          {"scales", scale_dtype, {groups, shape.out}},
          {"g_idx", DType::kI32, {shape.in}}};
}

StoredTensor PackCodes(const QuantizedTensor& weight) {
  StoredTensor stored{"qweight", Tensor(DType::kI32, {PackedWords(weight.in, weight.bits), weight.out})};
  const Chunk chunk = ChunkOf(weight.bits);
  uint32_t words[8];
  for (int64_t o = 0; o < weight.out; ++o) {
    for (int64_t c = 0; c < weight.in / chunk.codes; ++c) {
      PackBits({weight.code.data() + o * weight.in + c * chunk.codes, static_cast<size_t>(chunk.codes)}, weight.bits,
               absl::MakeSpan(words, static_cast<size_t>(chunk.words)));
      for (int64_t w = 0; w < chunk.words; ++w) {
        stored.tensor.as<int32_t>()[(c * chunk.words + w) * weight.out + o] = static_cast<int32_t>(words[w]);
      }
    }
  }
  return stored;
}

StoredTensor PackZeros(const QuantizedTensor& weight, int minus) {
  const int64_t groups = weight.num_groups(), words = PackedWords(weight.out, weight.bits);
  StoredTensor stored{"qzeros", Tensor(DType::kI32, {groups, words})};
  std::vector<uint8_t> fields(static_cast<size_t>(weight.out));
  std::vector<uint32_t> row(static_cast<size_t>(words));
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t o = 0; o < weight.out; ++o) {
      const int zero = weight.zero_point.empty() ? weight.default_zero_point() : ZeroPointAt(weight, o * groups + g);
      fields[o] = static_cast<uint8_t>(zero - minus);
    }
    PackBits(fields, weight.bits, absl::MakeSpan(row));
    std::memcpy(stored.tensor.data() + g * words * 4, row.data(), static_cast<size_t>(words) * 4);
  }
  return stored;
}

template <bool kMinusOne> absl::StatusOr<std::vector<StoredTensor>> Encode(const QuantizedTensor& weight, const QuantizationArgs& args) {
  RETURN_IF_ERROR(CheckEncodable(weight, args));
  if (kMinusOne && !args.symmetric) {
    return NotSupportedError("weight format ", kVersion1,
                             ": expected symmetric codes, found zero points, which loaders of this version disagree on; ", kVersion2,
                             " holds them");
  }
  ASSIGN_OR_RETURN(StoredTensor scales, EncodeInputMajorScales(weight, kMinusOne ? kVersion1 : kVersion2));
  std::vector<StoredTensor> stored;
  stored.push_back(PackCodes(weight));
  stored.push_back(PackZeros(weight, kMinusOne ? 1 : 0));
  stored.push_back(std::move(scales));
  stored.push_back({"g_idx", Tensor(DType::kI32, {weight.in})});
  for (int64_t i = 0; i < weight.in; ++i) stored.back().tensor.as<int32_t>()[i] = static_cast<int32_t>(i / weight.group_size);
  return stored;
}

absl::StatusOr<QuantizationArgs> ParseArgs(const Json& json, const QuantizationArgs& defaults) {
  ASSIGN_OR_RETURN(const int64_t bits, GetInt(json, "bits", 1, 32, defaults.num_bits));
  if (bits > 8) return NotSupportedError("\"bits\": expected at most 8, found ", bits);
  ASSIGN_OR_RETURN(const int64_t group_size, GetInt(json, "group_size", -1, 1 << 24, GroupSizeOrMinusOne(defaults)));
  ASSIGN_OR_RETURN(const bool symmetric, GetBool(json, "sym", defaults.symmetric));
  return GroupedArgs(bits, group_size, symmetric);
}

// "dynamic": {"-:regex": {}} skips modules, {"+:regex": {...}} or {"regex": {...}} gives them other arguments.
absl::Status ParseDynamic(const Json& dynamic, QuantizationConfig& config) {
  if (!dynamic.is_object()) return BadFileError("\"dynamic\": expected an object, found ", Printable(DumpJson(dynamic), 60));
  for (const auto& [key, value] : dynamic.items()) {
    absl::string_view text = key;
    const bool skip = absl::ConsumePrefix(&text, "-:");
    if (!skip) absl::ConsumePrefix(&text, "+:");
    ASSIGN_OR_RETURN(ModulePattern pattern, ModulePattern::Parse(absl::StrCat("re:", text)));
    if (skip) {
      config.ignore.push_back(std::move(pattern));
      continue;
    }
    QuantizationGroup group = config.groups[0];
    group.name = absl::StrCat("group_", config.groups.size());
    group.targets = {std::move(pattern)};
    ASSIGN_OR_RETURN(group.scheme.weights, ParseArgs(value, *config.groups[0].scheme.weights));
    group.scheme.name = std::string(PresetName(group.scheme.weights, std::nullopt));
    config.groups.push_back(std::move(group));
  }
  return absl::OkStatus();
}

absl::StatusOr<QuantizationConfig> Parse(const Json& json) {
  ASSIGN_OR_RETURN(const std::string version, GetString(json, "checkpoint_format", kVersion1));
  if (version != kVersion1 && version != kVersion2) {
    return NotSupportedError("\"checkpoint_format\": expected \"", kVersion1, "\" or \"", kVersion2, "\", found \"", Printable(version, 60),
                             "\"");
  }
  RETURN_IF_ERROR(GetInt(json, "bits", 1, 32).status());
  QuantizationArgs defaults{.num_bits = 4, .strategy = QuantizationStrategy::kGroup, .group_size = 128};
  ASSIGN_OR_RETURN(const QuantizationArgs args, ParseArgs(json, defaults));
  ASSIGN_OR_RETURN(QuantizationConfig config, MakeMethodConfig(version, args, {}));
  ASSIGN_OR_RETURN(const bool head, GetBool(json, "lm_head", false));
  if (!head) config.ignore.push_back(ModulePattern::Literal("lm_head"));
  if (const Json* dynamic = FindMember(json, "dynamic"); dynamic != nullptr) RETURN_IF_ERROR(ParseDynamic(*dynamic, config));
  return config;
}

Json WriteArgs(const QuantizationArgs& args) {
  return {{"bits", args.num_bits}, {"group_size", GroupSizeOrMinusOne(args)}, {"sym", args.symmetric}};
}

Json Write(const QuantizationConfig& config) {
  Json json = WriteArgs(*config.groups[0].scheme.weights);
  json["quant_method"] = "gptq";
  json["checkpoint_format"] = config.groups[0].scheme.format;
  json["desc_act"] = false;
  bool head = true;
  Json dynamic = Json::object();
  for (const ModulePattern& pattern : config.ignore) {
    absl::string_view text = pattern.text();
    if (text == "lm_head") {
      head = false;
    } else {
      absl::ConsumePrefix(&text, "re:");
      dynamic[absl::StrCat("-:", text)] = Json::object();
    }
  }
  for (size_t i = 1; i < config.groups.size(); ++i) {
    for (const ModulePattern& pattern : config.groups[i].targets) {
      dynamic[absl::StrCat("+:", absl::StripPrefix(pattern.text(), "re:"))] = WriteArgs(*config.groups[i].scheme.weights);
    }
  }
  json["lm_head"] = head;
  if (!dynamic.empty()) json["dynamic"] = std::move(dynamic);
  return json;
}

// "dynamic" takes regular expressions; of the characters of module names a dot alone means something in them.
absl::StatusOr<ModulePattern> Skip(absl::string_view module) {
  if (module == "lm_head") return ModulePattern::Literal(module);
  return ModulePattern::Parse(absl::StrCat("re:", absl::StrReplaceAll(module, {{".", "\\."}}), "$"));
}

constexpr QuantMethod kMethod = {.name = "gptq", .parse = Parse, .write = Write, .skip = Skip};

template <bool kMinusOne> constexpr WeightFormat Row(absl::string_view name) {
  return {.name = name,
          .min_bits = 2,
          .max_bits = 8,
          .weight_suffix = "qweight",
          .scale_suffix = "scales",
          .scale_dtype = DType::kF16,
          .refusal = Refusal,
          .read_shape = ReadShape,
          .layout = Layout,
          .encode = Encode<kMinusOne>,
          .check = Check,
          .decode = Decode<kMinusOne>,
          .note = Note<kMinusOne>,
          .method = &kMethod};
}

}  // namespace

const WeightFormat kGptq = Row<true>(kVersion1);
const WeightFormat kGptqV2 = Row<false>(kVersion2);

}  // namespace pith
