"""Networks: backbones, pooling, the pooler, and the encoder that joins them."""

from repro.models.encoder import SentenceEncoder
from repro.models.pooling import Pooler
