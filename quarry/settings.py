"""Settings: one YAML file plus QUARRY_* environment variables; an unknown key is an error.

`QUARRY_SERVE__PORT=9000` sets `serve.port`. `quarry init` writes the file with every key explained
(`quarry/cli/templates.py`), and `docs/configuration.md` is made from the descriptions below
(`make docs`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import (
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from quarry.errors import ConfigError
from quarry.ids import slug
from quarry.settings_answers import AnswerSettings
from quarry.settings_file import (
    Section,
    drop_empty_sections,
    explain,
    model_anchored,
    overlay,
    read_yaml,
)
from quarry.settings_retrieval import RetrievalSettings, anchored
from quarry.settings_stores import StoreSettings, stores_anchored

S = TypeVar("S", bound=Section)

CONFIG_NAME = "quarry.yaml"
ENV_PREFIX = "QUARRY_"
NOT_SETTINGS = frozenset({"QUARRY_CONFIG", "QUARRY_CI"})
"""Environment names with the prefix that are read elsewhere: by the CLI and by the tests."""

OWN_FIELDS = frozenset(
    "messages prompt model stream n max_tokens max_completion_tokens tools functions".split()
)
"""Fields of a request to an OpenAI-compatible endpoint that `generator.extra_body` may not set."""

CLUSTER_DEFAULTS: Mapping[str, Any] = {
    "stores": {"text": "elasticsearch", "milvus": {"uri": "http://127.0.0.1:19530"}},
    "telemetry": {"log_format": "json"},
}
"""What `profile: cluster` sets in place of the embedded defaults; a value that is given wins."""


class SourceSettings(Section):
    default_acl: tuple[str, ...] | None = Field(
        None, description="Who may read documents without an ACL of their own; unset: nobody."
    )
    tenant: str = Field("default", min_length=1, description="Tenant of the source's documents.")

    @field_validator("default_acl")
    @classmethod
    def _scopes_have_names(cls, scopes: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if scopes is not None and not all(scope.strip() for scope in scopes):
            raise ValueError("a scope is public, a group's name, or user:NAME, and never empty")
        if scopes is not None and any(scope.strip().endswith(":") for scope in scopes):
            raise ValueError("a scope needs a name after its colon, such as user:ada")
        return scopes


class EmbedderSettings(Section):
    model: str = Field(
        "packaged:all-MiniLM-L6-v2",
        description="Hub id, local path, `packaged:all-MiniLM-L6-v2`, or `fake` for tests.",
    )
    device: str = Field("auto", description="auto, cpu, cuda, mps.")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="auto: the lowest precision that passes the quality check at start."
    )
    question_prompt: str | None = Field(None, description="Unset: known for the model by name.")
    document_prompt: str | None = Field(None, description="Unset: known for the model by name.")
    max_tokens: int | None = Field(None, ge=16, description="Unset: the model's own limit.")
    batch_tokens: int = Field(8192, ge=128, description="Padded tokens of one forward pass.")
    gpus: float = Field(0.0, ge=0, le=1, description="Share of a GPU that serving it reserves.")

    @model_validator(mode="after")
    def _reserves_what_it_uses(self) -> Self:
        if self.gpus and self.device in ("cpu", "mps"):
            raise ValueError(f"gpus must be 0 with device {self.device}")
        return self


class ChunkingSettings(Section):
    max_tokens: int = Field(
        250, ge=32, description="Longest chunk in the embedder's tokens, header included."
    )
    min_tokens: int = Field(32, ge=0, description="Shorter sections are joined with the next one.")

    @model_validator(mode="after")
    def _min_is_below_max(self) -> Self:
        if self.min_tokens >= self.max_tokens:
            raise ValueError("min_tokens must be less than max_tokens")
        return self


class RerankerSettings(Section):
    kind: Literal["none", "late_interaction", "cross_encoder", "fake"] = Field(
        "late_interaction", description="late_interaction needs no further model."
    )
    model: str = Field("", description="Hub id or path of the cross-encoder.")
    depth: int = Field(50, ge=1, le=200, description="Candidates that are reranked.")
    cache_mb: int = Field(
        256,
        ge=0,
        le=1 << 20,
        description="MiB of passage vectors that late_interaction keeps, so that passages which "
        "come again need no encoding; 0: none.",
    )
    gpus: float = Field(0.0, ge=0, le=1, description="Share of a GPU that serving it reserves.")

    @model_validator(mode="after")
    def _names_what_it_loads(self) -> Self:
        if self.kind == "cross_encoder" and not self.model:
            raise ValueError("kind cross_encoder needs model, a hub id or a path")
        return self


class VllmSettings(Section):
    device: Literal["cuda", "cpu"] = Field(
        "cuda", description="cuda reserves tensor_parallel_size GPUs, cpu none."
    )
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="Precision; auto: as the model's configuration says."
    )
    tensor_parallel_size: int = Field(
        1, ge=1, description="GPUs of one node that share the model's layers."
    )
    gpu_memory_utilization: float = Field(
        0.9, gt=0, le=1, description="Share of each GPU's memory to use; on cpu, of the RAM."
    )
    kv_cache_gib: float | None = Field(
        None, gt=0, description="GiB of the KV cache; unset: what gpu_memory_utilization leaves."
    )
    enable_prefix_caching: bool = Field(
        True, description="Compute beginnings that prompts share, such as the rules, once."
    )
    quantization: str = Field(
        "", description="Method, such as awq, gptq or fp8; empty: as the model's files say."
    )
    lora: str = Field("", description="Folder of a LoRA adapter that is put on the model.")
    enforce_eager: bool = Field(
        False, description="No compiling and no CUDA graphs: starts sooner, writes slower."
    )
    guided_citations: bool = Field(
        False, description="Let no sentence end without a citation; for small models."
    )


class GeneratorSettings(Section):
    kind: Literal["extractive", "openai", "vllm", "fake"] = Field(
        "extractive", description="extractive quotes sentences and needs no model."
    )
    model: str = Field("", description="Model name for openai, hub id or path for vllm.")
    base_url: str = Field("", description="Address of an OpenAI-compatible endpoint.")
    api_key: SecretStr | None = Field(None, description="Its key; better given by environment.")
    max_tokens: int = Field(512, ge=16, description="Longest answer in the generator's tokens.")
    context_tokens: int = Field(4096, ge=512, description="Context window of the generator.")
    timeout_s: float = Field(60.0, gt=0, description="Seconds for one generation.")
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = Field(
        "max_tokens",
        description="Field of a request to openai that carries max_tokens; hosted models that "
        "reason ask for the second.",
    )
    extra_body: dict[str, Any] = Field(
        default_factory=dict,
        description="More fields of a request to openai, such as "
        "{chat_template_kwargs: {enable_thinking: false}}.",
    )
    vllm: VllmSettings = VllmSettings()

    @model_validator(mode="after")
    def _names_what_it_calls(self) -> Self:
        if self.kind in ("openai", "vllm") and not self.model:
            raise ValueError(f"kind {self.kind} needs model")
        if self.kind == "openai" and not self.base_url.startswith(("http://", "https://")):
            raise ValueError("kind openai needs base_url, such as http://127.0.0.1:8001/v1")
        if self.extra_body and self.kind != "openai":
            raise ValueError("extra_body is sent by kind openai alone; take it out")
        if taken := OWN_FIELDS.intersection(self.extra_body):
            raise ValueError(f"extra_body must not set {min(taken)}, which Quarry sets itself")
        if self.max_tokens >= self.context_tokens:
            raise ValueError("max_tokens must be less than context_tokens")
        return self


class JudgeSettings(Section):
    model: str = Field("", description="Model that judges answers with --judge; empty: none.")
    base_url: str = Field("", description="Address of its OpenAI-compatible endpoint.")
    api_key: SecretStr | None = Field(None, description="Its key; better given by environment.")
    timeout_s: float = Field(60.0, gt=0, description="Seconds for one judgement.")

    @model_validator(mode="after")
    def _names_what_it_calls(self) -> Self:
        if self.model and not self.base_url.startswith(("http://", "https://")):
            raise ValueError("a judge needs base_url, such as http://127.0.0.1:8001/v1")
        return self


class IngestSettings(Section):
    max_bytes: int = Field(100_000_000, ge=1, description="Larger files end as too_large.")
    parse_timeout_s: float = Field(120.0, gt=0, description="Longer parses end as timed_out.")
    parse_memory_mb: int = Field(2048, ge=256, description="A parser's memory limit.")
    ocr: bool = Field(True, description="Read scanned pages; else they end as needs_ocr.")
    parse_workers: int = Field(0, ge=0, description="Parser processes; 0: one a core.")
    embed_workers: int = Field(1, ge=1, description="Embedding actors.")
    write_workers: int = Field(1, ge=1, description="Writing actors; Milvus Lite takes one.")
    mass_delete_share: float = Field(
        0.2, ge=0, le=1, description="A listing that shrinks by more than this share is not swept."
    )
    mass_delete_documents: int = Field(
        10, ge=0, description="… and by more than this many documents."
    )


class ServeSettings(Section):
    host: str = Field("127.0.0.1", description="Address to listen on; loopback unless told.")
    port: int = Field(8000, ge=0, le=65535, description="0: a free one.")
    max_in_flight: int = Field(64, ge=1, description="Requests beyond this get 429.")
    deadline_s: float = Field(30.0, gt=0, description="Seconds that a request may take.")
    store_s: float = Field(
        5.0, gt=0, description="Seconds for one store call of a question, retries included."
    )


class AccessSettings(Section):
    users_file: Path | None = Field(
        None, description="YAML file of users: groups and token hashes; relative to this file."
    )


class TelemetrySettings(Section):
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least.")
    log_format: Literal["text", "json"] = Field("text", description="json for collectors.")


class Settings(Section):
    """Everything that can be set. Frozen, and safe to send to workers."""

    profile: Literal["embedded", "cluster"] = Field("embedded", description="Which defaults apply.")
    data_dir: Path = Field(Path(".quarry"), description="All state; relative to this file.")
    sources: dict[str, SourceSettings] = Field(
        default_factory=dict,
        description="Per source, by name or folder; `default` holds for the others.",
    )
    stores: StoreSettings = StoreSettings()
    embedder: EmbedderSettings = EmbedderSettings()
    chunking: ChunkingSettings = ChunkingSettings()
    reranker: RerankerSettings = RerankerSettings()
    generator: GeneratorSettings = GeneratorSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    answers: AnswerSettings = AnswerSettings()
    ingest: IngestSettings = IngestSettings()
    serve: ServeSettings = ServeSettings()
    access: AccessSettings = AccessSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    judge: JudgeSettings = JudgeSettings()

    @model_validator(mode="before")
    @classmethod
    def _profile_underlies(cls, given: Any) -> Any:
        if isinstance(given, Mapping) and given.get("profile") == "cluster":
            return _underlay(given, CLUSTER_DEFAULTS)
        return given

    @field_validator("sources")
    @classmethod
    def _named_as_ingested(cls, sources: dict[str, SourceSettings]) -> dict[str, SourceSettings]:
        """By slug, as ingest names sources: a key in capitals would else hold for none."""
        spelt: dict[str, str] = {}
        for key in sources:
            name = slug(key)
            if not name:
                raise ValueError(f"'{key}' has no letter or digit; write the name of a source")
            if name in spelt:
                raise ValueError(
                    f"'{spelt[name]}' and '{key}' both name the source {name}; keep one of them"
                )
            spelt[name] = key
        return {name: sources[key] for name, key in spelt.items()}

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Self:
        lite = self.stores.vectors == "milvus" and not self.stores.milvus.uri
        if lite and self.ingest.write_workers > 1:
            raise ValueError(
                "ingest.write_workers must be 1 with Milvus Lite, else set stores.milvus.uri"
            )
        limit = self.embedder.max_tokens
        if limit is not None and self.chunking.max_tokens > limit:
            raise ValueError("chunking.max_tokens must not exceed embedder.max_tokens")
        if self.retrieval.rewrite.writes and self.generator.kind == "extractive":
            raise ValueError(
                "retrieval.rewrite.follow_up, hyde and multi_query need a generator that writes; "
                "set generator.kind to openai or vllm"
            )
        if self.retrieval.select.threshold is not None and self.reranker.kind == "none":
            raise ValueError("retrieval.select.threshold needs a reranker; set reranker.kind")
        return self

    def source(self, name: str) -> SourceSettings:
        """Settings of a source by its slug; those of `default` if it has none of its own."""
        return self.sources.get(name) or self.sources.get("default") or SourceSettings()


def find_config(explicit: Path | None, environ: Mapping[str, str], cwd: Path) -> Path:
    """The settings file: `--config`, else QUARRY_CONFIG, else quarry.yaml in the working directory.

    Raises ConfigError if there is none.
    """
    named = explicit or (Path(environ["QUARRY_CONFIG"]) if environ.get("QUARRY_CONFIG") else None)
    path = cwd / (named or CONFIG_NAME)
    if not path.is_file():
        hint = "check the path" if named else "run 'quarry init' or pass --config"
        raise ConfigError(f"There is no settings file at {path}; {hint}.")
    return path.resolve()


def load_settings(path: Path, environ: Mapping[str, str] | None = None) -> Settings:
    """Reads and checks one settings file; paths in it are made absolute against its folder.

    Raises ConfigError naming the key and what is wrong with it.
    """
    raw = read_yaml(path)
    drop_empty_sections(Settings, raw)
    overlay(
        raw,
        os.environ if environ is None else environ,
        Settings,
        prefix=ENV_PREFIX,
        ignored=NOT_SETTINGS,
    )
    try:
        settings = Settings.model_validate(raw)
    except ValidationError as error:
        raise explain(error, str(path), Settings) from None
    return _anchored(settings, path.resolve().parent)


def _anchored(settings: Settings, base: Path) -> Settings:
    """Its paths made absolute against the folder of the settings file."""
    users = settings.access.users_file
    access = _with(settings.access, users_file=base / users.expanduser() if users else None)
    generator = settings.generator
    if generator.kind == "vllm":  # for other kinds it is a name, and never a path
        lora = generator.vllm.lora and str(base / Path(generator.vllm.lora).expanduser())
        vllm = _with(generator.vllm, lora=lora)
        generator = _with(generator, model=model_anchored(generator.model, base), vllm=vllm)
    entailment = settings.answers.entailment
    entailment = _with(entailment, model=model_anchored(entailment.model, base))
    return _with(
        settings,
        data_dir=base / settings.data_dir.expanduser(),
        access=access,
        stores=stores_anchored(settings.stores, base),
        retrieval=anchored(settings.retrieval, base),
        embedder=_with(settings.embedder, model=model_anchored(settings.embedder.model, base)),
        reranker=_with(settings.reranker, model=model_anchored(settings.reranker.model, base)),
        generator=generator,
        answers=_with(settings.answers, entailment=entailment),
    )


def _with(section: S, **changed: object) -> S:
    return section.model_copy(update=changed)


def _underlay(given: Any, defaults: Mapping[str, Any]) -> Any:
    """`given` with `defaults` below it; sections that are models already stay as they are."""
    if not isinstance(given, Mapping):
        return given
    merged = dict(given)
    for key, value in defaults.items():
        if isinstance(value, Mapping):
            merged[key] = _underlay(merged.get(key, {}), value)
        else:
            merged.setdefault(key, value)
    return merged
