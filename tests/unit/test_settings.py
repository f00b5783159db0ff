"""What a settings file and the environment may say, and what they are told when they are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from quarry.errors import ConfigError
from quarry.ids import slug
from quarry.settings import Settings, SourceSettings, find_config, load_settings
from quarry.settings_file import read_yaml


def load(folder: Path, text: str, **environ: str) -> Settings:
    path = folder / "quarry.yaml"
    path.write_text(text, encoding="utf-8")
    return load_settings(path, environ)


def refusal(folder: Path, text: str, **environ: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(folder, text, **environ)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_mapping_may_come_from_the_environment(tmp_path: Path) -> None:
    text = "generator: {kind: openai, model: m, base_url: 'http://h/v1'}"
    loaded = load(tmp_path, text, QUARRY_GENERATOR__EXTRA_BODY="{seed: 7, more: {a: false}}")
    assert loaded.generator.extra_body == {"seed": 7, "more": {"a": False}}


def test_an_empty_file_means_every_default(tmp_path: Path) -> None:
    loaded = load(tmp_path, "")
    assert loaded == Settings().model_copy(update={"data_dir": tmp_path / ".quarry"})


def test_sections_with_every_key_commented_out_mean_the_defaults(tmp_path: Path) -> None:
    text = "serve:\n  # port: 9\nstores:\n  milvus:\nsources:\n  wiki:\n"
    loaded = load(tmp_path, text)
    assert loaded.serve.port == Settings().serve.port
    assert loaded.stores == Settings().stores
    assert loaded.sources == {"wiki": SourceSettings()}


@pytest.mark.parametrize(
    ("text", "key", "hint"),
    [
        ("serve: {prot: 1}", "serve.prot", "serve.port"),
        ("stores: {milvus: {url: x}}", "stores.milvus.url", "stores.milvus.uri"),
        ("embeder: {}", "embeder", "embedder"),
        ("zzz: 1", "zzz", "'quarry init' writes all"),
        ("sources: {wiki: {acl: [public]}}", "sources.wiki.acl", "'quarry init' writes all"),
        ("sources: {a.b: {tennant: x}}", "sources.a.b.tennant", "'sources.a.b.tenant'?"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_known_one(
    tmp_path: Path, text: str, key: str, hint: str
) -> None:
    message = refusal(tmp_path, text)
    assert f"unknown key '{key}'" in message
    assert hint in message


@pytest.mark.parametrize("name", ["2026", "2026-01-02", "no", "1.5", "~"])
def test_a_name_that_yaml_takes_for_a_number_must_stand_in_quotes(
    tmp_path: Path, name: str
) -> None:
    text = "sources:\n  wiki: {{tenant: x}}\n  {}: {{tenant: acme}}\n"
    assert "line 3" in (message := refusal(tmp_path, text.format(name)))
    assert "must stand in quotes" in message
    assert load(tmp_path, text.format(f"'a {name}'")).sources


def test_a_key_given_twice_is_an_error_and_not_a_lost_value(tmp_path: Path) -> None:
    message = refusal(tmp_path, "serve:\n  port: 1\nserve:\n  host: ::1\n")
    assert "line 3" in message
    assert "'serve' is given twice" in message


def test_a_merge_may_replace_a_key_and_gives_it_twice_to_nobody(tmp_path: Path) -> None:
    path = tmp_path / "merged.yaml"
    path.write_text("a: &a {x: 1}\ns: {t: &b {<<: *a, x: 2}}\nc: {<<: *b}\n")
    assert read_yaml(path)["s"] == {"t": {"x": 2}}


@pytest.mark.parametrize(
    "value", ["*hunter2", "!hunter2", "[hunter2", "'hunter2", "{hunter2: }}", "!hunter2!x y"]
)
def test_a_secret_that_is_no_yaml_is_not_repeated(tmp_path: Path, value: str) -> None:
    message = refusal(tmp_path, f"generator:\n  api_key: {value}\n")
    assert "not valid YAML" in message
    assert "hunter2" not in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("serve: {port: 70000}", "'serve.port'"),
        ("serve: 8000", "'serve' must be a section"),
        ("sources: {default: {default_acl: public}}", "must be a list"),
        ("sources: {default: {default_acl: ['']}}", "never empty"),
        ("sources: {default: {default_acl: ['group:']}}", "a name after its colon"),
        ("sources: {default: {default_acl: [hr, 'user: ']}}", "a name after its colon"),
        ("- a\n- b\n", "named keys and values"),
        ("serve: [", "not valid YAML"),
        ("profile: laptop", "'profile'"),
        ("chunking: {min_tokens: 60, max_tokens: 60}", "min_tokens must be less"),
        ("chunking: {max_tokens: 300}\nembedder: {max_tokens: 256}", "embedder.max_tokens"),
        ("reranker: {kind: cross_encoder}", "cross_encoder needs model"),
        ("generator: {kind: vllm}", "vllm needs model"),
        ("generator: {kind: openai, model: m}", "openai needs base_url"),
        ("generator: {max_tokens: 4096}", "context_tokens"),
        ("ingest: {write_workers: 2}", "Milvus Lite"),
        ("stores: {elasticsearch: {url: 'localhost:9200'}}", "http://"),
        ("stores: {elasticsearch: {url: 'http://search'}}", "a host and a port"),
        ("stores: {elasticsearch: {url: 'https://'}}", "a host and a port"),
        ("stores: {elasticsearch: {url: 'http://search:door'}}", "a host and a port"),
        ("stores: {elasticsearch: {ca_certs: ca.pem}}", "ca_certs needs a url"),
        ("stores: {milvus: {ca_certs: ca.pem}}", "ca_certs needs a uri"),
    ],
)
def test_a_value_that_cannot_work_is_named_in_one_sentence(
    tmp_path: Path, text: str, said: str
) -> None:
    assert said in refusal(tmp_path, text)


def test_a_secret_never_appears_in_an_error_or_a_dump(tmp_path: Path) -> None:
    text = "generator: {kind: openai, model: m, api_key: hunter2, base_url: 'hunter2'}"
    assert "hunter2" not in refusal(tmp_path, text)
    loaded = load(tmp_path, "generator: {api_key: hunter2}")
    assert "hunter2" not in repr(loaded)
    assert loaded.generator.api_key is not None
    assert loaded.generator.api_key.get_secret_value() == "hunter2"


def test_paths_are_relative_to_the_file_and_not_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "quarry.yaml").write_text("access: {users_file: users.yaml}")
    monkeypatch.chdir(tmp_path)
    loaded = load_settings(Path("conf/quarry.yaml"), {})
    assert loaded.data_dir == tmp_path / "conf" / ".quarry"
    assert loaded.access.users_file == tmp_path / "conf" / "users.yaml"


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("./models/e5", "{base}/models/e5"),
        ("../e5", "{base}/../e5"),
        ("models/here", "{base}/models/here"),
        ("intfloat/e5-small", "intfloat/e5-small"),
        ("packaged:all-MiniLM-L6-v2", "packaged:all-MiniLM-L6-v2"),
        ("/models/e5", "/models/e5"),
        ("fake", "fake"),
    ],
)
def test_the_folder_of_a_model_is_relative_to_the_file_too(
    tmp_path: Path, model: str, expected: str
) -> None:
    (tmp_path / "models" / "here").mkdir(parents=True)
    vllm = {"kind": "vllm", "model": model, "vllm": {"lora": "adapter"}}
    text = yaml.safe_dump(
        {
            "embedder": {"model": model},
            "reranker": {"kind": "cross_encoder", "model": model},
            "generator": vllm,
            "answers": {"entailment": {"model": model}},
        }
    )
    loaded = load(tmp_path, text)
    named = (loaded.embedder, loaded.reranker, loaded.generator, loaded.answers.entailment)
    assert {each.model for each in named} == {expected.format(base=tmp_path)}
    assert loaded.generator.vllm.lora == str(tmp_path / "adapter")


def test_a_model_that_is_a_name_of_an_endpoint_is_no_path(tmp_path: Path) -> None:
    (tmp_path / "qwen").mkdir()
    text = "generator: {kind: openai, model: qwen, base_url: 'http://127.0.0.1:1/v1'}"
    assert load(tmp_path, text).generator.model == "qwen"


# ------------------------------------------------------------------------------- environment


@pytest.mark.parametrize(
    ("name", "value", "path", "expected"),
    [
        ("QUARRY_SERVE__PORT", "9000", "serve.port", 9000),
        ("QUARRY_INGEST__OCR", "false", "ingest.ocr", False),
        ("QUARRY_PROFILE", "cluster", "profile", "cluster"),
        ("QUARRY_GENERATOR__MODEL", "1234", "generator.model", "1234"),
        ("QUARRY_EMBEDDER__QUESTION_PROMPT", "query: ", "embedder.question_prompt", "query: "),
        ("QUARRY_TELEMETRY__LOG_LEVEL", "info", "telemetry.log_level", "info"),
        ("QUARRY_EMBEDDER__MAX_TOKENS", "null", "embedder.max_tokens", None),
    ],
)
def test_a_variable_sets_one_key_and_wins_over_the_file(
    tmp_path: Path, name: str, value: str, path: str, expected: Any
) -> None:
    file = "serve: {port: 1}\ningest: {ocr: true}\nembedder: {max_tokens: 256}\n"
    found: Any = load(tmp_path, file, **{name: value})
    for part in path.split("."):
        found = getattr(found, part)
    assert found == expected


def test_a_value_that_is_nearly_a_date_or_a_number_is_named_in_one_sentence(tmp_path: Path) -> None:
    message = refusal(tmp_path, "profile: embedded\nserve:\n  port: 2026-13-45\n")
    assert "line 3 is not valid YAML: a value looks like a date or a number" in message
    assert "'serve.port'" in refusal(tmp_path, "", QUARRY_SERVE__PORT="2026-13-45")


def test_a_variable_sets_a_list_of_a_source(tmp_path: Path) -> None:
    loaded = load(tmp_path, "sources:\n", QUARRY_SOURCES__WIKI__DEFAULT_ACL="[staff, hr]")
    assert loaded.source("wiki").default_acl == ("staff", "hr")


@pytest.mark.parametrize(
    "key", ["HR", "hr", "Hr Docs", "hr.docs", "payroll_2026", "Büro", "Bu\u0308ro", "- x -"]
)
def test_a_source_has_the_settings_of_its_folder_however_the_key_is_spelt(key: str) -> None:
    given = {"default": {"default_acl": ["public"]}, key: {"default_acl": ["hr"], "tenant": "acme"}}
    loaded = Settings.model_validate({"sources": given})
    assert loaded.source(slug(key)) == SourceSettings(default_acl=("hr",), tenant="acme")
    assert Settings.model_validate(loaded.model_dump()) == loaded


def test_a_variable_adds_to_the_source_of_that_name_however_the_file_spells_it(
    tmp_path: Path,
) -> None:
    file = "sources: {HR Docs: {default_acl: [hr]}}"
    loaded = load(tmp_path, file, QUARRY_SOURCES__HR_DOCS__TENANT="acme")
    assert loaded.sources == {"hr-docs": SourceSettings(default_acl=("hr",), tenant="acme")}


@pytest.mark.parametrize("keys", [("HR", "hr"), ("hr.docs", "Hr Docs"), ("Büro", "bu\u0308ro")])
def test_two_keys_of_one_source_are_refused_by_name(tmp_path: Path, keys: tuple[str, str]) -> None:
    file = yaml.safe_dump({"sources": {key: {"tenant": key} for key in keys}}, sort_keys=False)
    message = refusal(tmp_path, file)
    assert f"'{keys[0]}' and '{keys[1]}' both name the source {slug(keys[0])}" in message


@pytest.mark.parametrize("key", ["", "***", "_"])
def test_a_key_that_can_be_the_name_of_no_source_is_refused(tmp_path: Path, key: str) -> None:
    assert "no letter or digit" in refusal(tmp_path, yaml.safe_dump({"sources": {key: {}}}))


@pytest.mark.parametrize("text", ["Hr  Docs_", "İX", "a" * 63 + "-b", "Ünïcode/" * 20])
def test_a_slug_is_its_own_slug(text: str) -> None:
    assert slug(slug(text)) == slug(text)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("QUARRY_SERV__PORT", "QUARRY_SERVE__PORT"),
        ("QUARRY_SERVE_PORT", "QUARRY_SERVE__PORT"),
        ("QUARRY_DATADIR", "QUARRY_DATA_DIR"),
        ("QUARRY_PORT", "unset it"),
        ("QUARRY_SERVE", "unset it"),
        ("QUARRY_SOURCES__WIKI", "unset it"),
        ("QUARRY_", "unset it"),
        ("QUARRY_SERVE__PORT__X", "unset it"),
    ],
)
def test_a_mistyped_variable_is_an_error(tmp_path: Path, name: str, hint: str) -> None:
    message = refusal(tmp_path, "", **{name: "1"})
    assert name in message
    assert hint in message


def test_variables_that_belong_to_others_are_left_alone(tmp_path: Path) -> None:
    service_links = {
        "QUARRY_SERVICE_HOST": "10.0.0.7",
        "QUARRY_SERVICE_PORT": "8000",
        "QUARRY_SERVICE_PORT_HTTP": "8000",
        "QUARRY_PORT": "tcp://10.0.0.7:8000",
        "QUARRY_PORT_8000_TCP": "tcp://10.0.0.7:8000",
        "QUARRY_PORT_8000_TCP_PROTO": "tcp",
        "QUARRY_GATEWAY_SERVICE_HOST": "10.0.0.8",
        "QUARRY_GATEWAY_PORT": "tcp://10.0.0.8:8000",
    }
    loaded = load(tmp_path, "", QUARRY_CONFIG="x", QUARRY_CI="1", HOME="/", **service_links)
    assert loaded.serve.port == Settings().serve.port


def test_a_variable_cannot_reach_below_a_value(tmp_path: Path) -> None:
    message = refusal(tmp_path, "serve: 1", QUARRY_SERVE__PORT="9000")
    assert "'serve' is not a section" in message


# ----------------------------------------------------------------------------------- profiles


def test_the_cluster_profile_names_servers_in_place_of_files(tmp_path: Path) -> None:
    loaded = load(tmp_path, "profile: cluster")
    assert loaded.stores.text == "elasticsearch"
    assert loaded.stores.milvus.uri.startswith("http://")
    assert loaded.telemetry.log_format == "json"


def test_a_value_that_is_given_wins_over_the_profile(tmp_path: Path) -> None:
    loaded = load(tmp_path, "profile: cluster\nstores: {milvus: {uri: 'http://m:1'}}")
    assert loaded.stores.milvus.uri == "http://m:1"
    assert loaded.stores.text == "elasticsearch"
    sqlite = load(tmp_path, "", QUARRY_PROFILE="cluster", QUARRY_STORES__TEXT="sqlite")
    assert sqlite.stores.text == "sqlite"


@pytest.mark.parametrize("profile", ["embedded", "cluster"])
def test_documents_without_an_acl_are_closed_by_default(tmp_path: Path, profile: str) -> None:
    loaded = load(tmp_path, f"profile: {profile}")
    assert loaded.source("anything").default_acl is None


def test_a_source_without_settings_takes_those_of_default(tmp_path: Path) -> None:
    loaded = load(
        tmp_path, yaml.safe_dump({"sources": {"default": {"default_acl": ["public"]}, "hr": {}}})
    )
    assert loaded.source("wiki").default_acl == ("public",)
    assert loaded.source("hr").default_acl is None


# ---------------------------------------------------------------------------- finding the file


def test_the_file_is_the_named_one_then_the_variable_then_the_working_directory(
    tmp_path: Path,
) -> None:
    for name in ("quarry.yaml", "env.yaml", "named.yaml"):
        (tmp_path / name).touch()
    environ = {"QUARRY_CONFIG": "env.yaml"}
    assert find_config(Path("named.yaml"), environ, tmp_path).name == "named.yaml"
    assert find_config(None, environ, tmp_path).name == "env.yaml"
    assert find_config(None, {}, tmp_path).name == "quarry.yaml"


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="quarry init"):
        find_config(None, {}, tmp_path)
    with pytest.raises(ConfigError, match="check the path"):
        find_config(tmp_path / "no.yaml", {}, tmp_path)
