// Releases the GIL while native code works.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

// Calls functions of the interpreter that may take its lock, and throw nothing themselves. Up to
// Python 3.13 an interpreter that is shutting down ends such a thread by unwinding its stack, which
// aborts the process at a destructor. Later versions let the thread wait for the end of the
// process, and so does this.
template <class Call>
auto to_the_end(const Call& call) noexcept {
    try {
        return call();
    } catch (...) {
        for (;;) pause();
    }
}

class Unlocked {
public:
    Unlocked() : state_(PyEval_SaveThread()) {}
    ~Unlocked() {
        to_the_end([this] { PyEval_RestoreThread(state_); });
    }
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

private:
    PyThreadState* state_;
};
