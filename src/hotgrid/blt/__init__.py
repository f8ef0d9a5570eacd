"""blt: models of bytes, and bytes cut into patches.

    model = load_ngram_table()
    patches = EntropyThreshold(model, size=4.5).patches(b"some bytes")

Layer: above `train` and `nn`. An `EntropyModel` predicts the next byte and how
uncertain it is; an `NgramTable` looks that up. Segmenters cut bytes where a patch begins.
A `LatentTransformer` reads and writes bytes, and does most of its work once per patch.
`ingest` converts files of any kind into a `Corpus` of byte patches.
A `Sidecar` stores what patches belong to. `place_corpus` puts them on shells around a
centre, and a `Sphere` finds those in a direction.
"""

from ._entropy._byte_model import ByteModel as ByteModel, EntropyStream as EntropyStream
from ._entropy._calibrate import calibrate_thresholds as calibrate_thresholds
from ._entropy._config import ENTROPY_SIZES as ENTROPY_SIZES, EntropyConfig as EntropyConfig
from ._entropy._files import (
    load_entropy_model as load_entropy_model,
    save_entropy_model as save_entropy_model,
)
from ._entropy._model import EntropyModel as EntropyModel
from ._entropy._ngram_counts import NgramCounts as NgramCounts
from ._entropy._ngram_table import (
    NgramTable as NgramTable,
    load_ngram_table as load_ngram_table,
)
from ._entropy._signals import PatchSignals as PatchSignals, Signals as Signals
from ._entropy._window import EntropyOutput as EntropyOutput
from ._ingest._corpus import Corpus as Corpus, IngestedDocument as IngestedDocument
from ._ingest._modalities._modality import Modality as Modality, View as View
from ._ingest._modalities._registry import MODALITIES as MODALITIES, modality_of as modality_of
from ._ingest._outputs._export import EXPORTS as EXPORTS, export_corpus as export_corpus
from ._ingest._run import (
    IngestSummary as IngestSummary,
    count_input as count_input,
    ingest as ingest,
)
from ._ingest._settings import IngestSettings as IngestSettings
from ._latent._config import LATENT_SIZES as LATENT_SIZES, LatentConfig as LatentConfig
from ._latent._files import load_latent_model as load_latent_model
from ._latent._model import LatentTransformer as LatentTransformer, patched as patched
from ._layers._ids import (
    byte_ids as byte_ids,
    documents_of as documents_of,
    ids_to_bytes as ids_to_bytes,
)
from ._segment._at_most import AtMost as AtMost
from ._segment._entropy import (
    EntropyBudget as EntropyBudget,
    EntropyJump as EntropyJump,
    EntropySegmenter as EntropySegmenter,
    EntropyThreshold as EntropyThreshold,
    EntropyThresholdAndJump as EntropyThresholdAndJump,
)
from ._segment._grammars import GRAMMARS as GRAMMARS, Grammar as Grammar
from ._segment._registry import SEGMENTERS as SEGMENTERS, segmenter as segmenter
from ._segment._router import Routed as Routed, Router as Router
from ._segment._segmenter import (
    CausalSegmenter as CausalSegmenter,
    Segmenter as Segmenter,
    SegmentStream as SegmentStream,
    patch_lengths as patch_lengths,
)
from ._segment._space import Space as Space
from ._segment._static import Static as Static
from ._segment._syntax import SYNTAXES as SYNTAXES, Syntax as Syntax
from ._segment._tokens import Tokens as Tokens
from ._sidecar._blt_burn import import_blt_burn as import_blt_burn
from ._sidecar._graph import Branch as Branch, Leaf as Leaf, Trunk as Trunk
from ._sidecar._sidecar import Sidecar as Sidecar
from ._sphere._corpus_places import (
    PlaceSummary as PlaceSummary,
    place_corpus as place_corpus,
)
from ._sphere._directions import ngram_features as ngram_features
from ._sphere._harmonics import (
    angular_density as angular_density,
    spherical_harmonics as spherical_harmonics,
)
from ._sphere._index import SphereIndex as SphereIndex, angles_between as angles_between
from ._sphere._place import (
    Placement as Placement,
    log_weights as log_weights,
    place as place,
    relax as relax,
)
from ._sphere._sphere import (
    PlacedLeaf as PlacedLeaf,
    Sphere as Sphere,
)
from ._sphere._zones import (
    ZONES as ZONES,
    into_zone as into_zone,
    zone_of as zone_of,
    zone_rule as zone_rule,
)
