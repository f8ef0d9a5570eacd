"""neural: cells that hold numbers and react to their neighbourhood. A part of `grid`."""

from ._cell_network import FILTERS as FILTERS, CellNetwork as CellNetwork
from ._digits_ca import DigitsCA as DigitsCA
from ._flow_lenia import FlowLenia as FlowLenia
from ._growing_ca import GrowingCA as GrowingCA
from ._lenia import Lenia as Lenia
from ._neural_cells import NeuralCells as NeuralCells
from ._pool import SamplePool as SamplePool
