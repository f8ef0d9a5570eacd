// A test is a function that throws when something is wrong.
#pragma once

#include <stdexcept>
#include <string>

#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition))                                                                   \
            throw std::runtime_error(std::string(__FILE__ ":") + std::to_string(__LINE__) + \
                                     ": " #condition);                                      \
    } while (false)

struct Test {
    Test(const char* name, void (*run)());
};

#define TEST(name)                               \
    static void name();                          \
    static const Test registered_##name{#name, name}; \
    static void name()
