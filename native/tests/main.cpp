// Runs every native test; prints a line each and the count.

#include <cstdio>
#include <exception>
#include <utility>
#include <vector>

#include "check.hpp"

namespace {

std::vector<std::pair<const char*, void (*)()>>& tests() {
    static std::vector<std::pair<const char*, void (*)()>> all;
    return all;
}

}  // namespace

Test::Test(const char* name, void (*run)()) { tests().emplace_back(name, run); }

int main() {
    int failed = 0;
    for (const auto& [name, run] : tests()) {
        try {
            run();
            std::printf("ok      %s\n", name);
        } catch (const std::exception& problem) {
            ++failed;
            std::printf("failed  %s: %s\n", name, problem.what());
        }
    }
    std::printf("%zu passed, %d failed\n", tests().size() - std::size_t(failed), failed);
    return failed ? 1 : 0;
}
