"""Writes the generated parts of the reference pages, so that they cannot fall behind the code.

`python -m quarry.cli.reference --write` (or `make docs`) writes them; a test fails when they are
stale. `docs/configuration.md` is made whole; in `docs/cli.md` the part between the markers of each
command is.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
import typer.main
from pydantic import BaseModel

from quarry.cli.describe import kind_of, yaml_value
from quarry.cli.output import print_note
from quarry.settings import CLUSTER_DEFAULTS, NOT_SETTINGS, Settings
from quarry.settings_file import is_secret, key_paths, named_sections_of, section_of

DOCS = Path(__file__).resolve().parents[2] / "docs"

_CONFIGURATION_HEAD = """\
# Configuration

<!-- Made by `make docs` from quarry/settings.py: edit the descriptions there. -->

Settings are one YAML file and the environment. `quarry init` writes the file with every key in it;
it may be as short as what differs from the defaults:

```yaml
data_dir: /srv/quarry
sources:
  default: {{default_acl: [staff]}}
access: {{users_file: users.yaml}}
serve: {{host: 0.0.0.0, port: 8000}}
generator: {{kind: openai, model: qwen3-8b, base_url: "http://127.0.0.1:8001/v1"}}
```

- The file is the one that `--config` names, else the one that `QUARRY_CONFIG` names, else
  `quarry.yaml` in the working directory. Paths in it and in variables are relative to the file.
- An environment variable wins over the file: `QUARRY_SERVE__PORT=9000` sets `serve.port`, two
  underscores stand for the dot. Numbers, booleans and lists are written as in YAML:
  `QUARRY_SOURCES__DEFAULT__DEFAULT_ACL='[public]'`.
- A key or `QUARRY_*` variable that names no setting is an error and stops the command with exit
  code 2. Left alone are {not_settings}, and the variables
  that Kubernetes makes for a service named `quarry`.
- A section with no keys, and a key that is not there, mean the default.
- Below `sources` a name may be spelt as the folder is, or as ingest calls it: `Hr Docs`, `hr_docs`
  and `hr-docs` are one source, and two of them in one file an error.
- Secrets are better given by environment than by file; they appear in no log and no error. They are
  {secrets}.
- A command reads its settings when it starts. `quarry serve` keeps those that it was started with
  until it is started again; only the users file is followed while it runs.
- Model, prompts and `max_tokens` of `embedder`, and all of `chunking`, belong to the index: with
  others it is refused (exit code 2). Set them before the first ingest, or ingest into another
  `data_dir`; in a cluster into another `stores.elasticsearch.index_prefix` and
  `stores.milvus.collection_prefix`.
- `quarry doctor` checks what is set: models, servers, files, and whether the index fits.
- `profile: cluster` has other defaults for these:
{cluster}
"""


def configuration_page() -> str:
    """The whole of docs/configuration.md."""
    cluster = "\n".join(f"  - `{key}: {value}`" for key, value in _flat(CLUSTER_DEFAULTS))
    others = " and ".join(f"`{name}`" for name in sorted(NOT_SETTINGS))
    secrets = ", ".join(f"`{key}`" for key, info in key_paths(Settings) if is_secret(info))
    parts = [
        _CONFIGURATION_HEAD.format(cluster=cluster, not_settings=others, secrets=secrets),
    ]
    parts.extend(_section_tables(Settings, ""))
    return "\n".join(parts)


def command_block(name: str) -> str:
    """What docs/cli.md says about one command between its markers."""
    command = _commands()[name]
    context = typer.Context(command, info_name=f"quarry {name}")
    usage = command.get_usage(context).removeprefix("Usage: ")
    lines = ["```text", " ".join(usage.split()), "```", "", *_paragraphs(command.help or "")]
    lines += ["", "| argument or option | what it is |", "|---|---|"]
    for parameter in command.params:
        spelling, explained = parameter.get_help_record(context)
        lines.append(f"| `{_cell(spelling)}` | {_cell(explained)} |")
    return "\n".join(lines)


def command_names() -> list[str]:
    """Every command, `eval beir` for one in a group."""
    return list(_commands())


def cli_page(text: str) -> str:
    """docs/cli.md with every generated block made anew."""

    def block(match: re.Match[str]) -> str:
        name = match["name"]
        return f"<!-- begin {name} -->\n{command_block(name)}\n<!-- end {name} -->"

    pattern = r"<!-- begin (?P<name>[a-z -]+?) -->.*?<!-- end (?P=name) -->"
    return re.sub(pattern, block, text, flags=re.DOTALL)


def main() -> None:
    """Says which pages are stale and exits with 1, or writes them with --write."""
    cli = DOCS / "cli.md"
    pages = {
        DOCS / "configuration.md": configuration_page(),
        cli: cli_page(cli.read_text(encoding="utf-8")),
    }
    stale = [path for path, text in pages.items() if _read(path) != text]
    for path in stale:
        if "--write" in sys.argv[1:]:
            path.write_text(pages[path], encoding="utf-8")
            print_note(f"wrote docs/{path.name}")
        else:
            print_note(f"docs/{path.name} is stale; run: make docs")
    sys.exit(1 if stale and "--write" not in sys.argv[1:] else 0)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _section_tables(model: type[BaseModel], prefix: str) -> Iterator[str]:
    rows, below = [], []
    for name, info in model.model_fields.items():
        inner, named = section_of(info), named_sections_of(info)
        if inner or named:
            below.append((f"{prefix}{name}." + ("NAME." if named else ""), inner or named))
            continue
        default = yaml_value(info.get_default(call_default_factory=True))
        rows.append(f"| `{prefix}{name}` | `{default}` | {kind_of(info)} | {info.description} |")
    if rows:
        title = f"`{prefix.rstrip('.')}`" if prefix else "Top level"
        table = ["| key | default | value | what it does |", "|---|---|---|---|", *rows]
        yield "\n".join([f"## {title}", "", *table, ""])
    for inner_prefix, inner_model in below:
        if inner_model is not None:
            yield from _section_tables(inner_model, inner_prefix)


def _flat(values: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _app() -> typer.Typer:
    from quarry.cli.main import app

    return app


def _commands() -> dict[str, Any]:
    def walk(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                yield from walk(command, f"{prefix}{name} ")
            else:
                yield f"{prefix}{name}", command

    return dict(walk(typer.main.get_command(_app()), ""))


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip())]


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


if __name__ == "__main__":
    main()
