"""The folder of a run: its lock and its record."""

from ._folder import RunFolder as RunFolder
