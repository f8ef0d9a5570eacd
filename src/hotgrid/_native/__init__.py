"""_native: finding the C++ core. Imports only `errors`.

The core is optional. Packages that can do without it ask `available()`. Those that
cannot call `core()`, whose error says what is missing and how to get it.
`HOTGRID_NATIVE=off` switches it off, to compare with the plain Python paths.
"""

from ._find import available as available, core as core, missing as missing
