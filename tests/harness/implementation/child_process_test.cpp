#include "harness/implementation/child_process.hpp"

#include "harness/base/interrupt.hpp"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kda::harness {
namespace {

ChildEnd shell(const std::string& command, double seconds = 30) {
  return run_child({"/bin/sh", "-c", command}, seconds);
}

TEST(RunChild, SaysHowItEnded) {
  const ChildEnd good = shell("echo out; echo err >&2");
  EXPECT_EQ(good.kind, ChildEnd::Kind::kExited);
  EXPECT_EQ(good.value, 0);
  EXPECT_EQ(good.output, "out\nerr\n");
  EXPECT_EQ(shell("exit 7").value, 7);
  EXPECT_EQ(to_string(shell("exit 7"), 1), "exit status 7");
  const ChildEnd killed = shell("kill -SEGV $$");
  EXPECT_EQ(killed.kind, ChildEnd::Kind::kSignalled);
  EXPECT_EQ(to_string(killed, 1), "signal SIGSEGV");
  EXPECT_EQ(run_child({"/no/such/program"}, 5).value, 127);
}

TEST(RunChild, KeepsTheEndOfALongOutputAndReadsNothing) {
  const ChildEnd end = shell("cat; yes long | head -n 100000; echo last");
  EXPECT_EQ(end.value, 0);
  EXPECT_EQ(end.output.size(), 4000U);
  EXPECT_TRUE(end.output.ends_with("long\nlast\n"));
}

TEST(RunChild, KillsTheWholeGroupAtTheDeadline) {
  const std::string file = ::testing::TempDir() + "/child_" + std::to_string(getpid());
  const auto begin = std::chrono::steady_clock::now();
  const ChildEnd end = shell("(sleep 1.5; touch " + file + ") & sleep 1000", 0.3);
  EXPECT_EQ(end.kind, ChildEnd::Kind::kTimedOut);
  EXPECT_EQ(to_string(end, 0.3), "no answer within 0.3 s");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  std::this_thread::sleep_for(std::chrono::seconds(2));
  EXPECT_FALSE(std::filesystem::exists(file)) << "a grandchild lived on";
}

/// Processes whose command line holds `mark`.
int running(const std::string& mark) {
  int count = 0;
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(process.path() / "cmdline", std::ios::binary);
    const std::string line{std::istreambuf_iterator<char>(file), {}};
    if (line.find(mark) != std::string::npos) ++count;
  }
  return count;
}

/// A number of seconds to sleep that nobody else sleeps.
std::string unique_seconds(int n) {
  return std::to_string(100000 + n) + "." + std::to_string(getpid());
}

TEST(RunChild, KillsWhatWentIntoASessionOfItsOwn) {
  const std::string mark = unique_seconds(1);
  const std::string daemon = "setsid setsid sleep " + mark + " & (setsid sh -c 'sleep " + mark +
                             " & sleep " + mark + "' &) ; ";
  const ChildEnd late = shell(daemon + "sleep 1000", 0.5);
  EXPECT_EQ(late.kind, ChildEnd::Kind::kTimedOut);
  EXPECT_EQ(running(mark), 0);
  EXPECT_EQ(shell(daemon + "sleep 0.3; exit 4").value, 4) << "left behind by one that ends";
  EXPECT_EQ(running(mark), 0);
}

TEST(RunChild, ASupervisorThatIsKilledTakesTheProgramWithIt) {
  const std::string mark = unique_seconds(2);
  const ChildEnd end = shell("kill -KILL $PPID; exec sleep " + mark);
  EXPECT_EQ(to_string(end, 1), "signal SIGKILL");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(running(mark), 0);
}

TEST(RunChild, NothingIsLeftWhenTheParentIsKilled) {
  const std::string mark = unique_seconds(3);
  const pid_t parent = fork();
  if (parent == 0) {
    (void)shell("setsid sleep " + mark + " & sleep " + mark);
    _exit(0);
  }
  while (running(mark) < 3) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  for (int i = 0; i < 500 && running(mark) > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(running(mark), 0);
}

TEST(RunChild, DoesNotWaitForWhatTheChildLeavesBehind) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(shell("sleep 1000 & exit 3").value, 3);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(RunChild, AnInterruptEndsIt) {
  const InterruptGuard guard;
  std::jthread later([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    kill(getpid(), SIGINT);
  });
  EXPECT_THROW((void)shell("sleep 1000", 100), Interrupted);
  EXPECT_TRUE(interrupted());
}

TEST(RunChild, ManyAtOnce) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([i] {
      for (int repeat = 0; repeat < 5; ++repeat)
        EXPECT_EQ(shell("exit " + std::to_string(i)).value, i);
    });
  }
}

}  // namespace
}  // namespace kda::harness
