"""The core of Quarry: records, ports, the commit protocol, stores and models. No Ray in here."""

__version__ = "0.1.0"
