// Strands: order within a name, several names at a time, nothing left behind.
#include "harness/cli/strands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <latch>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace ulpscope {
namespace {

TEST(Strands, JobsOfOneNameRunInTheOrderOfTheirPosts) {
  constexpr int kJobs = 200;
  std::mutex mutex;
  std::map<std::string, std::vector<int>> ran;
  Strands strands(3, 4);
  for (int i = 0; i < kJobs; ++i) {
    const std::string name = i % 3 == 0 ? "a" : "b";
    strands.Post(name, [&, name, i] {
      const std::lock_guard lock(mutex);
      ran[name].push_back(i);
    });
  }
  strands.Wait();
  EXPECT_EQ(ran["a"].size() + ran["b"].size(), static_cast<size_t>(kJobs));
  for (const auto& [name, order] : ran) EXPECT_TRUE(std::is_sorted(order.begin(), order.end())) << name;
}

/// Whoever forks before the first job forks a process of one thread: its child may allocate.
TEST(Strands, HasNoThreadBeforeItsFirstJob) {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const auto before = threads();
  Strands strands(3, 4);
  EXPECT_EQ(threads(), before);
  strands.Post("a", [] {});
  strands.Wait();
  EXPECT_EQ(threads(), before + 3);
}

TEST(Strands, OneNameIsNeverInTwoThreadsAndTwoNamesAre) {
  std::atomic<int> inside{0}, most{0};
  std::latch both(2);
  Strands strands(2, 64);
  for (int i = 0; i < 20; ++i) {
    strands.Post("alone", [&] {
      most = std::max(most.load(), ++inside);
      --inside;
    });
  }
  for (const char* name : {"x", "y"}) strands.Post(name, [&both] { both.arrive_and_wait(); });
  strands.Wait();
  EXPECT_EQ(most, 1);
}

TEST(Strands, WhatWaitsIsDoneBeforeTheEnd) {
  std::atomic<int> done{0};
  {
    Strands strands(1, 2);
    for (int i = 0; i < 10; ++i) strands.Post("name", [&done] { ++done; });
  }
  EXPECT_EQ(done, 10);
}

}  // namespace
}  // namespace ulpscope
