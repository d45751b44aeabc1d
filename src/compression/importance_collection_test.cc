#include "compression/importance_collection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/float_types.h"
#include "base/random.h"
#include "compression/test_golden_models.h"
#include "model/layerwise_model.h"

namespace pith {
namespace {

CalibrationData RandomSequences(int count) {
  CalibrationData data{.files = {"test.txt"}};
  data.options.sequence_length = 20;
  RandomStream random(5);
  for (int i = 0; i < count; ++i) {
    std::vector<int32_t> tokens(static_cast<size_t>(10 + i));
    for (int32_t& token : tokens) token = static_cast<int32_t>(random.Below(100));
    data.sequences.push_back(std::move(tokens));
  }
  return data;
}

// Sums of squares by module, in f64.
class SquareSums : public LayerObserver {
 public:
  void OnLinearInput(absl::string_view module, const uint16_t* input, int64_t num_rows, int64_t dim) override {
    std::vector<double>& sums = sums_[std::string(module)];
    sums.resize(static_cast<size_t>(dim));
    for (int64_t i = 0; i < num_rows * dim; ++i) {
      const double value = ToFloat(bfloat16{input[i]});
      sums[static_cast<size_t>(i % dim)] += value * value;
    }
  }
  std::map<std::string, std::vector<double>> sums_;
};

TEST(CollectImportanceMatrix, SumsTheSquaresOfEveryInput) {
  for (const char* model : {"llama_llama3", "qwen2_window"}) {
    SCOPED_TRACE(model);
    const auto reader = OpenGolden(model);
    const CalibrationData data = RandomSequences(3);
    ThreadPool pool(2);
    const auto matrix = CollectImportanceMatrix(*reader, data, pool, {});
    ASSERT_TRUE(matrix.ok()) << matrix.status();
    auto layers = LayerwiseModel::Create(*reader, {.pool = &pool, .isa = *SelectIsa(), .max_tokens = data.longest()});
    ASSERT_TRUE(layers.ok()) << layers.status();
    SquareSums expected;
    for (const std::vector<int32_t>& tokens : data.sequences) {
      std::vector<float> hidden(tokens.size() * static_cast<size_t>((*layers)->config().hidden_size));
      ASSERT_TRUE((*layers)->Embed(tokens, absl::MakeSpan(hidden)).ok());
      for (int64_t i = 0; i < (*layers)->config().num_layers; ++i) {
        const auto layer = (*layers)->LoadLayer(*reader, i);
        ASSERT_TRUE(layer.ok()) << layer.status();
        ASSERT_TRUE((*layers)->RunLayer(*layer, static_cast<int64_t>(tokens.size()), absl::MakeSpan(hidden), &expected).ok());
      }
    }
    const std::pair<const char*, const char*> kModules[] = {
        {"attn_q", "self_attn.q_proj"}, {"attn_k", "self_attn.k_proj"}, {"attn_v", "self_attn.v_proj"}, {"attn_output", "self_attn.o_proj"},
        {"ffn_gate", "mlp.gate_proj"},  {"ffn_up", "mlp.up_proj"},      {"ffn_down", "mlp.down_proj"}};
    const int64_t num_layers = (*layers)->config().num_layers;
    EXPECT_EQ(matrix->entries.size(), static_cast<size_t>(7 * num_layers));
    for (int64_t layer = 0; layer < num_layers; ++layer) {
      for (const auto& [gguf, module] : kModules) {
        const auto& entry = matrix->entries.at(absl::StrCat("blk.", layer, ".", gguf, ".weight"));
        const std::vector<double>& sums = expected.sums_.at(absl::StrCat("model.layers.", layer, ".", module));
        EXPECT_EQ(entry.count, static_cast<float>(data.num_tokens()));
        ASSERT_EQ(entry.sum_squares.size(), sums.size());
        for (size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(entry.sum_squares[i], sums[i], 1e-6 * sums[i]) << gguf << " " << i;
      }
    }
    EXPECT_EQ(matrix->chunk_count, 3);
    EXPECT_EQ(matrix->chunk_size, 20);
    EXPECT_THAT(matrix->datasets, testing::ElementsAre("test.txt"));
  }
}

TEST(CollectImportanceMatrix, NeitherThreadsNorBatchesChangeTheBits) {
  const auto reader = OpenGolden("llama_llama3");
  CalibrationData data = RandomSequences(7);
  data.files.clear();
  ThreadPool one(1), three(3);
  const auto whole = CollectImportanceMatrix(*reader, data, one, {});
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(whole->datasets, testing::ElementsAre("text of the model itself"));
  int64_t last = 0;
  const auto batches = CollectImportanceMatrix(
      *reader, data, three,
      [&](absl::string_view phase, int64_t count, int64_t total) {
        EXPECT_EQ(phase, "collecting");
        EXPECT_EQ(count, last + 1);
        EXPECT_LE(count, total);
        last = count;
        return absl::OkStatus();
      },
      /*max_hidden_bytes=*/1);
  ASSERT_TRUE(batches.ok()) << batches.status();
  EXPECT_EQ(batches->entries.size(), whole->entries.size());
  for (const auto& [name, entry] : whole->entries) EXPECT_EQ(batches->entries.at(name).sum_squares, entry.sum_squares) << name;
  const auto stop = [](absl::string_view, int64_t, int64_t) { return absl::CancelledError("stopped"); };
  EXPECT_TRUE(absl::IsCancelled(CollectImportanceMatrix(*reader, data, one, stop).status()));
}

}  // namespace
}  // namespace pith
