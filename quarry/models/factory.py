"""Makes the models that the settings name. Heavy libraries load here and not before."""

from __future__ import annotations

from collections.abc import Callable

from quarry.errors import ConfigError
from quarry.models.fakes import FakeEmbedder, FakeGenerator, FakeReranker
from quarry.ports import Embedder, Entailment, Generator, Reranker
from quarry.settings import EmbedderSettings, GeneratorSettings, RerankerSettings
from quarry.settings_answers import EntailmentSettings

FAKE = "fake"


def load_embedder(settings: EmbedderSettings) -> Embedder:
    """Raises ConfigError for settings that name no model, ModelError if it cannot be loaded."""
    if settings.model == FAKE:
        return FakeEmbedder(max_tokens=settings.max_tokens or 256)
    from quarry.models.sentence_transformer import SentenceTransformerEmbedder

    return SentenceTransformerEmbedder(settings)


def load_reranker(settings: RerankerSettings, embedder: Embedder | None) -> Reranker | None:
    """None for kind `none`; only late interaction needs the embedder.

    Raises ConfigError or ModelError as `load_embedder` does.
    """
    if settings.kind == "none":
        return None
    if settings.kind == FAKE:
        return FakeReranker()
    if settings.kind == "cross_encoder":
        from quarry.models.cross_encoder import CrossEncoderReranker

        return CrossEncoderReranker(settings)
    from quarry.models.late_interaction import LateInteractionReranker, has_token_vectors

    if not has_token_vectors(embedder):
        raise ConfigError("This embedder has no token vectors; set reranker.kind to none.")
    return LateInteractionReranker(embedder, cache_mb=settings.cache_mb)


def load_entailment(settings: EntailmentSettings) -> Entailment | None:
    """None if no model is set. Raises ConfigError or ModelError as `load_embedder` does."""
    if not settings.model:
        return None
    from quarry.models.entailment import CrossEncoderEntailment

    return CrossEncoderEntailment(settings)


def load_generator(
    settings: GeneratorSettings,
    embedder: Embedder | None = None,
    *,
    pace: Callable[[int], float] | None = None,
) -> Generator:
    """`pace`: seconds between the pieces of an engine in this process, by the answers in flight.

    Raises ConfigError for settings that the kind refuses, MissingExtra, ModelError.
    """
    if settings.kind == FAKE:
        return FakeGenerator()
    if settings.kind == "openai":
        from quarry.models.openai import OpenAIGenerator

        return OpenAIGenerator(settings)
    if settings.kind == "vllm":
        from quarry.models.vllm import VllmGenerator

        return VllmGenerator(settings, pace=pace)
    from quarry.models.extractive import ExtractiveGenerator

    return ExtractiveGenerator(embedder)
