// Inputs: the elements of a tensor from its fill, the same bits on every compiler, machine and locale.
//
// Element i depends on (seed, tensor name, i) alone, through a counter-based generator (philox.h). Everything
// is integer arithmetic up to one last rounding of the exact value into the dtype (num/RoundTo, to nearest
// even): no libm, no std::*_distribution, no value that was a double in between. Numbers are text and are
// read exactly (number.h).
//
// A fill is a word, or a map of one word to its parameters; `values` takes the elements themselves.
//
//   fill                                        element i (u: uniform in [0, 1), 53 bits; exact before the rounding)
//   normal    {normal: {scale: 0.1, mean: 0}}   mean + scale * deviate; see "Normal deviates" in generate.cc
//   uniform   {uniform: {low: -1, high: 1}}     low + (high - low) * u
//   positive  {positive: {scale: 1}}            scale * (u + 2^-53): in (0, scale]
//   {integers: {low: -4, high: 4}}              uniform over the integers low..high
//   {wide_exponent: {low: -30, high: 30}}       +-m * 2^e, m in [1, 2) with all bits of the dtype random, e uniform in low..high
//   {lattice: {mul: 37, add: 5, mod: 127, sub: 63, div: 32}}     (((i*mul + add) mod mod) - sub) / div
//   {values: [1, 1/3, 0x1.8p0, bits:0x3f80]}    the elements, row-major: a flat list or nested as the shape
//   {full: {value: 3}}                          the value everywhere
//   arange    {arange: {start: 0, step: 1}}     start + step * i
//   zeros, ones
//   subnormals                                  +-m * quantum, m uniform in 1 .. 2^(p-1) - 1
//   ties      {ties: {format: bfloat16}}        half-way between two neighbours of a narrower format, in +-[2^-3, 2^4);
//                                               without parameters: the widest of float32, bfloat16 and the
//                                               two float8 formats that has a bit less than the dtype
//   {probe: {name: swamp, role: a}}             dot products of a probe (harness/model/probe.h), along one dimension: fill_data.h
//   {cross: {name: swamp, role: a, from: 0}}    dot products of every row of the one operand and column of the other
//                                               (harness/model/cross.h): fill_data.h
//   {record: {name: a100_bf16, tensor: a}}      rows of a record of hardware: fill_data.h
//   {file: {path: c.safetensors, tensor: x, sha256: ...}}  the tensor x of a file beside the case file: fill_data.h
// Defaults stand in the examples (integers, wide_exponent, lattice, full have none, but sub: 0 and div: 1).
// Integer dtypes and bool take integers, lattice (div 1), values, full, arange, zeros and ones, without any
// rounding.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "harness/base/result.h"
#include "harness/model/case.h"

namespace ulpscope {

/// The elements of `spec` for `seed`, in row-major order of its logical shape (a layout changes nothing).
/// Numbers inside spec.fill may be text, int64 or double.
Result<TensorData> GenerateTensor(const TensorSpec& spec, int64_t seed);

/// The bits of every tensor of `test_case`.
Result<std::map<std::string, TensorData>> MakeInputs(const Case& test_case, int64_t seed);

/// Whether GenerateTensor would succeed, without allocating or looking at elements of `values`. Errors carry
/// no place.
Result<void> CheckFill(const TensorSpec& spec);

/// Whether `text` can be an element of `dtype` (a number in range, a bit pattern of the right length).
Result<void> CheckElement(std::string_view text, DType dtype);

}  // namespace ulpscope
