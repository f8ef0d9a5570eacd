// Runs every native test except those whose name contains one of the arguments; prints a line
// each and the count.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string_view>
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

int main(int count, char** words) {
    int passed = 0, failed = 0;
    for (const auto& [name, run] : tests()) {
        const std::string_view whole = name;
        if (std::any_of(words + 1, words + count,
                        [&](const char* word) { return whole.find(word) != whole.npos; }))
            continue;
        try {
            run();
            ++passed;
            std::printf("ok      %s\n", name);
        } catch (const std::exception& problem) {
            ++failed;
            std::printf("failed  %s: %s\n", name, problem.what());
        }
    }
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed ? 1 : 0;
}
