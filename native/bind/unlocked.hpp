// While native code works, other threads may have the interpreter's lock.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

// Calls functions of the interpreter that may ask for its lock, and throw nothing themselves.
// Up to Python 3.13 one that is shutting down ends whoever does so, by unwinding the stack, and
// where that meets a destructor the process is aborted. Later ones let such a thread wait for the
// end of the process, and so does this.
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
