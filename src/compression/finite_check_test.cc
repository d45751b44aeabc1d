#include "compression/finite_check.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compression/overlay_reader.h"
#include "compression/test_golden_models.h"

namespace pith {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(FiniteCheckTest, NamesTheFirstBadElementWhereverItLies) {
  const auto reader = OpenGolden("qwen2_window");
  const std::string module = "model.layers.0.mlp.down_proj";
  EXPECT_TRUE(CheckFinite(*reader, module).ok());
  for (const int64_t index : {int64_t{0}, int64_t{65535}, int64_t{65536}, int64_t{199999}}) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      OverlayReader overlay(*reader);
      auto tensor = std::make_shared<Tensor>(DType::kF32, std::initializer_list<int64_t>{400, 500});
      tensor->as<float>()[static_cast<size_t>(index)] = bad;
      tensor->as<float>()[199999] = bad;
      overlay.SetTensor(absl::StrCat(module, ".weight"), tensor);
      const absl::Status status = CheckFinite(overlay, module);
      EXPECT_TRUE(absl::IsDataLoss(status));
      EXPECT_THAT(status.message(), HasSubstr(absl::StrCat(module, ".weight: expected finite values, found ")));
      EXPECT_THAT(std::string(status.message()), EndsWith(absl::StrCat(" at index ", index)));
    }
  }
}

}  // namespace
}  // namespace pith
