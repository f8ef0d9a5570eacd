"""Batches in construction: what other threads see, and interruptions."""

import os
import subprocess
import sys

import pytest

from hotgrid.tokens import get_encoding

# Lists of tokens that are not filled yet must not be found by `gc.get_objects`.
ONLOOKER = """
import gc, threading
from hotgrid.tokens import get_encoding

encoding, done = get_encoding(), False
texts = ["some words \\u00e9 " * 20] * 3001

def look():
    while not done:
        for each in gc.get_objects():
            if type(each) is list and len(each) == len(texts):
                each.count(None)

onlooker = threading.Thread(target=look)
onlooker.start()
made = [encoding.encode_ordinary_batch(texts, num_threads=n) for n in (1, 2) for _ in range(8)]
done = True
onlooker.join()
assert all(gc.is_tracked(each) and gc.is_tracked(each[0]) for each in made)
print(all(each == made[0] for each in made))
"""

# The first array imports numpy; the signal comes while it does.
INTERRUPTED = """
import builtins, signal, sys
from hotgrid.tokens import get_encoding

encoding, plain = get_encoding(), builtins.__import__
signal.signal(signal.SIGINT, signal.default_int_handler)  # where it is ignored, as by nohup
assert "numpy" not in sys.modules

def interrupting(name, *rest):
    if name.startswith("numpy."):
        signal.raise_signal(signal.SIGINT)
    return plain(name, *rest)

builtins.__import__ = interrupting
try:
    {call}
except KeyboardInterrupt:
    print("interrupted")
"""


def _output(program: str) -> str:
    made = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def test_a_batch_is_not_found_before_it_is_filled() -> None:
    assert _output(ONLOOKER) == "True"


@pytest.mark.parametrize(
    "call",
    ["encoding.encode_flat(['a'])", "encoding.encode_to_numpy('a')"],
    ids=["flat", "array"],
)
def test_an_interruption_of_the_first_array_stays_one(call: str) -> None:
    assert _output(INTERRUPTED.format(call=call)) == "interrupted"


@pytest.mark.parametrize(
    "method",
    ["encode", "encode_ordinary", "count", "split", "encode_with_offsets", "encode_to_numpy"],
)
def test_none_is_no_text(method: str) -> None:
    with pytest.raises(TypeError, match=r"^expected a text \(str\), got NoneType$"):
        getattr(get_encoding(), method)(None)


STILL_AT_WORK = """
import threading, time
from hotgrid import tokens
enc = tokens.get_encoding()
texts = ["hello world, foo bar. " * 5000] * 4
begun = threading.Semaphore(0)
def work(encode):
    while True:
        encode(texts)
        begun.release()
for encode in (enc.encode_flat, enc.encode_ordinary_batch):
    for _ in range(2):
        threading.Thread(target=work, args=(encode,), daemon=True).start()
for _ in range(8):
    begun.acquire()
print("leaving")
"""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_interpreter_can_end_while_threads_encode(threads):
    """A thread that is still at work then gets no lock any more, and must not abort all."""
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", STILL_AT_WORK],
            env={**os.environ, "HOTGRID_THREADS": threads},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "leaving\n", "")
