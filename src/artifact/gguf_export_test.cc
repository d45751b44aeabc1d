#include "artifact/gguf_export.h"

#include "artifact/gguf.h"
#include "artifact/stored_conversion.h"
#include "artifact/test_values.h"
#include "artifact/tiny_models.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::HasSubstr;

std::unique_ptr<ArtifactReader> Open(const std::string& path) {
  auto reader = ArtifactReader::Open(path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  return reader.ok() ? *std::move(reader) : nullptr;
}

std::unique_ptr<ArtifactReader> WriteAndOpen(const TinyGguf& tiny, const std::string& path) {
  WriteTestFile(path, tiny.Build());
  return Open(path);
}

absl::Status Export(const ArtifactReader& reader, const std::string& path, const std::string& mix, const ImportanceMatrix* importance = {},
                    bool requantize = false, int threads = 1) {
  GgufExportOptions options{.mix = mix, .requantize = requantize, .importance = importance};
  options.tokenizer = reader.tokenizer_files();
  ThreadPool pool(threads);
  return ExportGguf(reader, path, options, pool).status();
}

void ExpectSameModel(const ArtifactReader& a, const ArtifactReader& b) {
  ASSERT_EQ(a.WeightNames(), b.WeightNames());
  ASSERT_EQ(a.PlainTensorNames(), b.PlainTensorNames());
  for (const std::string& name : a.WeightNames()) EXPECT_EQ(WeightValues(a, name), WeightValues(b, name)) << name;
  for (const std::string& name : a.PlainTensorNames()) {
    const auto left = *a.ReadTensor(name), right = *b.ReadTensor(name);
    std::vector<float> x(static_cast<size_t>(left->dense->num_elements())), y(x.size());
    ASSERT_TRUE(ConvertToFloat(*left->dense, absl::MakeSpan(x)).ok() && ConvertToFloat(*right->dense, absl::MakeSpan(y)).ok());
    EXPECT_EQ(x, y) << name;
  }
}

// GGUF to a directory and back: names, row order, norms, config and vocabulary are what they were.
TEST(GgufExport, IsTheInverseOfReading) {
  for (const char* architecture : {"llama", "qwen2", "qwen3", "gemma3"}) {
    SCOPED_TRACE(architecture);
    const ScratchDirectory scratch;
    TinyGguf tiny;
    tiny.architecture = architecture;
    tiny.output = tiny.is("qwen2");
    const auto source = WriteAndOpen(tiny, scratch.File("in.gguf"));
    ASSERT_TRUE(ConvertToHuggingFace(*source, scratch.File("dense"), {}).ok());
    const auto dense = Open(scratch.File("dense"));
    GgufExportOptions options{.mix = "BF16"};
    options.tokenizer = source->tokenizer_files();
    ThreadPool pool(2);
    const auto report = ExportGguf(*dense, scratch.File("out.gguf"), options, pool);
    ASSERT_TRUE(report.ok()) << report.status();
    const auto out = Open(scratch.File("out.gguf"));
    ASSERT_NE(out, nullptr);
    ExpectSameModel(*source, *out);
    EXPECT_EQ(out->config(), source->config());
    EXPECT_EQ(out->generation_config(), source->generation_config());
    EXPECT_EQ(out->tokenizer_files().tokens, source->tokenizer_files().tokens);
    EXPECT_EQ(out->tokenizer_files().merges, source->tokenizer_files().merges);
    EXPECT_EQ(out->tokenizer_files().token_types, source->tokenizer_files().token_types);
    EXPECT_EQ(out->Tensors().size(), source->Tensors().size());
    EXPECT_EQ(report->output_bytes, static_cast<int64_t>(*FileSize(scratch.File("out.gguf"))));
  }
}

TEST(GgufExport, WritesRopeScaling) {
  const Json scalings[] = {{{"rope_type", "linear"}, {"factor", 4.0}},
                           {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 16}},
                           {{"rope_type", "llama3"},
                            {"factor", 8.0},
                            {"low_freq_factor", 1.0},
                            {"high_freq_factor", 4.0},
                            {"original_max_position_embeddings", 8192}}};
  for (const Json& scaling : scalings) {
    SCOPED_TRACE(DumpJson(scaling));
    const ScratchDirectory scratch;
    TinyGguf tiny;
    tiny.hidden = 32;
    tiny.head_dim = 8;
    const auto source = WriteAndOpen(tiny, scratch.File("in.gguf"));
    ASSERT_TRUE(ConvertToHuggingFace(*source, scratch.File("dense"), {}).ok());
    Json config = *ParseJson(ReadTestFile(scratch.File("dense/config.json")));
    config["rope_scaling"] = scaling;
    WriteTestFile(scratch.File("dense/config.json"), DumpJson(config));
    ASSERT_TRUE(Export(*Open(scratch.File("dense")), scratch.File("out.gguf"), "BF16").ok());
    EXPECT_EQ(Open(scratch.File("out.gguf"))->config()["rope_scaling"], scaling);
    config["rope_scaling"] = {{"rope_type", "longrope"}};
    WriteTestFile(scratch.File("dense/config.json"), DumpJson(config));
    EXPECT_EQ(Export(*Open(scratch.File("dense")), scratch.File("no.gguf"), "BF16").code(), absl::StatusCode::kUnimplemented);
  }
}

TinyGguf Wide() {
  TinyGguf tiny;
  tiny.hidden = 256;
  tiny.ffn = 512;
  tiny.head_dim = 64;
  return tiny;
}

// Types of layers, of the embedding, of the tensors a mix makes better; fallbacks; vectors stay F32.
TEST(GgufExport, MixesChooseTypes) {
  const ScratchDirectory scratch;
  const auto wide = WriteAndOpen(Wide(), scratch.File("wide.gguf"));
  TinyGguf narrow = Wide();
  narrow.hidden = 64;
  narrow.head_dim = 16;
  const auto short_rows = WriteAndOpen(narrow, scratch.File("narrow.gguf"));
  const auto types = [&](const ArtifactReader& reader, const std::string& mix) {
    const std::string path = scratch.File(mix + std::to_string(reader.WeightNames().size()) + BaseName(reader.path()));
    EXPECT_TRUE(Export(reader, path, mix).ok()) << Export(reader, path + "x", mix);
    const auto file = GgufFile::Open(path);
    std::string found;
    for (const char* name : {"token_embd", "blk.0.attn_q", "blk.0.attn_v", "blk.0.ffn_down", "blk.1.ffn_down", "blk.0.attn_norm"}) {
      absl::StrAppend(&found, file->Find(absl::StrCat(name, ".weight"))->type->name, " ");
    }
    absl::StrAppend(&found, *file->metadata().GetInt("general.file_type", 0, 99));
    return found;
  };
  EXPECT_EQ(types(*wide, "auto"), "BF16 BF16 BF16 BF16 BF16 F32 32");
  EXPECT_EQ(types(*wide, "Q8_0"), "Q8_0 Q8_0 Q8_0 Q8_0 Q8_0 F32 7");
  EXPECT_EQ(types(*wide, "Q4_0"), "Q6_K Q4_0 Q4_0 Q4_0 Q4_0 F32 2");
  EXPECT_EQ(types(*wide, "Q4_K_S"), "Q6_K Q4_K Q4_K Q4_K Q4_K F32 14");
  EXPECT_EQ(types(*wide, "Q4_K_M"), "Q6_K Q4_K Q4_K Q4_K Q6_K F32 15");  // of two layers the last is among the better ones
  EXPECT_EQ(types(*short_rows, "Q4_K_M"), "Q8_0 Q5_0 Q5_0 Q4_K Q6_K F32 15");
  EXPECT_EQ(types(*short_rows, "Q5_K_S"), "Q8_0 Q5_1 Q5_1 Q5_K Q5_K F32 16");
  EXPECT_EQ(FindGgufMix("Q2_K").status().code(), absl::StatusCode::kUnimplemented);
}

// Codes in groups of 32 with F16 scales: out of a GGUF file, through compressed-tensors, and back as the same blocks.
TEST(GgufExport, CodesStayAsTheyAre) {
  const ScratchDirectory scratch;
  const auto source = WriteAndOpen(Wide(), scratch.File("in.gguf"));
  for (const char* mix : {"Q8_0", "Q4_0"}) {
    SCOPED_TRACE(mix);
    const std::string first = scratch.File(absl::StrCat(mix, ".gguf")), stored = scratch.File(absl::StrCat(mix, "-stored")),
                      second = scratch.File(absl::StrCat(mix, "-back.gguf"));
    ASSERT_TRUE(Export(*source, first, mix).ok());
    const auto blocks = Open(first);
    const auto conversion = ConvertStored(*blocks, **FindStoredTarget("compressed-tensors"), stored, {});
    if (mix == std::string("Q4_0")) {  // its embedding is Q6_K
      EXPECT_EQ(conversion.status().code(), absl::StatusCode::kUnimplemented);
      continue;
    }
    ASSERT_TRUE(conversion.ok()) << conversion.status();
    ASSERT_TRUE(Export(*Open(stored), second, "auto").ok());
    const auto a = GgufFile::Open(first), b = GgufFile::Open(second);
    for (const GgufTensor& tensor : a->tensors()) {
      const GgufTensor* other = b->Find(tensor.name);
      ASSERT_NE(other, nullptr) << tensor.name;
      EXPECT_EQ(other->type->name, tensor.type->name);
      if (tensor.type->is_float()) continue;
      EXPECT_EQ(a->Bytes(tensor), b->Bytes(*other)) << tensor.name;
    }
    EXPECT_EQ(*b->metadata().GetInt("general.file_type", 0, 99), 7);
    // Another type would have to quantize again.
    const absl::Status again = Export(*Open(stored), scratch.File("again.gguf"), "Q4_0");
    EXPECT_EQ(again.code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(again.message(), HasSubstr("--requantize"));
    EXPECT_FALSE(FileExists(scratch.File("again.gguf")));
    EXPECT_TRUE(Export(*Open(stored), scratch.File("again.gguf"), "Q4_0", nullptr, true).ok());
  }
}

TEST(GgufExport, ImportanceAndThreads) {
  const ScratchDirectory scratch;
  const auto source = WriteAndOpen(Wide(), scratch.File("in.gguf"));
  ImportanceMatrix importance;
  std::vector<float> sums(256, 1.0f);
  for (size_t i = 0; i < sums.size(); i += 7) sums[i] = 50.0f;
  importance.entries["blk.0.attn_q.weight"] = {sums, 2.0f};
  ASSERT_TRUE(Export(*source, scratch.File("plain.gguf"), "Q4_K_S").ok());
  ASSERT_TRUE(Export(*source, scratch.File("weighted.gguf"), "Q4_K_S", &importance).ok());
  ASSERT_TRUE(Export(*source, scratch.File("two.gguf"), "Q4_K_S", &importance, false, 2).ok());
  EXPECT_EQ(ReadTestFile(scratch.File("weighted.gguf")), ReadTestFile(scratch.File("two.gguf")));
  const auto plain = GgufFile::Open(scratch.File("plain.gguf")), weighted = GgufFile::Open(scratch.File("weighted.gguf"));
  for (const GgufTensor& tensor : plain->tensors()) {
    const bool same = plain->Bytes(tensor) == weighted->Bytes(*weighted->Find(tensor.name));
    EXPECT_EQ(same, tensor.name != "blk.0.attn_q.weight") << tensor.name;
  }
  int collected = 0;
  GgufExportOptions collecting{.mix = "Q4_K_S", .tokenizer = source->tokenizer_files()};
  collecting.collect_importance = [&]() -> absl::StatusOr<ImportanceMatrix> {
    ++collected;
    return importance;
  };
  ThreadPool pool(1);
  ASSERT_TRUE(ExportGguf(*source, scratch.File("collected.gguf"), collecting, pool).ok());
  EXPECT_EQ(ReadTestFile(scratch.File("collected.gguf")), ReadTestFile(scratch.File("weighted.gguf")));
  EXPECT_EQ(ExportGguf(*source, scratch.File("collected.gguf"), collecting, pool).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(collected, 1);  // not for a file that cannot be written
  importance.entries["blk.0.attn_q.weight"].sum_squares.pop_back();
  EXPECT_THAT(Export(*source, scratch.File("bad.gguf"), "Q4_K_S", &importance).message(), HasSubstr("expected 256 columns, found 255"));
}

TEST(GgufExport, RefusesModelsThatGgufHasNoFormFor) {
  const ScratchDirectory scratch;
  TinyDirectory tiny;  // lacks most modules of a llama
  tiny.config.update({{"num_hidden_layers", 1},
                      {"intermediate_size", 12},
                      {"num_attention_heads", 4},
                      {"max_position_embeddings", 64},
                      {"rms_norm_eps", 1e-6}});
  tiny.Write(scratch.path());
  EXPECT_THAT(Export(*Open(scratch.path()), scratch.File("x.gguf"), "BF16").message(),
              HasSubstr("k_proj.weight: expected a weight of the architecture, found none"));
  tiny.config["model_type"] = "mamba";
  tiny.Write(scratch.path());
  EXPECT_EQ(Export(*Open(scratch.path()), scratch.File("x.gguf"), "BF16").code(), absl::StatusCode::kUnimplemented);
  WriteTestFile(scratch.File("there.gguf"), "x");
  const auto source = WriteAndOpen(TinyGguf(), scratch.File("in.gguf"));
  EXPECT_EQ(Export(*source, scratch.File("there.gguf"), "BF16").code(), absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace pith
