#include "cli/bf16_twin.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace pith {

Bf16Twin::Bf16Twin(const ArtifactReader& reader) : reader_(reader) {
  path_ = absl::StrCat(reader.path(), " (BF16 twin)");
  format_ = "bf16";
  config_ = reader.config();
  generation_config_ = reader.generation_config();
}

absl::StatusOr<std::unique_ptr<Bf16Twin>> Bf16Twin::Create(const ArtifactReader& reader) {
  std::unique_ptr<Bf16Twin> twin(new Bf16Twin(reader));
  int64_t largest = 1;
  for (const std::string& name : reader.WeightNames()) {
    ASSIGN_OR_RETURN(const TensorInfo info, reader.DescribeWeight(name));
    if (info.shape.size() != 2) continue;
    largest = std::max(largest, NumElements(info.shape));
    twin->weight_bytes_ += NumElements(info.shape) * ByteSize(DType::kBF16);
  }
  twin->values_ = std::make_shared<Tensor>(DType::kBF16, Shape{largest});
  const auto values = twin->values_->as<bfloat16>();
  // Magnitudes from 2^-6 to 2^-5, both signs: sums stay finite and nowhere subnormal.
  for (int64_t i = 0; i < largest; ++i) {
    const uint32_t mixed = static_cast<uint32_t>(i) * 2654435761u;
    values[i].bits = static_cast<uint16_t>(0x3C80u + (mixed >> 25) + ((mixed & 1024u) << 5));
  }
  return twin;
}

absl::StatusOr<Weight> Bf16Twin::ReadWeight(absl::string_view name) const {
  ASSIGN_OR_RETURN(const TensorInfo info, reader_.DescribeWeight(name));
  if (info.shape.size() != 2) return reader_.ReadWeight(name);
  Weight weight;
  weight.name = std::string(name);
  weight.dense = TensorView{DType::kBF16, info.shape, values_->data()};
  weight.storage = values_;
  weight.stored_bytes = NumElements(info.shape) * ByteSize(DType::kBF16);
  return weight;
}

}  // namespace pith
