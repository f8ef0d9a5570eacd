"""plan: documents that say how samples become columns."""

from ._documents import (
    build_document as build_document,
    check_document as check_document,
    document_fields as document_fields,
)
from ._draws import SampleDraws as SampleDraws
from ._operator import Operator as Operator, operator as operator, operators as operators
from ._order import Order as Order
from ._plan import Plan as Plan
from ._registry import Registry as Registry
from ._source import (
    Samples as Samples,
    Source as Source,
    source as source,
    sources as sources,
)
from ._step import Step as Step
from ._types import ColumnType as ColumnType
