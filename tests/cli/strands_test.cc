// Strands: order within a name, several names at a time, nothing left behind.
#include "harness/hybrid/strands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <latch>
#include <map>
#include <mutex>
#include <string>
#include <thread>
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
    strands.Post(name, 1, [&, name, i] {
      const std::lock_guard lock(mutex);
      ran[name].push_back(i);
    });
  }
  strands.Wait();
  EXPECT_EQ(ran["a"].size() + ran["b"].size(), static_cast<size_t>(kJobs));
  for (const auto& [name, order] : ran) EXPECT_TRUE(std::is_sorted(order.begin(), order.end())) << name;
}

/// A fork before the first job forks a process of one thread: its child may allocate.
TEST(Strands, HasNoThreadBeforeItsFirstJob) {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const auto before = threads();
  Strands strands(3, 4);
  EXPECT_EQ(threads(), before);
  strands.Post("a", 1, [] {});
  strands.Wait();
  EXPECT_EQ(threads(), before + 3);
}

TEST(Strands, OneNameIsNeverInTwoThreadsAndTwoNamesAre) {
  std::atomic<int> inside{0}, most{0};
  std::latch both(2);
  Strands strands(2, 64);
  for (int i = 0; i < 20; ++i) {
    strands.Post("alone", 1, [&] {
      most = std::max(most.load(), ++inside);
      --inside;
    });
  }
  for (const char* name : {"x", "y"}) strands.Post(name, 1, [&both] { both.arrive_and_wait(); });
  strands.Wait();
  EXPECT_EQ(most, 1);
}

/// Post waits for memory alone: not for jobs that hold little, and a job that holds too much waits for all
/// others.
TEST(Strands, PostWaitsForBytesNotForJobs) {
  std::latch begun(1), go(1);
  Strands strands(1, 100);
  strands.Post("first", 1000, [&] {
    begun.count_down();
    go.wait();
  });
  begun.wait();  // it runs, and does not wait any more
  std::atomic<int> done{0};
  for (int i = 0; i < 100; ++i) strands.Post("small", 1, [&done] { ++done; });
  EXPECT_LT(strands.waited().count(), 1);
  std::atomic<bool> posted{false};
  std::latch posting(1);
  std::thread large([&] {
    posting.count_down();
    strands.Post("large", 1000, [&done] { ++done; });
    posted = true;
  });
  posting.wait();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(posted) << "100 of 100 bytes wait";
  go.count_down();
  large.join();
  strands.Wait();
  EXPECT_EQ(done, 101);
  EXPECT_GT(strands.waited().count(), 0.001);
}

TEST(Strands, WhatWaitsIsDoneBeforeTheEnd) {
  std::atomic<int> done{0};
  {
    Strands strands(1, 2);
    for (int i = 0; i < 10; ++i) strands.Post("name", 1, [&done] { ++done; });
  }
  EXPECT_EQ(done, 10);
}

}  // namespace
}  // namespace ulpscope
