"""The filter in every form: Python on one document, and a condition for each store.

Each store has a pair: one function for the columns or fields that hold labels, one for the
condition that asks about them. `matches` is the meaning; a store's condition finds all that
`matches` finds. It may find more where a store cannot say it exactly; readers are safe because
the catalog row is checked by `matches`.
"""

from quarry.access.compile_elasticsearch import elasticsearch_fields, to_elasticsearch
from quarry.access.compile_milvus import milvus_fields, to_milvus
from quarry.access.compile_sql import sql_columns, to_sql
from quarry.access.labels import labels_of
from quarry.access.matches import matches
from quarry.access.versions import version_key

__all__ = [
    "elasticsearch_fields",
    "labels_of",
    "matches",
    "milvus_fields",
    "sql_columns",
    "to_elasticsearch",
    "to_milvus",
    "to_sql",
    "version_key",
]
