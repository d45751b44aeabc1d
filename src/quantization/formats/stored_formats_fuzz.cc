// Any bytes as the tensors of a module in any stored format: refused, or a weight of the right size that, where the format can write it,
// is the same when it is read again.
#include <cstdlib>

#include "quantization/formats/format_table.h"

namespace pith {
namespace {

// A tensor of that shape; its bytes are the input's, over and over.
Tensor FillTensor(const StoredTensorSpec& spec, const uint8_t* data, size_t size, size_t& position) {
  Tensor tensor(spec.dtype, spec.shape);
  for (int64_t i = 0; i < tensor.view().num_bytes(); ++i) tensor.data()[i] = size == 0 ? 0 : data[position++ % size];
  return tensor;
}

QuantizationArgs ArgsOf(const WeightFormat& format, const uint8_t* bytes, int64_t in) {
  QuantizationArgs args{.num_bits = 1 + bytes[1] % 8, .type = format.type, .symmetric = (bytes[2] & 1) != 0};
  args.strategy = static_cast<QuantizationStrategy>(bytes[2] / 2 % 4);
  if (args.strategy == QuantizationStrategy::kGroup) args.group_size = static_cast<int>(in);
  if (args.strategy == QuantizationStrategy::kBlock) args.block_rows = 3, args.block_cols = static_cast<int>(in);
  return args;
}

}  // namespace
}  // namespace pith

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pith;
  if (size < 6) return 0;
  const WeightFormat& format = *WeightFormats()[data[0] % WeightFormats().size()];
  const MatrixShape shape{8 * (1 + data[3] % 8), 8 * (1 + data[4] % 8)};
  const QuantizationArgs args = ArgsOf(format, data, shape.in);
  const auto plan = PlanWeight(format.name, args, shape, DType::kF16);
  if (!plan.ok()) return 0;
  std::vector<Tensor> storage;
  ModuleTensors tensors{"m", {}};
  size_t position = 0;
  for (const StoredTensorSpec& spec : *plan) storage.push_back(FillTensor(spec, data + 6, size - 6, position));
  for (size_t i = 0; i < plan->size(); ++i) {
    if (data[5] == i + 1) continue;  // one tensor may be missing
    tensors.tensors.push_back({(*plan)[i].suffix, storage[i].view()});
  }
  (void)ReadWeightShape(format.name, args, tensors);
  const auto weight = DecodeWeight(format.name, tensors, args, shape);
  if (!weight.ok()) return 0;
  (void)NoteOnWeight(format.name, tensors, args);
  if (static_cast<int64_t>(weight->code.size()) != shape.out * shape.in) std::abort();
  const auto again = EncodeWeight(format.name, *weight, args);
  if (!again.ok()) return 0;
  ModuleTensors stored{"m", {}};
  for (const StoredTensor& tensor : *again) stored.tensors.push_back({tensor.suffix, tensor.tensor.view()});
  const auto read = DecodeWeight(format.name, stored, args, shape);
  if (!read.ok() || read->code != weight->code || read->zero_point != weight->zero_point) std::abort();
  return 0;
}
