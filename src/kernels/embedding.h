// Small element-wise operators: conversion of f32 rows to bf16, embedding look-up. POD only: ISA folders include this header.
#pragma once

#include <cstdint>

namespace pith {

// out[r] = scale * table[token[r]], bf16 table.
struct EmbeddingParams {
  const uint16_t* table = nullptr;  // bf16 bits [vocab, dim]
  const int32_t* token = nullptr;   // [num_rows], checked to be in range
  float scale = 1.0f;
  float* out = nullptr;  // [num_rows, dim], rows out_stride floats apart
  int64_t out_stride = 0, num_rows = 0, dim = 0;
};

struct ConvertParams {  // f32 -> bf16, round to nearest even
  const float* in = nullptr;
  uint16_t* out = nullptr;
  int64_t count = 0;
};

}  // namespace pith
