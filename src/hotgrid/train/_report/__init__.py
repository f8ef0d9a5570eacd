"""Showing a run: in the terminal, as events, as a page."""

from ._compare import compare_runs as compare_runs
from ._dashboard import Dashboard as Dashboard, charts as charts
from ._events import (
    EVENTS as EVENTS,
    EventLog as EventLog,
    curves as curves,
    read_events as read_events,
)
from ._page import REPORT as REPORT, write_report as write_report
from ._plot import COLOURS as COLOURS, short as short, text_plot as text_plot
from ._run import RunSummary as RunSummary, read_run as read_run
