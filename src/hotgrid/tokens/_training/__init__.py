"""`train`: a vocabulary from texts."""

from ._train import train as train
