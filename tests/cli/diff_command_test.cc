// ulpscope diff: from two folders to an exit code.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/program.h"

namespace ulpscope {
namespace {

constexpr const char* kDiffCase = R"(
cases:
  - name: wide
    tensors:
      x: {dtype: bfloat16, shape: [8, %], fill: normal}
      y: {dtype: bfloat16, shape: [%, 8], fill: normal}
    program:
      - {op: empty, shape: [8, 8], dtype: float32, as: buffer}
      - {op: matmul, of: [x, y], out: buffer, as: product}
    observe: [product]
)";

TEST(DiffCommand, ExitsAsTheWorstChange) {
  const testing::TestFolder folder;
  const auto write = [&](const std::string& k, const std::string& contract) {
    std::string text = kDiffCase;
    for (size_t at = text.find('%'); at != std::string::npos; at = text.find('%')) text.replace(at, 1, k);
    std::ofstream(folder.path() / "mine.yaml") << text << contract;
  };
  const auto run = [&](const std::string& arguments) {
    return testing::RunProgram(folder.path(), arguments);
  };
  const std::string backend =
      " -b 'emulated:model=in=as_is;prod=exact;acc=float32;mid=bfloat16;out=float32_rne'";
  write("16", "");
  ASSERT_EQ(run("run mine.yaml -o a" + backend).code, 0);
  write("16", "    contract: {status: documented, accept: {product: {dtype: float32, mid: [none]}}}\n");
  ASSERT_EQ(run("run mine.yaml -o b" + backend).code, 1);
  write("32", "");
  ASSERT_EQ(run("run mine.yaml -o c" + backend).code, 0);

  const auto same = run("diff a a");
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_EQ(same.out.find("nothing changed\n1 result compared"), 0u) << same.out;
  const auto worse = run("diff a b");
  EXPECT_EQ(worse.code, 1) << worse.out;
  EXPECT_EQ(worse.out.find("for the worse (1)\n  status      mine/wide  emulated:model="), 0u) << worse.out;
  const auto better = run("diff b a");
  EXPECT_EQ(better.code, 0) << better.out;
  EXPECT_EQ(better.out.find("for the better (1)\n"), 0u) << better.out;
  const auto rewritten = run("diff a c");
  EXPECT_EQ(rewritten.code, 5) << rewritten.out;
  EXPECT_NE(rewritten.err.find("no result in common"), std::string::npos) << rewritten.err;
  const auto missing = run("diff a nosuch");
  EXPECT_EQ(missing.code, 4);
  EXPECT_NE(missing.err.find("nosuch"), std::string::npos);
  EXPECT_EQ(run("diff a").code, 4);
}

}  // namespace
}  // namespace ulpscope
