// Prepacking into the layouts of gemm_layout.h, and what those layouts can hold. Compiled for the baseline CPU and shared by the GEMM
// rows of every vector ISA, and by the integer rows of scalar (I8, I4). Thread-safe: calls with disjoint panel ranges write disjoint bytes.
// POD only: ISA folders include this header.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/gemm_layout.h"
#include "kernels/gemm.h"

namespace pith {

// nullptr, or why the layout cannot hold the problem.
const char* CanPrepackDense(const GemmProblem& problem);
const char* CanPrepackW8(const GemmProblem& problem);  // 5..8 bits, even group size
const char* CanPrepackW4(const GemmProblem& problem);  // 2..4 bits, even group size
const char* CanPrepackF8(const GemmProblem& problem);  // 8 bits, even group size, no offsets
// Integer activations: groups of whole units, one group a multiple of the other, and steps short enough that int32 sums are exact.
const char* CanPrepackI8(const GemmProblem& problem);  // 5..8 bits
const char* CanPrepackI4(const GemmProblem& problem);  // 2..4 bits

size_t DensePrepackBytes(const GemmProblem& problem);
size_t W8PrepackBytes(const GemmProblem& problem);
size_t W4PrepackBytes(const GemmProblem& problem);
size_t F8PrepackBytes(const GemmProblem& problem);
size_t I8PrepackBytes(const GemmProblem& problem);
size_t I4PrepackBytes(const GemmProblem& problem);

void PrepackDense(const GemmPrepackParams& params);
void PrepackW8(const GemmPrepackParams& params);
void PrepackW4(const GemmPrepackParams& params);
void PrepackF8(const GemmPrepackParams& params);
void PrepackI8(const GemmPrepackParams& params);
void PrepackI4(const GemmPrepackParams& params);

// Element [g][column] of the scales or mins of a panel.
float ReadScale(const PanelLayout& layout, const uint8_t* scales, int64_t g, int64_t column);

// GemmKernelEntry::read_row.
void ReadDenseRow(const GemmProblem& problem, const uint8_t* weight, int64_t n, float* out);
void ReadW8Row(const GemmProblem& problem, const uint8_t* weight, int64_t n, float* out);
void ReadW4Row(const GemmProblem& problem, const uint8_t* weight, int64_t n, float* out);
void ReadF8Row(const GemmProblem& problem, const uint8_t* weight, int64_t n, float* out);
void ReadI8Row(const GemmProblem& problem, const uint8_t* weight, int64_t n, float* out);
void ReadI4Row(const GemmProblem& problem, const uint8_t* weight, int64_t n, float* out);

}  // namespace pith
