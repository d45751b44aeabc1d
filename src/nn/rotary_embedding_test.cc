#include "nn/rotary_embedding.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

// What the transformers library (5.24, CPU) computes, printed with 9 digits; attention_factor as its attention_scaling.
struct ReferenceCase {
  const char* name;
  RopeConfig config;
  std::vector<double> inverse_frequency;
  std::vector<double> cos_4095, sin_4095;
};

const ReferenceCase kCases[] = {
    {"none",
     {.theta = 10000.0},
     {1, 0.316227764, 0.100000001, 0.0316227786, 0.00999999978, 0.00316227786, 0.00100000005, 0.000316227786},
     {-0.0659759939, 0.815928221, 0.459863335, -0.771254778, -0.994033098, 0.927488983, -0.578907907, 0.272358716},
     {-0.997821212, 0.578153193, 0.8879897, -0.636526585, -0.109078795, 0.373850524, -0.815392911, 0.962195814}},
    {"linear",
     {.theta = 10000.0, .scaling = "linear", .factor = 4.0},
     {0.25, 0.079056941, 0.0250000004, 0.00790569466, 0.00249999994, 0.000790569466, 0.000250000012, 7.90569466e-05},
     {0.917437375, -0.988147616, -0.269851446, 0.575243354, -0.687524199, -0.995415688, 0.520166814, 0.948052883},
     {-0.397880167, -0.153506503, 0.96290195, 0.817982316, -0.72616148, -0.0956428647, 0.854064703, 0.318112791}},
    {"llama3",
     {.theta = 500000.0,
      .scaling = "llama3",
      .factor = 32.0,
      .low_freq_factor = 1.0,
      .high_freq_factor = 4.0,
      .original_max_position = 8192},
     {1, 0.193922758, 0.0376060307, 0.00729266508, 0.000429556705, 8.57025589e-06, 1.66196742e-06, 3.22293289e-07},
     {-0.0659759939, -0.758861721, -0.998280644, 0.0183331184, -0.187128738, 0.999384224, 0.999976873, 0.999999106},
     {-0.997821212, 0.651251793, -0.0586152002, -0.999831915, 0.982335389, 0.0350879915, 0.00680570398, 0.00131979072}},
    {"yarn",
     {.theta = 1000000.0, .scaling = "yarn", .factor = 4.0, .original_max_position = 1024, .attention_factor = 1.138629436111989},
     {1, 0.316227764, 0.081249997, 0.0197642371, 0.00437499955, 0.000790569524, 0.000250000012, 7.90569611e-05, 2.49999921e-05,
      7.90569356e-06, 2.50000085e-06, 7.90569231e-07},
     {-0.0751222074, 0.929039896, 1.09106147, 0.835554242, 0.677116096, -1.13340962, 0.592277229, 1.07948089, 1.1326679, 1.13803279,
      1.13856983, 1.13862348},
     {-1.13614857, 0.658302248, -0.325671375, -0.773515463, -0.915418386, -0.108902045, 0.972463191, 0.362212628, 0.116363645, 0.03685534,
      0.01165652, 0.00368617103}},
    {"yarn without truncation",
     {.theta = 1000000.0,
      .scaling = "yarn",
      .factor = 4.0,
      .original_max_position = 1024,
      .beta_fast = 16.0,
      .beta_slow = 2.0,
      .truncate = false,
      .attention_factor = 0.9295234923939468},
     {1, 0.316227764, 0.099999994, 0.0187018048, 0.00249999971, 0.000790569524, 0.000250000012, 7.90569611e-05, 2.49999921e-05,
      7.90569356e-06, 2.50000085e-06, 7.90569231e-07},
     {-0.0613262355, 0.758424401, 0.427478969, 0.349200606, -0.63907057, -0.925262213, 0.483507276, 0.881237388, 0.924656749, 0.929036438,
      0.929474771, 0.92951858},
     {-0.927498221, 0.537406981, 0.825394273, 0.861436486, -0.674983501, -0.0889025033, 0.793873191, 0.295693338, 0.0949937999,
      0.0300869644, 0.00951583404, 0.00300921663}},
};

class RotaryReference : public testing::TestWithParam<ReferenceCase> {};

TEST_P(RotaryReference, FrequenciesAndAnglesMatch) {
  const ReferenceCase& c = GetParam();
  const int64_t half = static_cast<int64_t>(c.inverse_frequency.size());
  const std::vector<float> frequency = RopeInverseFrequencies(c.config, 2 * half);
  for (int64_t i = 0; i < half; ++i) {
    // Two roundings apart at most: the library's powf is not always the nearest float.
    EXPECT_NEAR(frequency[i], c.inverse_frequency[i], 2.5e-7 * c.inverse_frequency[i]) << c.name << " " << i;
  }
  RotaryEmbedding rotary(c.config, 2 * half, 8192);
  rotary.Reserve(4096);
  for (int64_t i = 0; i < half; ++i) {
    const double angle_error = 4095 * c.inverse_frequency[i] * 3.5e-7 + 2e-7;  // of the frequency, of the product, of the result
    EXPECT_NEAR(rotary.cos()[4095 * half + i], c.cos_4095[i], angle_error) << c.name << " " << i;
    EXPECT_NEAR(rotary.sin()[4095 * half + i], c.sin_4095[i], angle_error) << c.name << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(AllScalings, RotaryReference, testing::ValuesIn(kCases));

TEST(RotaryEmbedding, GrowsWithoutChangingWhatWasThere) {
  RotaryEmbedding rotary({.theta = 100.0}, 4, 3000);
  EXPECT_EQ(rotary.reserved(), 0);
  rotary.Reserve(5);
  EXPECT_EQ(rotary.reserved(), 1024);
  const std::vector<float> before = rotary.cos();
  rotary.Reserve(1025);
  EXPECT_EQ(rotary.reserved(), 2048);
  rotary.Reserve(2049);
  EXPECT_EQ(rotary.reserved(), 3000);  // never past the model's limit
  EXPECT_TRUE(std::equal(before.begin(), before.end(), rotary.cos().begin()));
  EXPECT_EQ(rotary.cos()[0], 1.0f);
  EXPECT_EQ(rotary.sin()[0], 0.0f);
  EXPECT_FLOAT_EQ(rotary.cos()[2 * 2999 + 1], static_cast<float>(std::cos(static_cast<double>(2999.0f * 0.1f))));
}

TEST(RotaryEmbedding, RotatesHalvesByThePosition) {
  ThreadPool pool(1);
  const ComputeContext context = MakeComputeContext(&pool, Isa::kScalar);
  RotaryEmbedding rotary({.theta = 100.0}, 4, 16);
  rotary.Reserve(16);
  // Two rows of two heads, 10 floats apart; the last two floats of a row belong to something else.
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, -1, -1, 1, 2, 3, 4, 5, 6, 7, 8, -1, -1};
  const std::vector<int32_t> positions = {3, 0};
  rotary.Run(context, x.data(), 10, 2, 2, 4, positions.data());
  const double c0 = std::cos(3.0), s0 = std::sin(3.0), c1 = std::cos(0.3), s1 = std::sin(0.3);
  const double expected[] = {1 * c0 - 3 * s0,
                             2 * c1 - 4 * s1,
                             3 * c0 + 1 * s0,
                             4 * c1 + 2 * s1,
                             5 * c0 - 7 * s0,
                             6 * c1 - 8 * s1,
                             7 * c0 + 5 * s0,
                             8 * c1 + 6 * s1,
                             -1,
                             -1,
                             1,
                             2,
                             3,
                             4,
                             5,
                             6,
                             7,
                             8,
                             -1,
                             -1};
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], expected[i], 1e-5) << i;
}

}  // namespace
}  // namespace pith
