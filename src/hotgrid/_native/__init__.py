"""_native: the door to the C++ core. Ground floor; imports nothing of hotgrid.

The core is optional. Rooms that can do without it ask `available()`; rooms
that cannot call `core()`, which explains what is missing and how to get it.
`HOTGRID_NATIVE=off` keeps it shut, to compare with the plain Python paths.
"""

from ._door import available as available, core as core, missing as missing
