#!/usr/bin/env python3
# Writes the table of normal deviates (normal_table.cc) that generate.cc interpolates. Needs nothing but Python 3.8.
#
# Entry z * 64 + i is the point x with P(|N(0,1)| > x) = t, t = 2^-(z+1) * (1 + i/64), in units of 2^-28, rounded to nearest:
# 32 octaves of the tail probability, 64 points each. x falls as t grows; t = 1 (x = 0) is the point after the first octave.
# Run: python3 harness/casefile/make_normal_table.py > harness/casefile/normal_table.cc
from statistics import NormalDist

OCTAVES, POINTS, FRACTION_BITS = 32, 64, 28

entries = []
for z in range(OCTAVES):
    for i in range(POINTS):
        t = 2.0 ** -(z + 1) * (1 + i / POINTS)
        entries.append(round(-NormalDist().inv_cdf(t / 2) * 2**FRACTION_BITS))

print("// Table of normal deviates; written by make_normal_table.py, which says what an entry is.")
print('#include "harness/casefile/normal_table.h"\n')
print("namespace ulpscope {\n")
print("// clang-format off")
print("const std::array<uint32_t, kNormalOctaves * kNormalPoints> kNormalTable{")
for row in range(0, len(entries), 9):
    print("    " + ", ".join(f"{e}u" for e in entries[row:row + 9]) + ",")
print("};\n// clang-format on\n")
print("}  // namespace ulpscope")
