"""The page at /docs: the OpenAPI description as plain HTML, with nothing loaded from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;
color:#1c2024;background:#fff}
h2{margin-top:2.5rem;border-bottom:1px solid #d8dce0}
code,pre{font:14px/1.45 ui-monospace,monospace;background:#f3f5f7;border-radius:4px}
code{padding:.1em .3em}pre{padding:.8rem;overflow-x:auto}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid #e4e7ea}
@media (prefers-color-scheme:dark){body{color:#e6e8ea;background:#15181b}
code,pre{background:#23282d}h2,th,td{border-color:#343b42}a{color:#8ab8ff}}
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
"""Content-Security-Policy of this page."""


def docs_page(schema: Mapping[str, Any], base_url: str) -> str:
    """The whole page, for a server at `base_url`."""
    info = schema["info"]
    parts = [
        f"<h1>{escape(info['title'])} API</h1><p>{_text(info['description'])}</p>",
        "<p>Machine-readable: <a href='openapi.json'>openapi.json</a></p>",
    ]
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            parts.extend(_operation(method.upper(), path, operation, schema, base_url))
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'>"
        f"<title>{escape(info['title'])} API</title><style>{STYLE}</style></head>"
        f"<body>{''.join(parts)}</body></html>"
    )


def _operation(
    method: str, path: str, operation: Mapping[str, Any], schema: Mapping[str, Any], base_url: str
) -> Iterator[str]:
    yield f"<h2><code>{method} {escape(path)}</code></h2><p>{escape(operation['summary'])}</p>"
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    example = f"curl -s {base_url}{path}"
    if body:
        example += " -H 'Content-Type: application/json' -d '{\"question\": \"…\"}'"
        yield "<h3>Body</h3>" + _fields(_resolve(body["schema"], schema), schema)
    yield f"<pre>{escape(example)}</pre>"
    for status, response in operation["responses"].items():
        content = response.get("content", {}).get("application/json", {})
        described = f"<p><code>{escape(status)}</code> {_text(response['description'])}</p>"
        fields = _fields(_resolve(content.get("schema", {}), schema), schema)
        yield described + (fields if status == "200" else "")


def _fields(model: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(_type(field, schema))}</td>"
        f"<td>{_default(field)}</td><td>{_text(field.get('description', ''))}</td></tr>"
        for name, field in model.get("properties", {}).items()
    )
    head = "<tr><th>key</th><th>type</th><th>default</th><th></th></tr>"
    return f"<table>{head}{rows}</table>" if rows else ""


def _default(field: Mapping[str, Any]) -> str:
    if field.get("default") is None:
        return ""
    return f"<code>{escape(json.dumps(field['default']))}</code>"


def _type(field: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """A short name: `string`, `one of …`, `[{rank, …}]`."""
    if "$ref" in field:
        return _type(_resolve(field, schema), schema)
    if "anyOf" in field:
        return " or ".join(_type(option, schema) for option in field["anyOf"])
    if "enum" in field:
        return " | ".join(map(str, field["enum"]))
    if field.get("type") == "array":
        return f"[{_type(field.get('items', {}), schema)}]"
    if "properties" in field:
        return "{" + ", ".join(field["properties"]) + "}"
    return str(field.get("type", "any"))


def _resolve(node: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in node:
        return node
    name = node["$ref"].rpartition("/")[2]
    found: Mapping[str, Any] = schema["components"]["schemas"][name]
    return found


def _text(text: str) -> str:
    """Escaped, with `code` as code."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))
