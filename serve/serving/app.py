"""Runs the server on this machine: port, address file, local Ray, and an orderly end."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import re
import secrets
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import structlog
from filelock import FileLock, Timeout

from quarry.access.principals import load_users
from quarry.errors import (
    ConfigError,
    DataDirBusy,
    MissingExtra,
    ModelError,
    PortInUse,
    QuarryError,
    kinds_of_one_message,
)
from quarry.served_settings import marks
from quarry.settings import ServeSettings, Settings
from quarry.starting import start_ray
from quarry.stores.folder import SERVER_FILE, SERVER_LOCK, make_data_dir
from quarry.stores.milvus_lite import vector_server
from serve.extras import load_extras
from serve.health import at_once
from serve.serving.placement import placements

_log = structlog.get_logger(__name__)

APP_NAME = "quarry"
SLACK_S = 2.0
"""What the last questions may take beyond their deadline, until their answers are sent."""
LEAST_CPUS = 2
"""Logical cores that all deployments together fit on."""
LOCAL_RAY = {
    # The node listens on loopback and lives as long as this process: no tokens, no reports.
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
    # Lines of replicas come out as they are: equal ones too, and without colour codes.
    "RAY_DEDUP_LOGS": "0",
    "RAY_COLOR_PREFIX": "0",
    # What a replica has started, such as the processes of vLLM, ends with it however it ends.
    "RAY_process_group_cleanup_enabled": "true",
    # Ray would let everything else on the machine go before the replicas, and so before the models.
    "RAY_worker_niceness": "0",
    # Looks after its one node less often than after a cluster: the models want its cores.
    "RAY_SERVE_CONTROL_LOOP_INTERVAL_S": "0.5",
    "RAY_SERVE_METRICS_EXPORT_INTERVAL_MS": "1000",
    "RAY_task_events_report_interval_ms": "0",
}
"""Environment of a local Ray; what is set already stays."""

JSON_LINES = {"RAY_DISABLE_WORKER_LOG_PREFIX": "1"}
"""Lines of replicas name their part themselves; before JSON a prefix would break it."""

Ready = Callable[[str], None]


def run(settings: Settings, *, block: bool = True, on_ready: Ready | None = None) -> None:
    """Serves until SIGINT or SIGTERM; `on_ready` gets the address once questions are answered.

    With `block` false it stops after that. A signal while it serves is how it ends, and no error.
    Raises PortInUse, ConfigError, what keeps a part from starting, and KeyboardInterrupt if a
    signal comes before it serves.
    """
    ready = False
    try:
        with _interruptible(), serving(settings) as url:
            if on_ready is not None:
                on_ready(url)
            ready = True
            if block:
                signal.pause()
    except KeyboardInterrupt:
        _log.info("stopped")
        if not ready:
            raise


@contextmanager
def serving(settings: Settings) -> Iterator[str]:
    """A server that runs while inside; gives its address."""
    port = _free_port(settings.serve)
    if settings.access.users_file:
        load_users(settings.access.users_file)  # says what is wrong before anything starts
    load_extras(settings)
    url = f"http://{_reachable(settings.serve.host)}:{port}"
    token = secrets.token_urlsafe(32)
    with ExitStack() as stack:
        stack.enter_context(_only_server(settings.data_dir))
        # It forks, so it comes before the threads of the vector server.
        own = stack.enter_context(_ray(settings.telemetry.log_format))
        if own:
            _check_gpus(settings)
        stack.enter_context(vector_server(settings))
        _deploy(settings, port=port, token=token, announced=_announced(settings, own))
        stack.callback(_drain, settings.serve.deadline_s + SLACK_S)
        facts = {"url": url, "token": token, "settings": marks(settings)}
        stack.enter_context(_published(settings.data_dir, facts))
        _log.info("serving", url=url)
        yield url


def _announced(settings: Settings, own: bool) -> Callable[[], bool]:
    """What the gateway asks before it says it is ready: whether the address file is written.

    It answers before that. On a Ray that is not our own it may be on another machine, and is not
    kept waiting for a file that it cannot see.
    """
    return (settings.data_dir / SERVER_FILE).absolute().exists if own else at_once


def _deploy(settings: Settings, *, port: int, token: str, announced: Callable[[], bool]) -> None:
    from ray import serve

    from serve.serving.deployments import build

    # Ray would log every error that a caller or a setting made, with a traceback that may quote the
    # question. They are answered, or raised here; what is nobody's mistake is logged by our own.
    quiet = {"log_level": "CRITICAL", "enable_access_log": False}
    logging.getLogger("ray.serve").setLevel(logging.CRITICAL)
    serve.start(
        proxy_location="HeadOnly",
        http_options={"host": settings.serve.host, "port": port},
        logging_config=quiet,
    )
    try:
        application = build(settings, token, announced=announced)
        serve.run(application, name=APP_NAME, logging_config=quiet)
    except RuntimeError as error:
        raise _why(serve.status(), error) from error


def _why(status: Any, error: RuntimeError) -> QuarryError:
    """What a part that cannot start has raised: its last words in Serve's status."""
    deployments = status.applications[APP_NAME].deployments
    told = "\n".join([str(error), *(each.message for each in deployments.values())])
    kinds = {kind.__name__: kind for kind in kinds_of_one_message()}
    kinds[MissingExtra.__name__] = (
        ConfigError  # its sentence is whole; its parts are not known here
    )
    raised = re.findall(rf"^[\w.]*?\b({'|'.join(kinds)}): (.+)$", told, re.MULTILINE)
    if raised:
        name, message = raised[-1]
        return kinds[name](message.strip())
    return ModelError("A part of the server could not start; its log above says why.")


# ------------------------------------------------------------------------------- this machine


@contextmanager
def _ray(log_format: str) -> Iterator[bool]:
    """The Ray that this process uses already, or (true) one of its own, without dashboard."""
    known = sys.modules.get("ray")
    if known is not None and known.is_initialized():
        try:
            yield False
        finally:
            known.serve.shutdown()
        return
    for name, value in {**LOCAL_RAY, **(JSON_LINES if log_format == "json" else {})}.items():
        os.environ.setdefault(name, value)
    import ray  # reads some of these when it is imported
    import ray.serve

    on_term = signal.getsignal(signal.SIGTERM)
    try:
        start_ray(
            lambda: ray.init(
                address="local",
                num_cpus=max(LEAST_CPUS, os.cpu_count() or 1),
                include_dashboard=False,
                configure_logging=False,
                logging_level=logging.ERROR,
                log_to_driver=True,
                _node_ip_address="127.0.0.1",
            ),
            ray.shutdown,
        )
    finally:
        signal.signal(signal.SIGTERM, on_term)  # Ray puts its own there
    try:
        yield True
    finally:
        _delete_app()  # replicas end what they have started
        ray.shutdown()


def _drain(seconds: float) -> None:
    """No new questions, and time for those in flight; another signal cuts them off."""
    from ray import serve
    from ray.exceptions import RayError

    gateway = serve.get_deployment_handle("gateway", APP_NAME)
    try:
        with _interruptible():
            left = gateway.drain.remote(seconds).result(timeout_s=seconds + SLACK_S)
    except KeyboardInterrupt:
        _log.warning("questions_cut_off")
        return
    except (RayError, TimeoutError) as error:  # it ends anyway
        _log.warning("gateway_did_not_drain", error=type(error).__name__)
        return
    if left:
        _log.warning("questions_cut_off", left=left)


def _delete_app() -> None:
    """Ends the replicas in their own way. What goes wrong is logged: the local Ray ends anyway.

    `serve.shutdown` would wait for a controller that kills itself, and Ray prints that as a task
    which failed.
    """
    import ray
    from ray.serve.exceptions import RayServeException

    try:
        ray.serve.delete(APP_NAME)
    except RayServeException:  # stopped before Serve had started
        _log.debug("nothing_to_delete")
    except (ray.exceptions.RayError, TimeoutError) as error:
        _log.warning("replicas_did_not_end", error=type(error).__name__)


def _check_gpus(settings: Settings) -> None:
    """Raises ConfigError if this machine lacks GPUs: replicas would wait for them for ever."""
    import ray

    wanted = sum(placement.gpus for placement in placements(settings).values())
    found = ray.cluster_resources().get("GPU", 0)
    if wanted > found:
        raise ConfigError(
            f"The settings reserve {wanted:g} GPUs and this machine has {found:g}; lower the gpus "
            "keys, or set generator.vllm.device to cpu."
        )


def _free_port(settings: ServeSettings) -> int:
    """The port to listen on, 0 replaced by a free one. Raises PortInUse, ConfigError."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortInUse(
                    f"Port {settings.port} of {settings.host} is in use; stop what uses it, or set "
                    "serve.port to another one or to 0."
                ) from None
            raise ConfigError(
                f"The server cannot listen on {settings.host} port {settings.port}; check "
                "serve.host and serve.port."
            ) from error
        port: int = probe.getsockname()[1]
        return port


def _reachable(host: str) -> str:
    """The host as this machine reaches it, for a URL."""
    if host in {"0.0.0.0", "::", ""}:  # noqa: S104 - compared, not bound
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


@contextmanager
def _only_server(folder: Path) -> Iterator[None]:
    """Held by the one server of a data folder. Raises DataDirBusy."""
    make_data_dir(folder)
    lock = FileLock(folder / SERVER_LOCK, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise DataDirBusy(
            f"A server of the data folder {folder} is running already; ask that one, or stop it."
        ) from None
    (folder / SERVER_FILE).unlink(missing_ok=True)  # a killed server's
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _published(folder: Path, facts: Mapping[str, Any]) -> Iterator[None]:
    """Address, local token and digests of settings, in a file that only this user can read."""
    path = folder / SERVER_FILE
    folder.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=folder, prefix=f".{SERVER_FILE}.")  # mode 0600
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(facts, file)
    Path(name).replace(path)
    try:
        yield
    finally:
        with contextlib.suppress(OSError, ValueError, KeyError):
            if json.loads(path.read_text(encoding="utf-8"))["token"] == facts["token"]:
                path.unlink()


@contextmanager
def _interruptible() -> Iterator[None]:
    """Leaves the block at SIGINT or SIGTERM; further signals wait until all is stopped."""
    if threading.current_thread() is not threading.main_thread():  # signals come to that one only
        yield
        return
    watched = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in watched}

    def stop(_number: int, _frame: Any) -> None:
        for number in watched:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in watched:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
