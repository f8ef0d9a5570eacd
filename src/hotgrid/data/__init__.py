"""data: samples and documents from files, as batches that resume exactly.

A `Plan` is a document: a source, and operators that make columns from columns. `PlanBatches`
runs it on threads that write into batches. Sources (`ClassFolders`, `TarShards`, ...) and
operators (`DecodeRandomCrop`, `Tokenise`, ...) are registered by name; `@source` and
`@operator` add your own.

For text, `Shards` reads documents, `ShuffleBuffer` and `Packer` are the two steps between
documents and rows of equal length, and `PackedBatches` joins them.
"""

from ._batches import PackedBatches as PackedBatches
from ._counters import Counters as Counters
from ._executor import (
    CorruptSample as CorruptSample,
    PlanBatches as PlanBatches,
    PlanSpeed as PlanSpeed,
    cache_columns as cache_columns,
    plan_speed as plan_speed,
    ray_dataset as ray_dataset,
)
from ._operators import (
    Cast as Cast,
    CentreCrop as CentreCrop,
    DecodeCentreCrop as DecodeCentreCrop,
    DecodeImage as DecodeImage,
    DecodeRandomCrop as DecodeRandomCrop,
    LabelEncode as LabelEncode,
    Length as Length,
    Normalise as Normalise,
    Pad as Pad,
    RandomFlip as RandomFlip,
    RandomResizedCrop as RandomResizedCrop,
    Resize as Resize,
    Tokenise as Tokenise,
    set_encoder as set_encoder,
)
from ._packer import Packer as Packer
from ._plan import (
    ColumnType as ColumnType,
    Operator as Operator,
    Order as Order,
    Plan as Plan,
    Registry as Registry,
    SampleDraws as SampleDraws,
    Samples as Samples,
    Source as Source,
    Step as Step,
    build_document as build_document,
    check_document as check_document,
    document_fields as document_fields,
    operator as operator,
    operators as operators,
    source as source,
    sources as sources,
)
from ._shards import Document as Document, Position as Position, Shards as Shards
from ._shuffle import ShuffleBuffer as ShuffleBuffer
from ._sources import (
    ArrowFiles as ArrowFiles,
    CachedColumns as CachedColumns,
    ClassFolders as ClassFolders,
    Concatenated as Concatenated,
    HubFolder as HubFolder,
    IdxFiles as IdxFiles,
    JsonLines as JsonLines,
    Selected as Selected,
    Split as Split,
    TarShards as TarShards,
)
