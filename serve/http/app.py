"""The HTTP API: search and answer, health, metrics, and a page about itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from quarry.settings import Settings
from quarry.telemetry.metrics import Metrics
from serve.health import Remembered, at_once, once
from serve.http.docs_page import POLICY, docs_page
from serve.http.errors import add_handlers
from serve.http.limits import Admission, BodyLimit
from serve.http.observe import Observer
from serve.http.questions import questions_router
from serve.http.service import Service
from serve.http.sign_in import SignIn

DESCRIPTION = (
    "Cited answers over your documents. Without a token you see what is public; a user's token "
    "goes into `Authorization: Bearer …`."
)


def create_app(
    service: Service,
    settings: Settings,
    *,
    sign_in: SignIn,
    metrics: Metrics | None = None,
    announced: Callable[[], bool] = at_once,
) -> FastAPI:
    """The app over a service; one app a process, since it counts what is in flight.

    `app.state.admission` is what counts them, for whoever has to end the process. `announced` says
    whether those who look for this server find it; it is not ready before.
    """
    metrics = metrics or Metrics()
    app = FastAPI(
        title="Quarry",
        version="1",
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    admission = Admission(settings.serve.max_in_flight, metrics)
    app.include_router(
        questions_router(service, settings, sign_in=sign_in, admission=admission, metrics=metrics)
    )
    app.state.admission = admission
    _add_operations(app, service, metrics, admission, once(announced))
    add_handlers(app)
    app.add_middleware(BodyLimit)
    app.add_middleware(Observer, metrics=metrics)
    return app


def _add_operations(
    app: FastAPI,
    service: Service,
    metrics: Metrics,
    admission: Admission,
    announced: Callable[[], bool],
) -> None:
    readiness = Remembered(service.ready)

    async def parts() -> Mapping[str, str]:
        if admission.closed:
            return {"server": "stopping"}
        return await readiness() if announced() else {"server": "starting"}

    @app.get("/healthz", summary="Whether the server runs", tags=["operations"])
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz", summary="Whether stores and models answer", tags=["operations"])
    async def readyz() -> JSONResponse:
        states = await parts()
        ready = all(state == "ok" for state in states.values())
        body = {"status": "ready" if ready else "not_ready", "parts": dict(states)}
        return JSONResponse(body, 200 if ready else 503)

    @app.get("/metrics", summary="Metrics for Prometheus", tags=["operations"])
    async def metrics_text() -> Response:
        return Response(metrics.render(), media_type=metrics.content_type)

    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> HTMLResponse:
        base = str(request.base_url).rstrip("/")
        return HTMLResponse(
            docs_page(app.openapi(), base), headers={"Content-Security-Policy": POLICY}
        )
