"""The servers of `loadtests.chaos.servers`, for the tests.

python -m tests.servers.managed up FOLDER      start both, write FOLDER/servers.json
python -m tests.servers.managed down FOLDER    stop what that file names
"""

from __future__ import annotations

import sys

from loadtests.chaos.servers import ELASTICSEARCH, TOOLS, Elasticsearch, Milvus, main

__all__ = ["ELASTICSEARCH", "TOOLS", "Elasticsearch", "Milvus"]

if __name__ == "__main__":
    main(sys.argv[1:])
