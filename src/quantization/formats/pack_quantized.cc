#include "quantization/formats/pack_quantized.h"

#include <cstring>

#include "base/status.h"

namespace pith {
namespace {

constexpr absl::string_view kSuffixes[] = {"weight_packed", "weight_scale", "weight_zero_point", "weight_shape", "weight_g_idx"};
constexpr absl::string_view kWeightBytes[] = {"weight_packed", "weight_scale", "weight_zero_point", "weight_g_idx"};

// A per-tensor zero point is too small to pack and stays an I8 number.
bool PacksZeroPoints(const QuantizationArgs& args) { return args.strategy != QuantizationStrategy::kTensor; }

absl::StatusOr<MatrixShape> ReadShape(const ModuleTensors& tensors, const QuantizationArgs&) {
  RETURN_IF_ERROR(CheckTensor(tensors, "weight_shape", {DType::kI64}, {2}, ""));
  int64_t sides[2];
  std::memcpy(sides, tensors.Find("weight_shape")->data, sizeof(sides));
  return MatrixShape{sides[0], sides[1]};
}

absl::Status Check(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape) {
  RETURN_IF_ERROR(CheckOnlyTensors(tensors, kSuffixes));
  ASSIGN_OR_RETURN(const MatrixShape stored, ReadShape(tensors, args));
  if (stored.out != shape.out || stored.in != shape.in) {
    return BadFileError(tensors.NameOf("weight_shape"), ": expected [", shape.out, ", ", shape.in, "], found [", stored.out, ", ",
                        stored.in, "]");
  }
  RETURN_IF_ERROR(CheckMatrixShape(tensors.NameOf("weight_shape"), args, shape));
  RETURN_IF_ERROR(CheckTensor(tensors, "weight_packed", {DType::kI32}, {shape.out, PackedWords(shape.in, args.num_bits)},
                              absl::StrCat("(", args.num_bits, "-bit, in=", shape.in, ")")));
  RETURN_IF_ERROR(CheckScale(tensors, args, shape));
  RETURN_IF_ERROR(CheckGroupIndex(tensors, args, shape));
  if (args.symmetric && tensors.Find("weight_zero_point") == nullptr) return absl::OkStatus();
  if (!PacksZeroPoints(args)) return CheckTensor(tensors, "weight_zero_point", {DType::kI8}, {1}, "(per tensor)");
  return CheckTensor(tensors, "weight_zero_point", {DType::kI32}, {PackedWords(shape.out, args.num_bits), ScaleShape(args, shape)[1]},
                     absl::StrCat("(", args.num_bits, "-bit, packed along out=", shape.out, ")"));
}

// Zero points as stored in the scale's shape [out, groups], from words that run along `out`.
std::vector<uint8_t> UnpackZeroPoints(const TensorView& view, int bits, int64_t out) {
  const int64_t words = view.shape[0], groups = view.shape[1];
  std::vector<uint8_t> column_words(static_cast<size_t>(words * 4)), column(static_cast<size_t>(out));
  std::vector<uint8_t> zero_points(static_cast<size_t>(out * groups));
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t w = 0; w < words; ++w) std::memcpy(&column_words[w * 4], view.data + (w * groups + g) * 4, 4);
    UnpackBits(column_words.data(), bits, absl::MakeSpan(column));
    for (int64_t o = 0; o < out; ++o) zero_points[o * groups + g] = column[o];
  }
  return zero_points;
}

StoredTensor PackZeroPoints(const QuantizedTensor& weight) {
  const int64_t groups = weight.num_groups(), words = PackedWords(weight.out, weight.bits);
  StoredTensor stored{"weight_zero_point", Tensor(DType::kI32, {words, groups})};
  std::vector<uint8_t> column(static_cast<size_t>(weight.out));
  std::vector<uint32_t> column_words(static_cast<size_t>(words));
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t o = 0; o < weight.out; ++o) column[o] = ZeroPointAt(weight, o * groups + g);
    PackBits(column, weight.bits, absl::MakeSpan(column_words));
    for (int64_t w = 0; w < words; ++w) stored.tensor.as<int32_t>()[w * groups + g] = static_cast<int32_t>(column_words[w]);
  }
  return stored;
}

std::vector<StoredTensorSpec> Layout(const QuantizationArgs& args, MatrixShape shape, DType scale_dtype) {
  const Shape scales = ScaleShape(args, shape);
  std::vector<StoredTensorSpec> specs = {{"weight_packed", DType::kI32, {shape.out, PackedWords(shape.in, args.num_bits)}},
                                         {"weight_scale", scale_dtype, scales},
                                         {"weight_shape", DType::kI64, {2}}};
  if (args.symmetric) return specs;
  if (PacksZeroPoints(args)) {
    specs.push_back({"weight_zero_point", DType::kI32, {PackedWords(shape.out, args.num_bits), scales[1]}});
  } else {
    specs.push_back({"weight_zero_point", DType::kI8, {1}});
  }
  return specs;
}

absl::StatusOr<std::vector<StoredTensor>> Encode(const QuantizedTensor& weight, const QuantizationArgs& args) {
  RETURN_IF_ERROR(CheckEncodable(weight, args));
  const int64_t words = PackedWords(weight.in, weight.bits);
  std::vector<StoredTensor> stored;
  stored.push_back({"weight_packed", Tensor(DType::kI32, {weight.out, words})});
  std::vector<uint32_t> row(static_cast<size_t>(words));
  for (int64_t o = 0; o < weight.out; ++o) {
    PackBits({weight.code.data() + o * weight.in, static_cast<size_t>(weight.in)}, weight.bits, absl::MakeSpan(row));
    std::memcpy(stored[0].tensor.data() + o * words * 4, row.data(), static_cast<size_t>(words) * 4);
  }
  stored.push_back(EncodeScales(weight, args));
  stored.push_back({"weight_shape", Tensor(DType::kI64, {2})});
  stored.back().tensor.as<int64_t>()[0] = weight.out;
  stored.back().tensor.as<int64_t>()[1] = weight.in;
  if (args.symmetric) return stored;
  if (PacksZeroPoints(args)) {
    stored.push_back(PackZeroPoints(weight));
  } else {
    stored.push_back({"weight_zero_point", Tensor(DType::kI8, {1})});
    stored.back().tensor.as<int8_t>()[0] = static_cast<int8_t>(ZeroPointAt(weight, 0) - weight.default_zero_point());
  }
  return stored;
}

absl::StatusOr<QuantizedTensor> Decode(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape) {
  RETURN_IF_ERROR(Check(tensors, args, shape));
  RETURN_IF_ERROR(CheckGroupIndexValues(tensors, args));
  ASSIGN_OR_RETURN(QuantizedTensor weight, DecodeScales(tensors, args, shape));
  const TensorView* zero_point = tensors.Find("weight_zero_point");
  if (zero_point != nullptr && PacksZeroPoints(args)) {
    const std::vector<uint8_t> values = UnpackZeroPoints(*zero_point, args.num_bits, shape.out);
    RETURN_IF_ERROR(DecodeZeroPoints(
        tensors, args, [&](int64_t i) { return values[static_cast<size_t>(i)]; }, weight));
  } else if (zero_point != nullptr) {
    const int value = static_cast<int8_t>(zero_point->data[0]) + weight.default_zero_point();
    RETURN_IF_ERROR(DecodeZeroPoints(
        tensors, args, [&](int64_t) { return value; }, weight));
  }
  const TensorView& packed = *tensors.Find("weight_packed");
  weight.code.resize(static_cast<size_t>(shape.out * shape.in));
  for (int64_t o = 0; o < shape.out; ++o) {
    UnpackBits(packed.data + o * packed.shape[1] * 4, args.num_bits,
               absl::MakeSpan(weight.code.data() + o * shape.in, static_cast<size_t>(shape.in)));
  }
  weight.stored_bits_per_weight = StoredBitsPerWeight(tensors, kWeightBytes, shape);
  return weight;
}

// Eight 4-bit codes per word; how many words.
size_t PackNibbles(absl::Span<const uint8_t> codes, absl::Span<uint32_t> words) {
  const size_t whole = codes.size() / 8;
  for (size_t i = 0; i < whole; ++i) {
    uint64_t bytes;
    std::memcpy(&bytes, &codes[i * 8], 8);
    bytes = (bytes | bytes >> 4) & 0x00FF00FF00FF00FF;
    bytes = (bytes | bytes >> 8) & 0x0000FFFF0000FFFF;
    words[i] = static_cast<uint32_t>(bytes | bytes >> 16);
  }
  return whole;
}

}  // namespace

int64_t PackedWords(int64_t count, int bits) { return (count * bits + 31) / 32; }

void PackBits(absl::Span<const uint8_t> codes, int bits, absl::Span<uint32_t> words) {
  CHECK_EQ(static_cast<int64_t>(words.size()), PackedWords(static_cast<int64_t>(codes.size()), bits));
  size_t packed = 0;  // whole words of 4-bit codes
  if (bits == 4) packed = PackNibbles(codes, words);
  codes.remove_prefix(packed * 8);
  words.remove_prefix(packed);
  uint64_t buffer = 0;
  int filled = 0;
  size_t word = 0;
  for (const uint8_t code : codes) {
    DCHECK(code < (1 << bits));
    buffer |= static_cast<uint64_t>(code) << filled;
    filled += bits;
    if (filled >= 32) {
      words[word++] = static_cast<uint32_t>(buffer);
      buffer >>= 32;
      filled -= 32;
    }
  }
  if (filled > 0) words[word] = static_cast<uint32_t>(buffer);
}

void UnpackBits(const uint8_t* words, int bits, absl::Span<uint8_t> codes) {
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  uint64_t buffer = 0;
  int filled = 0;
  for (uint8_t& code : codes) {
    if (filled < bits) {
      uint32_t word;
      std::memcpy(&word, words, 4);
      words += 4;
      buffer |= static_cast<uint64_t>(word) << filled;
      filled += 32;
    }
    code = static_cast<uint8_t>(buffer & mask);
    buffer >>= bits;
    filled -= bits;
  }
}

const WeightFormat kPackQuantized = {
    .name = "pack-quantized",
    .min_bits = 2,
    .max_bits = 8,
    .weight_suffix = "weight_packed",
    .read_shape = ReadShape,
    .layout = Layout,
    .encode = Encode,
    .check = Check,
    .decode = Decode,
};

}  // namespace pith
