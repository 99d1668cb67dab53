// What a program rounded on the way to a value, found from that value alone.
//
// A compiler fuses another program where its steps are observed: what the steps show is then not what was asked. All that is
// left is the value itself. A kernel keeps what it computes in wide registers and rounds what it stores, so that the
// unknown is which uses of which intermediates read a rounded number. Sets of them are tried, from those that compilers are known
// to leave (nothing; what a product reads and gives; everything), one use at a time, until the results follow bit by bit.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/judge/open_piece.h"
#include "harness/model/oracle.h"

namespace ulpscope {

/// `opened`: the program (harness/casefile/open.h); `value`: one that it gives; `observed`: what it was when nothing else was
/// observed. `on_the_way` of the answer names the intermediates in 16 bits: "rounded", "unrounded", or both where the results
/// follow either way; "split" and the steps that read it unrounded, where others read it rounded; and products in float32 or wider that are added: "contracted" where they are not rounded first. None where no set tried gives nearly all results, or the program as it is written gives as many.
std::optional<Classification> JudgeAsAsked(const Case& opened,
                                           const std::map<std::string, TensorData>& inputs,
                                           const std::string& value, const TensorData& observed,
                                           const OpenPiece& open, OracleCounts* counts);

/// "rounds nothing but n and d on the way", of Classification::on_the_way; `plural`: "round ...".
std::string DescribeOnTheWay(const std::map<std::string, std::vector<std::string>>& on_the_way, bool plural);

}  // namespace ulpscope
